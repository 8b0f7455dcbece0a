import { createSecretKey } from 'node:crypto'
import { StatementSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { AuditSeal } from '#database/audit-seal.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { AuditStore } from './audit-store.ts'

// Hashes and seals are kept outside the database, in anchors and exports: these values must never change.

const entry = (id: string, more: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  time: new Date(Date.UTC(2030, 0, 1)),
  requestor: 'Alice',
  subject: 'Bob',
  workflow: { id: 'run', name: 'create-user' },
  target: 'people',
  kind: 'attribute',
  action: 'add',
  attribute: 'mail',
  value: 'bob@example.com',
  ...more,
})

const all = { requestId: 'req-1', caller: 'Portal', approval: 'approval-1', reason: 'é \u{1f600} "quoted"\0' }
const login = 'system:serviceaccount:shop:cart'
const issuance = entry('jti-1', {
  kind: 'token',
  action: 'issue',
  attribute: 'jti',
  value: 'jti-1',
  requestId: 'jti-1',
  requestor: login,
  subject: login,
  workflow: { id: 'jti-1', name: 'sts' },
  target: 'endpoint',
  reason: '{"pod":"cart-0","ttl":900}',
  recurring: 15,
})

test('the hashes of known entries stay the same', async () => {
  const store = new AuditStore(memoryDatabase())
  await store.append([entry('a'), entry('b', { attribute: 'sn', action: 'replace', value: 'Builder' })])
  const { value: _, ...secret } = entry('c', { ...all, attribute: 'userPassword' })
  await store.append([secret])
  await store.append([issuance])
  const { records } = await store.export({ limit: 10 })
  expect(records.map(({ link, rows }) => [rows.map(({ id }) => id), link])).toEqual([
    [['a', 'b'], { chain: 0, number: 1, hash: 'px7MrJHF81Wwh818mwMpxxV30slF5UDzAu1r87ZydYI' }],
    [['c'], { chain: 0, number: 2, hash: 'sTHTIf5ahdu9qh4xO7od2IdmIbMvuiCZr0nBYivRWFc' }],
    [['jti-1'], { chain: 16, number: 1, hash: 'vMUSbxFngIM7At6GzDoSWrsB8QEksReXthUAvF9Hu9o' }],
  ])
})

test('appends that share a commit move the head of their chain once', async () => {
  const store = new AuditStore(memoryDatabase())
  await store.append([entry('first')])
  const run = vi.spyOn(StatementSync.prototype, 'run')
  const all = vi.spyOn(StatementSync.prototype, 'all')
  onTestFinished(() => void vi.restoreAllMocks())
  // The clock stands still, so that all find the commit open, however busy the machine is.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  await Promise.all(Array.from({ length: 5 }, (_, i) => store.append([entry(`${i}`, { subject: `user-${i}` })])))
  // One insert, one update of the head and the commit.
  expect([run.mock.calls.length, all.mock.calls.length]).toEqual([3, 1])
  vi.restoreAllMocks()
  expect(await store.verify()).toMatchObject({ checked: 6, problems: [] })
})

const seal = new AuditSeal([{ id: 'key-1', key: createSecretKey(Buffer.alloc(32, 7)) }])

test('the seal of a known chain stays the same', () => {
  const filled = seal.sign({
    chain: 3,
    seq: 12,
    hash: 'aGVhZA',
    baseSeq: 4,
    baseHash: 'YmFzZQ',
    sealedSeq: 2,
    sealedAt: 1_893_456_000_000,
    brokenSeq: 7,
  })
  const empty = seal.sign({
    chain: 0,
    seq: 0,
    hash: '',
    baseSeq: 0,
    baseHash: '',
    sealedSeq: null,
    sealedAt: null,
    brokenSeq: null,
  })
  expect([filled.mac, empty.mac]).toEqual([
    'nayPIbRKS7RRyXvs-7lTpQ1tVhoz-veVs-9KAVhUtlQ',
    'JXVYEvlqoL_kO1tEoB73WNXUzsJU3rWY6l_8ckby1_s',
  ])
})

test('the signature of a known anchor stays the same', () => {
  const heads = [
    { chain: 0, number: 12, hash: 'aGVhZA' },
    { chain: 16, number: 1, hash: 'dG9rZW4' },
  ]
  const time = '2030-01-01T00:00:00.000Z'
  const mac = 'VX5lmepFP2Y6S484ENGp7J69biRwEqhggCqpfl6KRY4'
  expect(seal.signAnchor({ time, heads })).toEqual({ time, heads, key: 'key-1', mac })
})
