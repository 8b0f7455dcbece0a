import { expect, onTestFinished, test } from 'vitest'
import { Databases } from '#database/databases.ts'
import type { SqlQuery } from '#database/sql-client.ts'
import { UserDirectoryStore } from '#directory/store/user-directory-store.ts'
import type { JournalEntry } from '#features/scim/journal/journal-entry.ts'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { manyRows } from '#testing/databases/many-rows.ts'
import { openStores, type Stores } from '#testing/databases/stores.ts'
import { auditRow, minute } from '#testing/databases/workflow-stores.ts'
import type { RunState } from '#workflows/record/run.ts'
import { countCallers, countCalls, statisticsStatements } from './statistics-store.ts'

const hour = 60 * minute
const begin = Date.UTC(2030, 5, 1, 0, 30)
const at = (millis: number): Date => new Date(begin + millis)
/** Three hours and a half. */
const query = { from: at(0), to: at(3.5 * hour), partMillis: hour, most: 10 }

const openRuns = { ready: 0, running: 0, waiting: 0, incident: 0 }
const noRuns = { ...openRuns, completed: 0, denied: 0, expired: 0, failed: 0, cancelled: 0 }

let made = 0

async function addRun({ sql }: Stores, name: string, state: RunState, millis: number): Promise<string> {
  const id = `run-${made++}`
  await sql(`insert into runs (id, name, definition, state, subject, subject_key, requestor, requestor_key, data, attempt,
    fence, lease_until, due, touched, created, updated) values ('${id}', '${name}', 'd', '${state}', '${id}', '${id}', 'q', 'q',
    '{}', 0, 0, 0, 0, 0, ${begin + millis}, ${begin + millis})`)
  return id
}

interface Approved {
  readonly state: 'open' | 'approved' | 'denied' | 'cancelled'
  readonly opened: number
  readonly decided?: number
  readonly escalation?: number
}

async function addApproval({ sql }: Stores, run: string, approval: Approved): Promise<void> {
  const { state, opened, decided, escalation = 0 } = approval
  await sql(`insert into approvals (id, run, step, label, state, opened, decided, allow_self, rules, data, escalation, version)
    values ('approval-${made++}', '${run}', 1, 'l', '${state}', ${begin + opened},
    ${decided === undefined ? 'null' : begin + decided}, 0, '[]', '{}', ${escalation}, 0)`)
}

const call = (caller: string, status: number, millis: number): JournalEntry => ({
  time: at(millis),
  requestId: 'r',
  caller,
  method: 'GET',
  path: '/scim/Users',
  status,
  millis: 1,
  workflows: [],
})

onEachDatabase('statistics', (freshUrl) => {
  const open = async () => openStores(await freshUrl())

  test('returns no counts for an empty database', async () => {
    const { one } = await open()
    expect(await one.statistics.count(query)).toEqual({
      requests: [],
      workflows: [],
      opened: [],
      decided: [],
      decisionMillis: [],
      tokens: [],
      calls: [],
      callers: [],
    })
  })

  test('counts requests by the interval in which they began, by state and by workflow', async () => {
    const stores = await open()
    await addRun(stores, 'early', 'completed', -1)
    await addRun(stores, 'join', 'completed', 0)
    await addRun(stores, 'join', 'completed', hour - 1)
    await addRun(stores, 'join', 'waiting', hour)
    await addRun(stores, 'leave', 'incident', 3 * hour)
    await addRun(stores, 'leave', 'failed', 3.5 * hour - 1)
    await addRun(stores, 'move', 'cancelled', 3 * hour)
    await addRun(stores, 'move', 'denied', 2 * hour)
    await addRun(stores, 'late', 'completed', 3.5 * hour)
    const { requests, workflows } = await stores.one.statistics.count({ ...query, most: 2 })
    expect(requests.toSorted((a, b) => a.part - b.part)).toEqual([
      { ...noRuns, part: 0, completed: 2 },
      { ...noRuns, part: 1, waiting: 1 },
      { ...noRuns, part: 2, denied: 1 },
      { ...noRuns, part: 3, incident: 1, failed: 1, cancelled: 1 },
    ])
    expect(workflows).toEqual([
      { ...noRuns, name: 'join', completed: 2, waiting: 1 },
      { ...noRuns, name: 'leave', incident: 1, failed: 1 },
    ])
  })

  test('counts opened and decided approvals by interval, with the median decision time', async () => {
    const stores = await open()
    const run = await addRun(stores, 'join', 'waiting', 0)
    await addApproval(stores, run, { state: 'open', opened: 1, escalation: 2 })
    await addApproval(stores, run, { state: 'approved', opened: -9 * hour, decided: hour })
    await addApproval(stores, run, { state: 'approved', opened: 2, decided: hour + 2 })
    await addApproval(stores, run, { state: 'denied', opened: hour, decided: hour + 100 })
    await addApproval(stores, run, { state: 'approved', opened: 3 * hour, decided: 3 * hour + 100 })
    await addApproval(stores, run, { state: 'denied', opened: 3 * hour, decided: 3 * hour + 301 })
    await addApproval(stores, run, { state: 'cancelled', opened: 3 * hour, decided: 3 * hour + 5, escalation: 1 })
    await addApproval(stores, run, { state: 'approved', opened: 4 * hour, decided: 5 * hour })
    const counts = await stores.one.statistics.count(query)
    const { opened, decided, decisionMillis, decisionMillisOfAll } = counts
    const inOrder = <T extends { readonly part: number }>(rows: readonly T[]) =>
      rows.toSorted((a, b) => a.part - b.part)
    expect(inOrder(opened)).toEqual([
      { part: 0, opened: 2, escalated: 1 },
      { part: 1, opened: 1, escalated: 0 },
      { part: 3, opened: 3, escalated: 1 },
    ])
    expect(inOrder(decided)).toEqual([
      { part: 1, approved: 2, denied: 1 },
      { part: 3, approved: 1, denied: 1 },
    ])
    expect(inOrder(decisionMillis)).toEqual([
      { part: 1, median: hour },
      { part: 3, median: 200 },
    ])
    expect(decisionMillisOfAll).toBe(301)
  })

  test('counts token decisions one by one, and no other audit rows', async () => {
    const { one } = await open()
    const token = (id: string, action: 'issue' | 'refuse', by: string, millis: number) =>
      auditRow(id, { kind: 'token', action, workflow: { id: 'call', name: by }, time: at(millis), attribute: 'jti' })
    await one.audit.append([
      auditRow('change', { time: at(0) }),
      auditRow('login', { time: at(0), kind: 'session', action: 'issue', attribute: 'token', value: 'token' }),
      token('before', 'issue', 'sts', -1),
      token('a', 'issue', 'sts', 0),
      token('b', 'issue', 'sts', 0),
      token('c', 'refuse', 'sts', 1),
      token('d', 'issue', 'idp people', 2 * hour),
      token('e', 'refuse', 'idp others', 2 * hour),
      token('f', 'refuse', 'idp people', 2 * hour + 1),
    ])
    const { tokens } = await one.statistics.count(query)
    expect(tokens.toSorted((a, b) => a.part - b.part)).toEqual([
      { part: 0, stsIssued: 2, stsRefused: 1, issuerIssued: 0, issuerRefused: 0 },
      { part: 2, stsIssued: 0, stsRefused: 0, issuerIssued: 1, issuerRefused: 2 },
    ])
    expect((await one.audit.verify()).problems).toEqual([])
  })

  test('counts calls of the given journals by interval, status class, gateway and caller', async () => {
    const { one } = await open()
    const long = 'x'.repeat(10_000)
    await one.journal.append([
      { journal: 'a', keep: 100, entries: [call('okta', 200, 0), call('okta', 404, 1), call('hr', 500, 2 * hour)] },
      { journal: 'b', keep: 100, entries: [call('okta', 399, 0), call(long, 599, 1), call('hr', 499, -1)] },
    ])
    const all = await one.statistics.count(query)
    expect(all.calls.toSorted((a, b) => a.part - b.part)).toEqual([
      { part: 0, answered: 2, refused: 1, failed: 1 },
      { part: 2, answered: 0, refused: 0, failed: 1 },
    ])
    expect(all.callers).toEqual([
      { journal: 'a', caller: 'okta', answered: 1, refused: 1, failed: 0 },
      { journal: 'a', caller: 'hr', answered: 0, refused: 0, failed: 1 },
      { journal: 'b', caller: 'okta', answered: 1, refused: 0, failed: 0 },
      { journal: 'b', caller: long, answered: 0, refused: 0, failed: 1 },
    ])
    const some = await one.statistics.count({ ...query, journals: ['b', 'c', 'not \0 storable'], most: 1 })
    expect(some.calls).toEqual([{ part: 0, answered: 1, refused: 0, failed: 1 }])
    expect(some.callers).toEqual([{ journal: 'b', caller: 'okta', answered: 1, refused: 0, failed: 0 }])
    for (const journals of [[], ['\0'], ["a' or 'a' = 'a"]]) {
      expect(await one.statistics.count({ ...query, journals })).toMatchObject({ calls: [], callers: [] })
    }
  })

  test('scans no whole table', async () => {
    const { client, release } = new Databases({ clock: systemClock, log: silentLogger }).use(await freshUrl())
    onTestFinished(release)
    const { dialect } = client
    const people = new UserDirectoryStore(client, 'people', systemClock, async () => {})
    await createUser(people, { userID: 'ann', groups: ['admins'], attributes: new Attributes() })
    // Between indexes of an empty table PostgreSQL chooses at random, once its background process has counted the rows.
    const counts = { users: 10, groups: 10, runs: 2_000, audit: 2_000, journal: 2_000 }
    await client.transaction(async (tx) => {
      for (const sql of manyRows(dialect, counts)) await tx.run({ sql, params: [], name: undefined })
    })
    const { requests, workflows, opened, decided, medians, tokens } = statisticsStatements
    const span = { from: 1_000, to: 2_000, width: 10, most: 5 }
    const journals = ['a', 'b']
    const statements: Readonly<Record<string, SqlQuery<unknown>>> = {
      runs_by_creation: requests.query(dialect, span),
      'runs_by_creation by name': workflows.query(dialect, span),
      approvals_by_opening: opened.query(dialect, span),
      approvals_by_decision: decided.query(dialect, span),
      'approvals_by_decision for the median': medians.query(dialect, span),
      audit_tokens: tokens.query(dialect, span),
      journal_by_time: countCalls(dialect, span, undefined),
      'journal_by_time by caller': countCallers(dialect, span, undefined),
      'journal_by_time of some': countCalls(dialect, span, journals),
      'journal_by_time of some by caller': countCallers(dialect, span, journals),
    }
    for (const [name, { sql, params }] of Object.entries(statements)) {
      const explain = dialect === 'sqlite' ? 'explain query plan' : 'explain'
      const plan = await client.transaction(async (tx) => {
        // Planners would read such small tables as a whole, despite indexes.
        if (dialect === 'postgres') await tx.run({ sql: 'set local enable_seqscan = off', params: [], name: undefined })
        return await tx.query({ sql: `${explain} ${sql}`, params, name: undefined })
      })
      const [index = ''] = name.split(' ')
      const text = JSON.stringify(plan)
      expect({ name, text }).toEqual({ name, text: expect.stringContaining(index) })
      expect({ name, text }).toEqual({
        name,
        text: expect.not.stringMatching(/SCAN (?:runs|approvals|audit|journal)|Seq Scan/),
      })
      if (dialect === 'sqlite' && !name.endsWith('by caller'))
        expect({ name, text }).toEqual({ name, text: expect.stringContaining('COVERING INDEX') })
    }
  })
})
