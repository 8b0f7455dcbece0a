import { describe, expect, test } from 'vitest'
import type { ReportSpec } from '#config/kinds/portal.ts'
import { type BoundParameter, readReport } from '#config/report-statements/report-statement.ts'
import { Attributes } from '#identity/attributes.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'

/** What differs between OpenUnison's forms of a statement. */
interface Dialect {
  quoted(name: string): string
  choice(condition: string, yes: string, no: string): string
  readonly daysSince: string
  readonly isOld: string
}

const dialects: Readonly<Record<string, Dialect>> = {
  PostgreSQL: {
    quoted: (name) => `"${name}"`,
    choice: (condition, yes, no) => `CASE WHEN ${condition} THEN ${yes} ELSE ${no} END`,
    daysSince: 'AGE(CURRENT_DATE, DATE(seen))',
    isOld: "(extract('epoch' FROM age(seen::timestamp)) / 86400) > 30",
  },
  MariaDB: {
    quoted: (name) => `\`${name}\``,
    choice: (condition, yes, no) => `IF(${condition}, ${yes}, ${no})`,
    daysSince: 'DATEDIFF(CURDATE(), seen)',
    isOld: 'seen < DATE_SUB(CURDATE(), INTERVAL 30 DAY)',
  },
}

const attribute = (name: string, of = 'users.id'): string =>
  `(SELECT value FROM userAttributes WHERE userAttributes.name='${name}' AND userid=${of})`
const approverAttribute = (name: string): string =>
  `(SELECT value FROM approverAttributes WHERE name='${name}' AND approverid=approvers.id)`

/** Seven reports in the shape of those that OpenUnison's charts bring. */
function formerReports({ quoted, choice, daysSince, isOld }: Dialect): Readonly<Record<string, ReportSpec>> {
  const as = (sql: string, name: string): string => `${sql} AS ${quoted(name)}`
  const approval = [
    'approvals.label AS Approval',
    as('approvals.createTS', 'Opened At'),
    as('workflows.name', 'Flow Name'),
    as('workflows.label', 'Flow Label'),
    as('workflows.requestReason', 'Why'),
    as(`concat(${attribute('givenname')}, ' ', ${attribute('sn')})`, 'Whose'),
    as(attribute('mail'), 'Whose Mail'),
    as(approverAttribute('givenname'), 'First'),
    as(approverAttribute('mail'), 'Mail'),
  ].join(', ')
  const open = `SELECT approvals.id, ${approval} FROM approvals
    INNER JOIN workflows ON approvals.workflow=workflows.id INNER JOIN users ON workflows.userid=users.id
    INNER JOIN allowedApprovers ON approvals.id=allowedApprovers.approval
    INNER JOIN approvers ON approvers.id=allowedApprovers.approver WHERE`
  const order = 'ORDER BY approvals.createTS ASC, approvals.id ASC, approvers.userKey'
  const decided = `SELECT workflows.id AS wid, approvals.id AS aid, ${approval},
    ${as(choice('approvals.approved = 1', "'Yes'", "'No'"), 'Result')}, ${as('approvals.approvedTS', 'Decided At')}, approvals.reason AS Said
    FROM approvals INNER JOIN approvers ON approvals.approver=approvers.id INNER JOIN workflows ON workflows.id=approvals.workflow
    INNER JOIN users ON users.id=workflows.userid WHERE`
  const changes = `SELECT ${as(attribute('givenname'), 'First')}, workflows.id, ${as('workflows.name', 'Flow Name')},
    ${as('workflows.startTS', 'Started')}, ${as('workflows.completeTS', 'Ended')}, auditLogType.name AS ${quoted('Action')},
    ${as("CASE WHEN isEntry = 1 THEN 'Object' ELSE 'Attribute' END", 'Kind')}, auditLogs.attribute AS ${quoted('Name')}, auditLogs.val AS ${quoted('Value')}
    FROM users INNER JOIN auditLogs ON users.id=auditLogs.userid INNER JOIN auditLogType ON auditLogType.id=auditLogs.actionType
    INNER JOIN workflows ON workflows.id=auditLogs.workflow WHERE`
  const sorted = 'ORDER BY workflows.completeTS ASC, workflows.id ASC, auditLogs.isEntry DESC, auditLogs.attribute'
  const openFields = ['Approval', 'Flow Name', 'Flow Label', 'Why', 'Whose', 'Whose Mail', 'First', 'Mail']
  const changeFields = ['First', 'Flow Name', 'Started', 'Ended', 'Action', 'Kind', 'Name', 'Value']
  return {
    mine: {
      name: 'mine',
      parameters: { currentUser: true },
      sql: `${open} users.userKey=? AND approvedTS IS NULL ${order}`,
      dataFields: openFields,
    },
    'decided by me': {
      name: 'decided by me',
      parameters: { currentUser: true },
      sql: `${decided} approvers.userKey=? ORDER BY approvals.approvedTS DESC;`,
      dataFields: ['Approval', 'Whose', 'Result', 'Decided At', 'Said'],
    },
    open: { name: 'open', sql: `${open} approvedTS IS NULL ${order}`, dataFields: openFields },
    decided: {
      name: 'decided',
      parameters: { beginDate: true, endDate: true },
      sql: `${decided} approvals.approvedTS >= ? AND approvals.approvedTS <= ? ORDER BY approvals.id ASC, workflows.id ASC;`,
      dataFields: ['Approval', 'First', 'Result', 'Said'],
    },
    'changes of one': {
      name: 'changes of one',
      parameters: { userKey: true },
      sql: `${changes} users.userKey=? ${sorted}`,
      dataFields: changeFields,
    },
    changes: {
      name: 'changes',
      parameters: { beginDate: true, endDate: true },
      sql: `${changes} workflows.completeTS >= ? AND workflows.completeTS <= ? ${sorted}`,
      dataFields: changeFields,
    },
    dormant: {
      name: 'dormant',
      sql: `SELECT ${as(attribute('uid', 'user_id'), 'Login')}, ${as(attribute('mail', 'user_id'), 'Mail')}, ${as('seen', 'Last Login')},
        ${as(daysSince, 'Days')} FROM (SELECT userid AS user_id, max(completeTS) AS seen FROM workflows WHERE name='jitdb' GROUP BY userid) X WHERE ${isOld}`,
      dataFields: ['Login', 'Mail', 'Last Login', 'Days'],
    },
  }
}

type Values = Partial<Record<BoundParameter, string>>

async function run({ one }: Stores, spec: ReportSpec, values: Values = {}): Promise<(string | null)[][]> {
  const { statement, problems, missing } = readReport(spec)
  expect([problems, missing]).toEqual([[], []])
  if (statement === undefined) throw new Error('no statement')
  const { places, ...sql } = statement
  await one.reports.check(sql)
  const bound = places.map((name) => values[name] ?? '')
  const cursor = await one.reports.run({ ...sql, values: bound, limit: 100, timeoutMillis: 60_000 })
  try {
    const at = (spec.dataFields ?? []).map((field) =>
      cursor.columns.findIndex((column) => column.toLowerCase() === field.toLowerCase()),
    )
    const rows: (string | null)[][] = []
    for (let some = await cursor.next(); some !== undefined; some = await cursor.next()) {
      rows.push(...some.map((row) => at.map((i) => row[i] ?? null)))
    }
    return rows
  } finally {
    await cursor.close?.()
  }
}

const day = 86_400_000
const january = Date.UTC(2026, 0, 10, 8)
const iso = (time: number): string => new Date(time).toISOString()

async function fill({ one, sql }: Stores): Promise<void> {
  const people = one.userDirectory({ name: 'people' })
  const names: [string, string, string][] = [
    ['Ann', 'Ann', 'Doe'],
    ['bob', 'Bob', "O'Neil"],
    ['boss', 'Bea', 'Boss'],
  ]
  for (const [userID, givenName, sn] of names) {
    const attributes = { givenName: [givenName], sn: [sn], mail: [`${userID.toLowerCase()}@example.com`] }
    await createUser(people, { userID, attributes: Attributes.from(attributes), groups: [] })
  }
  await people.close()
  // The same login in another directory must not make two rows of one user.
  const others = one.userDirectory({ name: 'others' })
  await createUser(others, { userID: 'ann', attributes: Attributes.from({ mail: ['ann@example.com'] }), groups: [] })
  await others.close()
  const runs = [
    ['r1', 'join', 'waiting', 'ann', 'bob', 'A project', january, 'null'],
    ['r2', 'leave', 'completed', 'bob', 'bob', 'Moving', january + day, january + 2 * day],
  ]
  for (const [id, name, state, subject, requestor, reason, created, ended] of runs) {
    await sql(`insert into runs (id, name, definition, state, subject, subject_key, requestor, requestor_key, reason, data, attempt,
      fence, lease_until, due, touched, created, updated, ended) values ('${id}', '${name}', 'd', '${state}', '${subject}', '${subject}',
      '${requestor}', '${requestor}', '${reason}', '{}', 0, 0, 0, 0, 0, ${created}, ${created}, ${ended})`)
  }
  const approvals = [
    ['a1', 'r1', 'Manager', 'open', january, 'null', 'null', 'null'],
    ['a2', 'r2', 'Owner', 'approved', january + day, january + 2 * day, "'Boss'", "'Fine'"],
    ['a3', 'r2', 'Security', 'denied', january + day, january + 40 * day, "'bob'", "'No'"],
    ['a4', 'r1', 'Gone', 'cancelled', january, january + day, 'null', 'null'],
  ]
  for (const [id, request, label, state, opened, decided, by, comment] of approvals) {
    await sql(`insert into approvals (id, run, step, label, state, opened, decided, decided_by, comment, allow_self, rules, data, escalation, version)
      values ('${id}', '${request}', 1, '${label}', '${state}', ${opened}, ${decided}, ${by}, ${comment}, 0, '[]', '{}', 0, 0)`)
  }
  await sql(`insert into approval_approvers (approval, approver_key, approver, open) values
    ('a1', 'boss', 'Boss', 1), ('a1', 'eve', 'eve', 1), ('a4', 'boss', 'Boss', 0)`)
  const stored = {
    time: new Date(january + 2 * day),
    subject: 'Bob',
    requestor: 'bob',
    workflow: { id: 'r2', name: 'leave' },
  }
  await one.audit.append([
    auditRow('1', { ...stored, kind: 'entry', action: 'delete', attribute: 'uid', value: 'bob' }),
    auditRow('2', { ...stored, kind: 'attribute', action: 'replace', attribute: 'mail', value: 'b@example.com' }),
  ])
  const synchronous = { time: new Date(january + 5 * day), subject: 'ann', workflow: { id: 'call', name: 'scim' } }
  await one.audit.append([auditRow('3', { ...synchronous, attribute: 'team', value: 'red' })])
  await one.audit.append([
    auditRow('4', { ...synchronous, kind: 'entry', action: 'refuse', attribute: 'subject', value: 'ann' }),
  ])
  const login = { kind: 'session', attribute: 'login', target: 'portal', workflow: { id: '', name: 'form' } } as const
  const logins: [string, string, 'issue' | 'refuse', number][] = [
    ['5', 'Ann', 'issue', Date.now() - 45 * day],
    ['6', 'ann', 'refuse', Date.now() - day],
    ['7', 'bob', 'issue', Date.now() - 90 * day],
    ['8', 'bob', 'issue', Date.now() - day],
  ]
  for (const [id, subject, action, time] of logins) {
    await one.audit.append([auditRow(id, { ...login, subject, action, time: new Date(time) })])
  }
}

onEachDatabase("OpenUnison's reports", (freshUrl) => {
  describe.each(Object.entries(dialects))('in the form for %s', (_, dialect) => {
    const reports = formerReports(dialect)
    const filled = async () => {
      const stores = await openStores(await freshUrl())
      await fill(stores)
      return (name: string, values?: Values) => run(stores, reports[name] ?? { name, sql: '' }, values)
    }

    test('show open approvals with subject and approvers', async () => {
      const report = await filled()
      const about = ['Manager', 'join', 'join', 'A project', 'Ann Doe', 'ann@example.com']
      const rows = [
        [...about, 'Bea', 'boss@example.com'],
        [...about, null, null],
      ]
      expect(await report('open')).toEqual(rows)
      expect(await report('mine', { currentUser: 'ANN' })).toEqual(rows)
      expect(await report('mine', { currentUser: 'bob' })).toEqual([])
      expect(await report('mine', { currentUser: "x' or '1'='1" })).toEqual([])
    })

    test('show decisions, of one approver and of a period', async () => {
      const report = await filled()
      const own = ['Owner', "Bob O'Neil", 'Yes', iso(january + 2 * day), 'Fine']
      expect(await report('decided by me', { currentUser: 'boss' })).toEqual([own])
      expect(await report('decided', { beginDate: iso(january), endDate: iso(january + 3 * day) })).toEqual([
        ['Owner', 'Bea', 'Yes', 'Fine'],
      ])
      expect(await report('decided', { beginDate: iso(january), endDate: iso(january + 50 * day) })).toEqual([
        ['Owner', 'Bea', 'Yes', 'Fine'],
        ['Security', 'Bob', 'No', 'No'],
      ])
    })

    test('show changes, also of runs that are not stored, and no refused ones', async () => {
      const report = await filled()
      const bobs = ['Bob', 'leave', iso(january + day), iso(january + 2 * day)]
      const changes = [
        [...bobs, 'Delete', 'Object', 'uid', 'bob'],
        [...bobs, 'Replace', 'Attribute', 'mail', 'b@example.com'],
      ]
      const at = iso(january + 5 * day)
      const anns = ['Ann', 'scim', at, at, 'Add', 'Attribute', 'team', 'red']
      expect(await report('changes of one', { userKey: 'BOB' })).toEqual(changes)
      expect(await report('changes of one', { userKey: 'ann' })).toEqual([anns])
      const period = { beginDate: iso(january), endDate: iso(january + 10 * day) }
      expect(await report('changes', period)).toEqual([...changes, anns])
      expect(await report('changes', { ...period, endDate: iso(january + 3 * day) })).toEqual(changes)
    })

    test('show users who did not log in for long, by their logins', async () => {
      const rows = await (await filled())('dormant')
      expect(rows).toHaveLength(1)
      expect(rows[0]?.slice(0, 2).map((text) => text?.toLowerCase())).toEqual(['ann', 'ann@example.com'])
      expect(Date.parse(rows[0]?.[2] ?? '')).toBeLessThan(Date.now() - 44 * day)
      expect(rows[0]?.[3]).toMatch(/^(?:4[456](?:\.0)?|1 mon 1[3-6] days)$/)
    })
  })

  test('read the rest of its tables, by any name', async () => {
    const stores = await openStores(await freshUrl())
    await fill(stores)
    const rows = (sql: string, ...dataFields: string[]) => run(stores, { name: 'r', sql, dataFields })
    expect(await rows('select t.name from targets t order by t.name', 'name')).toEqual([['people']])
    expect(await rows('select u.`userKey` as `Key` from `users` as u order by u.`userKey`', 'Key')).toEqual([
      ['ann'],
      ['bob'],
    ])
    expect(
      await rows(
        'select w.id, a.id as approval from workflows w left join approvals a on a.workflow = w.id order by w.id, a.id',
        'id',
        'approval',
      ),
    ).toEqual([
      ['call', null],
      ['r1', 'a1'],
      ['r2', 'a2'],
      ['r2', 'a3'],
    ])
    const named = "select value from userAttributes where name = 'givenName' and userid = 'bob'"
    expect(await rows(named, 'value')).toEqual([['Bob']])
    expect(await rows("select 'from users' as t, '`x`' as b from auditLogType where id = 1", 't', 'b')).toEqual([
      ['from users', '`x`'],
    ])
  })
})
