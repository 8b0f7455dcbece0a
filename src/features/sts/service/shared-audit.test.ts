import { expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { SharedAudit } from './shared-audit.ts'

const row = (id: string): AuditEntry => ({
  id,
  time: new Date(0),
  requestor: '',
  subject: '',
  workflow: { id, name: 'sts' },
  target: 'cloud',
  kind: 'token',
  action: 'issue',
  attribute: 'jti',
})

/** Records what was written together; rejects a batch with one of the rows in `bad`. */
function fakeStore(bad: readonly string[] = [], failure = new GatewayError('CONFLICT', 'bad row')) {
  const commits: string[][] = []
  return {
    commits,
    append: async (rows: readonly AuditEntry[]) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (rows.some(({ id }) => bad.includes(id))) throw failure
      commits.push(rows.map(({ id }) => id))
    },
  }
}

const decide = (audit: SharedAudit, id: string, millis = 0): Promise<void> =>
  audit.during(async () => {
    // All of them have begun before the first one has a row.
    await (millis === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, millis)))
    await audit.append(row(id))
  })

test('concurrent decisions share a commit, in order', async () => {
  const store = fakeStore()
  const audit = new SharedAudit(store)
  await Promise.all(['a', 'b', 'c'].map((id) => decide(audit, id)))
  expect(store.commits).toEqual([['a', 'b', 'c']])
})

test('a single decision is written without a wait', async () => {
  const store = fakeStore()
  const audit = new SharedAudit(store)
  const written = decide(audit, 'a')
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  expect(store.commits).toEqual([['a']])
  await written
})

test('no row waits for a slow decision, or one that ends without a row', async () => {
  const store = fakeStore()
  const audit = new SharedAudit(store)
  const slow = decide(audit, 'slow', 300)
  await decide(audit, 'a')
  expect(store.commits).toEqual([['a']])
  const withoutRow = audit.during(() => new Promise((resolve) => setTimeout(resolve, 1)))
  await Promise.all([slow, withoutRow])
  expect(store.commits).toEqual([['a'], ['slow']])
})

test('rows that arrive during a commit wait for signatures too, instead of following it at once', async () => {
  const store = fakeStore()
  const audit = new SharedAudit(store)
  const first = decide(audit, 'a')
  await new Promise((resolve) => process.nextTick(resolve))
  await Promise.all([first, decide(audit, 'b'), decide(audit, 'c', 2)])
  expect(store.commits).toEqual([['a'], ['b', 'c']])
})

test('more rows than one commit takes are written in several', async () => {
  const store = fakeStore()
  const audit = new SharedAudit(store)
  const ids = Array.from({ length: 300 }, (_, i) => String(i))
  await Promise.all(ids.map((id) => decide(audit, id)))
  expect(store.commits.flat()).toEqual(ids)
  expect(Math.max(...store.commits.map(({ length }) => length))).toBe(128)
})

test('a row that cannot be written fails alone', async () => {
  const store = fakeStore(['b'])
  const audit = new SharedAudit(store)
  const outcomes = await Promise.allSettled(['a', 'b', 'c'].map((id) => decide(audit, id)))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(store.commits).toEqual([['a'], ['c']])
})

test.each(['TARGET_UNREACHABLE', 'TARGET_TIMEOUT'] as const)(
  'while the database is unavailable (%s), each gets one error and nothing is retried',
  async (code) => {
    const store = fakeStore(['a'], new GatewayError(code, 'away'))
    const audit = new SharedAudit(store)
    const outcomes = await Promise.allSettled(['a', 'b'].map((id) => decide(audit, id)))
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(store.commits).toEqual([])
  },
)
