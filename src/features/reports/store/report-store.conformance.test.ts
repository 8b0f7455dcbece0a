import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { reportViews } from '#config/report-statements/report-views.ts'
import type { ReportRow } from '#features/reports/report-reader.ts'
import { Attributes } from '#identity/attributes.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { auditRow, minute, newRun } from '#testing/databases/workflow-stores.ts'
import type { ReportStore } from './report-store.ts'

const patient = { limit: 1000, timeoutMillis: 20_000 }

async function allRows(
  reports: ReportStore,
  parts: readonly string[],
  values: readonly string[] = [],
  more: Partial<typeof patient> = {},
): Promise<{ readonly columns: readonly string[]; readonly rows: readonly ReportRow[] }> {
  const cursor = await reports.run({ parts, values, ...patient, ...more })
  try {
    const rows: ReportRow[] = []
    for (let some = await cursor.next(); some !== undefined; some = await cursor.next()) rows.push(...some)
    return { columns: cursor.columns, rows }
  } finally {
    await cursor.close?.()
  }
}

/** Ten million rows, computed from no stored data. */
const endless = (views: number): string =>
  `select count(*) as n from ${Array.from({ length: views }, (_, i) => `report_approvers a${i}`).join(' cross join ')}`

onEachDatabase('reports', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('returns rows as text with column names, and binds values', async () => {
    const { one, two } = await open()
    const statement = ['select id, state as "The State", ended from report_requests where subject =', 'order by id']
    expect(await allRows(one.reports, statement, ['x'])).toEqual({ columns: ['id', 'The State', 'ended'], rows: [] })
    await one.runs.start(newRun('a', { head: { subject: "it's" } }))
    await one.runs.start(newRun('b', { head: { subject: 'x' } }))
    const { rows } = await allRows(two.reports, statement, ["it's"])
    expect(rows).toEqual([['a', 'ready', null]])
    expect((await allRows(two.reports, statement, ["x' or '1'='1"])).rows).toEqual([])
    expect((await allRows(two.reports, ['select count(*) as n, 1.5 as f from report_requests'])).rows).toEqual([
      ['2', '1.5'],
    ])
  })

  test('returns rows in batches up to the limit, and can stop early', async () => {
    const { one, sql } = await open()
    await fill(sql, 1300)
    const all = ['select id from report_approvals order by id']
    expect((await allRows(one.reports, all, [], { limit: 5000 })).rows).toHaveLength(1300)
    const some = await allRows(one.reports, all, [], { limit: 501 })
    expect(some.rows.map(([id]) => id)).toEqual(Array.from({ length: 501 }, (_, i) => `a${String(i).padStart(5, '0')}`))
    const cursor = await one.reports.run({ parts: all, values: [], ...patient })
    expect((await cursor.next())?.length).toBeGreaterThan(0)
    await cursor.close?.()
    await cursor.close?.()
    await expect(cursor.next()).rejects.toThrow('closed')
  })

  test('D21: stops a report that takes too long, without blocking others meanwhile', async () => {
    const { one, sql } = await open()
    await fill(sql, 400)
    const started = performance.now()
    const slow = expect(
      one.reports.run({ parts: [endless(5)], values: [], limit: 10, timeoutMillis: 1500 }),
    ).rejects.toMatchObject({ code: 'TARGET_TIMEOUT' })
    await delay(300)
    const first = await Promise.race([one.runs.start(newRun('meanwhile')).then(() => 'run'), slow.then(() => 'report')])
    expect(first).toBe('run')
    await slow
    expect(performance.now() - started).toBeLessThan(30_000)
    expect((await allRows(one.reports, ['select id from report_requests where id =', ''], ['meanwhile'])).rows).toEqual(
      [['meanwhile']],
    )
  })

  test('fails a report that takes too much memory, and only that one', async () => {
    const { one, sql, dialect } = await open()
    // PostgreSQL writes what does not fit into memory to temporary files.
    if (dialect !== 'sqlite') return
    await fill(sql, 2000)
    const parts = [
      `select a.id || b.id || '${'x'.repeat(1000)}' as t from report_approvals a cross join report_approvals b order by t`,
    ]
    await expect(allRows(one.reports, parts)).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.stringContaining('too much memory'),
    })
  })

  test('stops a report whose rows are not fetched in time', async () => {
    const { one, sql } = await open()
    await fill(sql, 2000)
    const parts = ['select a.id, b.id from report_approvals a cross join report_approvals b']
    const cursor = await one.reports.run({ parts, values: [], limit: 1_000_000, timeoutMillis: 4000 })
    await delay(4500)
    const rest = async () => {
      while ((await cursor.next()) !== undefined);
    }
    await expect(rest()).rejects.toMatchObject({ code: 'TARGET_TIMEOUT' })
    await cursor.close?.()
  })

  test('stops running reports when it is closed', async () => {
    const { one, sql } = await open()
    await fill(sql, 400)
    const cursor = await one.reports.run({ parts: ['select id from report_approvals'], values: [], ...patient })
    await one.reports.close()
    await expect(cursor.next()).rejects.toThrow('closed')
    await expect(allRows(one.reports, ['select id from report_approvals'])).rejects.toMatchObject({
      code: 'SHUTTING_DOWN',
    })
  })

  test('checks a statement without running it', async () => {
    const { one } = await open()
    await one.reports.check({
      parts: ['select id from report_requests where started >=', 'and requestor =', 'order by id'],
    })
    for (const parts of [['select nothing from report_requests'], ['select id from report_nothing'], ['selec 1']]) {
      await expect(one.reports.check({ parts })).rejects.toMatchObject({ code: 'INTERNAL' })
      await expect(allRows(one.reports, parts)).rejects.toMatchObject({ code: 'INTERNAL' })
    }
  })

  test('reports errors that occur while rows are read', async () => {
    const { one, dialect } = await open()
    await one.runs.start(newRun('a'))
    const fails = dialect === 'sqlite' ? 'select abs(-9223372036854775808) as n' : 'select 1 / (attempt - attempt) as n'
    await one.reports.check({ parts: [`${fails} from report_steps`] })
    const cause =
      dialect === 'sqlite' ? `${fails} from report_requests` : 'select 1 / (length(id) - 1) as n from report_requests'
    await expect(allRows(one.reports, [cause])).rejects.toMatchObject({ code: 'INTERNAL' })
  })

  describe('writes nothing, even with an unchecked statement', () => {
    test.each([
      "insert into runs (id) values ('x')",
      'delete from runs',
      'with gone as (delete from runs returning id) select id from gone',
      'select 1; delete from runs',
      'drop view report_requests',
      'create table other (a text)',
    ])('%s', async (statement) => {
      const { one, sql } = await open()
      await one.runs.start(newRun('a'))
      await allRows(one.reports, [statement]).catch(() => undefined)
      expect(await sql('select id from runs')).toEqual([{ id: 'a' }])
    })
  })

  test('reads only report views on SQLite', async () => {
    const { one, dialect } = await open()
    if (dialect !== 'sqlite') return
    for (const statement of [
      'select id from sessions',
      'select user_id from report_requests not indexed, sessions',
      "select * from pragma_table_info('runs')",
      'select name from sqlite_schema',
      'with recursive n (i) as (select 1 union all select i + 1 from n) select i from n',
    ]) {
      await expect(one.reports.check({ parts: [statement] })).rejects.toThrow(/prohibited|not authorized/)
    }
  })

  test('shows times in ISO 8601, in UTC, to the millisecond', async () => {
    const { one, sql } = await open()
    const times = [0, 1, 999, 1_763_205_252_123, 1_709_164_799_999, 4_102_444_800_001]
    for (const [i, time] of times.entries()) {
      await one.audit.append([auditRow(`t${i}`, { time: new Date(time) })])
    }
    const { rows } = await allRows(one.reports, ['select at from report_changes order by at'])
    expect(rows.flat()).toEqual(times.toSorted((a, b) => a - b).map((time) => new Date(time).toISOString()))
    expect(await sql('select count(*) as n from audit')).toMatchObject([{ n: expect.anything() }])
  })

  test('lists changes, logins and tokens in separate views', async () => {
    const { one } = await open()
    const time = new Date(Date.UTC(2030, 0, 1))
    await one.audit.append([
      auditRow('1', { kind: 'entry', action: 'add', attribute: 'uid', value: 'bob', approval: 'ap', reason: 'why' }),
      auditRow('2', { kind: 'entry', action: 'add', attribute: 'x', approval: 'ap', reason: 'why' }),
    ])
    const login = { kind: 'session', attribute: 'login', target: 'portal', workflow: { id: '', name: 'form' } } as const
    await one.audit.append([auditRow('3', { ...login, action: 'refuse', subject: 'eve', reason: '{}' })])
    await one.audit.append([auditRow('4', { kind: 'token', action: 'issue', target: 'sts', value: 'jti' })])
    const [subject, id] = ['system:serviceaccount:shop:cart', 'compact']
    await one.audit.append([
      {
        ...auditRow(id, { kind: 'token', action: 'issue', target: 'sts', attribute: 'jti', value: id, requestId: id }),
        ...{ subject, requestor: subject, workflow: { id, name: 'sts' }, reason: '{"pod":"p","ttl":9}', recurring: 10 },
      },
    ])
    const at = time.toISOString()
    const changes =
      'select number, kind, action, attribute, value, approval, reason, at from report_changes order by number'
    expect((await allRows(one.reports, [changes])).rows).toEqual([
      ['0', 'entry', 'add', 'uid', 'bob', 'ap', 'why', at],
      ['1', 'entry', 'add', 'x', 'bob@example.com', 'ap', 'why', at],
    ])
    expect((await allRows(one.reports, ['select * from report_logins'])).rows).toEqual([
      ['eve', 'form', 'portal', 'refused', '{}', at],
    ])
    const tokens = 'select outcome, endpoint, subject, details, at from report_tokens order by subject'
    expect((await allRows(one.reports, [tokens])).rows).toEqual([
      ['issued', 'sts', 'bob', null, at],
      ['issued', 'sts', subject, '{"pod":"p","ttl":9}', at],
    ])
  })

  test('shows names of users, and no other attributes', async () => {
    const { one } = await open()
    const directory = one.userDirectory({ name: 'people' })
    const attributes = { sn: ['Doe'], mail: ['ann@example.com', 'b@example.com'], userPassword: ['secret'] }
    await createUser(directory, { userID: 'Ann', attributes: Attributes.from(attributes), groups: ['Staff'] })
    await directory.close()
    const { columns, rows } = await allRows(one.reports, ['select * from report_people'])
    const row = Object.fromEntries(columns.map((name, i) => [name, rows[0]?.[i]]))
    expect(row).toMatchObject({
      directory: 'people',
      login: 'Ann',
      first_name: null,
      last_name: 'Doe',
      email: 'ann@example.com',
    })
    expect(JSON.stringify(rows)).not.toContain('secret')
    expect((await allRows(one.reports, ['select group_name, login from report_memberships'])).rows).toEqual([
      ['Staff', 'Ann'],
    ])
  })

  test('has the views that statements are checked against, column by column', async () => {
    const { one, dialect, sql } = await open()
    const made = await sql(
      dialect === 'sqlite'
        ? "select name from sqlite_schema where type = 'view' order by name"
        : 'select table_name as name from information_schema.views where table_schema = current_schema() order by 1',
    )
    const names = made.map(({ name }) => String(name)).filter((name) => name.startsWith('report_'))
    expect(names).toEqual(Object.keys(reportViews).sort())
    for (const [view, columns] of Object.entries(reportViews)) {
      expect({ view, columns: (await allRows(one.reports, [`select * from ${view}`])).columns }).toEqual({
        view,
        columns,
      })
    }
  })
})

/** Approvals of one run, each with one approver. */
async function fill(sql: Stores['sql'], count: number): Promise<void> {
  await sql(`insert into runs (id, name, definition, state, subject, subject_key, requestor, requestor_key, data, attempt,
    fence, lease_until, due, touched, created, updated) values ('r', 'n', 'd', 'waiting', 's', 's', 'q', 'q', '{}', 0, 0, 0, 0, 0,
    ${minute}, ${minute})`)
  const values = (one: (id: string) => string): string =>
    Array.from({ length: count }, (_, i) => one(`a${String(i).padStart(5, '0')}`)).join(', ')
  await sql(`insert into approvals (id, run, step, label, state, opened, allow_self, rules, data, escalation, version)
    values ${values((id) => `('${id}', 'r', 1, 'l', 'open', 1, 0, '[]', '{}', 0, 0)`)}`)
  await sql(`insert into approval_approvers (approval, approver_key, approver, open)
    values ${values((id) => `('${id}', 'boss', 'Boss', 1)`)}`)
}
