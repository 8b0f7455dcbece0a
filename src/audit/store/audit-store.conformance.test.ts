import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { AuditStore } from './audit-store.ts'

/** In the past, so that the entries about pruning are the latest. */
const at = (second: number): Date => new Date(Date.UTC(2020, 0, 1) + second * 1000)

function row(id: string, more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id,
    time: at(0),
    requestor: 'app',
    subject: 'alice',
    workflow: { id: 'run-1', name: 'create-user' },
    target: 'people',
    kind: 'attribute',
    action: 'add',
    attribute: 'mail',
    value: 'alice@example.com',
    requestId: 'r-1',
    ...more,
  }
}

const ids = (rows: readonly AuditEntry[]): string[] => rows.map(({ id }) => id)

onEachDatabase('audit', (freshUrl) => {
  const open = async () => (await openStores(await freshUrl())).one.audit

  test('entries are read as they were written, latest first', async () => {
    const store = await open()
    const { value: _, requestId: __, ...secret } = row('b', { attribute: 'userPassword', action: 'replace' })
    await store.append([row('a'), secret])
    expect(await store.list({ limit: 10 })).toEqual({ rows: [secret, row('a')] })
  })

  test('all entries are written, or none', async () => {
    const store = await open()
    await store.append([row('a')])
    await expect(store.append([row('b', { subject: 'bob' }), row('a'), row('c')])).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(ids((await store.list({ limit: 10 })).rows)).toEqual(['a'])
    await store.append([])
  })

  test('of concurrent appends, only the one with existing entries fails', async () => {
    const store = await open()
    await store.append([row('a')])
    const appends = ['b', 'a', 'c'].map((id) => store.append([row(id, { subject: id })]))
    const results = await Promise.allSettled(appends)
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(results[1]).toMatchObject({ reason: { code: 'CONFLICT' } })
    expect(ids((await store.list({ limit: 10 })).rows).sort()).toEqual(['a', 'b', 'c'])
    expect(await store.verify()).toMatchObject({ checked: 3, problems: [] })
  })

  test('every filter narrows', async () => {
    const store = await open()
    await store.append([
      row('a'),
      row('b', { requestor: 'Bob' }),
      row('c', { subject: 'Carol' }),
      row('d', { workflow: { id: 'run-2', name: 'create-user' } }),
      row('e', { target: 'other' }),
      row('f', { requestId: 'r-2' }),
      row('g', { time: at(100) }),
    ])
    const found = async (query: object) => ids((await store.list({ limit: 10, ...query })).rows)
    expect(await found({ requestor: 'bob' })).toEqual(['b'])
    expect(await found({ subject: 'CAROL' })).toEqual(['c'])
    expect(await found({ workflowId: 'run-2' })).toEqual(['d'])
    expect(await found({ target: 'other' })).toEqual(['e'])
    expect(await found({ requestId: 'r-2' })).toEqual(['f'])
    expect(await found({ from: at(100) })).toEqual(['g'])
    expect(await found({ until: at(100) })).toEqual(['f', 'e', 'd', 'c', 'b', 'a'])
    expect(await found({ requestor: 'bob', subject: 'carol' })).toEqual([])
    expect(await found({ subject: "x' or '1'='1" })).toEqual([])
    expect(await found({ subject: 'a\0b' })).toEqual([])
  })

  test('pages follow each other without gap or repetition, while entries are added', async () => {
    const store = await open()
    await store.append(Array.from({ length: 205 }, (_, i) => row(`${i}`)))
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await store.list({ limit: 50, ...(after === undefined ? {} : { after }) })
      expect(page.rows.length).toBeLessThanOrEqual(50)
      seen.push(...ids(page.rows))
      after = page.next
      await store.append([row(`later-${seen.length}`)])
    } while (after !== undefined)
    expect(seen).toEqual(Array.from({ length: 205 }, (_, i) => `${204 - i}`))
  })

  test('pages of a period or a target are in the order of time, all others in the order of writing', async () => {
    const store = await open()
    const times = [5, 1, 4, 4, 2, 9, 3]
    for (const [i, time] of times.entries()) {
      await store.append([row(`${i}`, { time: at(time), target: i % 2 === 0 ? 'even' : 'odd' })])
    }
    const pages = async (query: object) => {
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await store.list({ ...query, limit: 2, ...(after === undefined ? {} : { after }) })
        seen.push(...ids(page.rows))
        after = page.next
      } while (after !== undefined)
      return seen
    }
    expect(await pages({})).toEqual(['6', '5', '4', '3', '2', '1', '0'])
    expect(await pages({ from: at(2), until: at(9) })).toEqual(['0', '3', '2', '6', '4'])
    expect(await pages({ target: 'even', until: at(5) })).toEqual(['2', '6', '4'])
    expect(await pages({ requestId: 'r-1', from: at(4) })).toEqual(['5', '3', '2', '0'])
  })

  test('a page has at most 500 entries, and a malformed cursor is rejected', async () => {
    const store = await open()
    await store.append(Array.from({ length: 600 }, (_, i) => row(`${i}`)))
    expect((await store.list({ limit: 1_000_000 })).rows).toHaveLength(500)
    expect((await store.list({ limit: Number.NaN })).rows).toHaveLength(1)
    await expect(store.list({ limit: 1, after: '1; drop table audit' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('an entry with any characters and of any length is written', async () => {
    const store = await open()
    const long = 'x'.repeat(100_000)
    await store.append([row('a', { value: 'a\0b\ud800', subject: long, requestor: 'é\u{1f600}' })])
    const [found] = (await store.list({ limit: 1, subject: long.toUpperCase() })).rows
    expect(found).toMatchObject({ value: 'a\ufffdb\ufffd', subject: long, requestor: 'é\u{1f600}' })
  })

  test('parallel appends are all stored, each whole', async () => {
    const store = await open()
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        store.append([row(`${i}-a`, { requestId: `${i}` }), row(`${i}-b`, { requestId: `${i}` })]),
      ),
    )
    const { rows } = await store.list({ limit: 100 })
    expect(rows).toHaveLength(80)
    expect(ids((await store.list({ limit: 10, requestId: '7' })).rows)).toEqual(['7-b', '7-a'])
  })

  /** As the token service writes an issuance. */
  const issuance = (id: string, more: Partial<AuditEntry> = {}): AuditEntry => {
    const subject = more.subject ?? 'system:serviceaccount:shop:cart'
    const start = `{"kid":"k1","pod":"${subject.slice(-4)}-0"`
    const whole: AuditEntry = {
      id,
      time: at(0),
      requestor: subject,
      subject,
      workflow: { id, name: 'sts' },
      target: 'aws',
      kind: 'token',
      action: 'issue',
      attribute: 'jti',
      value: id,
      requestId: id,
      reason: `${start},"ttl":900}`,
      recurring: start.length,
    }
    return { ...whole, ...more }
  }
  const asRead = ({ recurring: _, ...row }: AuditEntry): AuditEntry => row

  test('issuances are read as they were written, and found by each of their properties', async () => {
    const store = await open()
    const day = 24 * 3600
    const rows = [
      issuance('one'),
      issuance('two', { time: at(5) }),
      issuance('three', { subject: 'system:serviceaccount:shop:till', requestor: 'system:serviceaccount:shop:till' }),
      issuance('four', { time: at(day) }),
      // None of these is like the others, so each is stored whole.
      issuance('five', { requestId: 'another' }),
      issuance('six', { subject: 'Robot', requestor: 'Robot' }),
      issuance('seven', { value: 'another' }),
      issuance('eight', { reason: 'no "recurring', recurring: 400 }),
      issuance('nine', { requestor: 'somebody', caller: 'else' }),
      issuance('ten', { action: 'refuse' }),
      issuance('"eleven"', {}),
      issuance('long', { subject: 'x'.repeat(3000), requestor: 'x'.repeat(3000) }),
    ]
    for (const one of rows) await store.append([one])
    const [twelve, thirteen] = [issuance('twelve'), issuance('thirteen')]
    await store.append([twelve, row('plain'), thirteen])
    const all = [...rows, twelve, row('plain'), thirteen].map(asRead)
    const read = await store.list({ limit: 100 })
    expect(read.rows).toEqual(all.toReversed())
    expect((await store.export({ limit: 100 })).records.flatMap((record) => record.rows)).toEqual(all)
    const found = async (query: Partial<Parameters<AuditStore['list']>[0]>) =>
      ids((await store.list({ limit: 100, ...query })).rows).toReversed()
    const where = (test: (one: AuditEntry) => boolean) => ids(all.filter(test))
    const cart = 'system:serviceaccount:shop:cart'
    for (const login of [cart, cart.toUpperCase(), 'Robot', 'alice', 'app', 'somebody']) {
      const same = (text: string): boolean => text.toLowerCase() === login.toLowerCase()
      expect(await found({ subject: login })).toEqual(where(({ subject }) => same(subject)))
      expect(await found({ requestor: login })).toEqual(where(({ requestor }) => same(requestor)))
    }
    for (const id of ['one', 'five', 'another', 'run-1', 'r-1', 'plain']) {
      expect(await found({ workflowId: id })).toEqual(where(({ workflow }) => workflow.id === id))
      expect(await found({ requestId: id })).toEqual(where(({ requestId }) => requestId === id))
    }
    expect(await found({ target: 'aws', subject: cart, from: at(1), until: at(10) })).toEqual(['two'])
    expect((await store.verify()).problems).toEqual([])
    await store.append([issuance('nul', { subject: 'a\0b', requestor: 'a\0b' })])
    expect((await store.list({ limit: 1 })).rows).toMatchObject([{ id: 'nul', subject: 'a\ufffdb' }])
  })

  test('decisions about tokens are pruned separately from the rest', async () => {
    const store = await open()
    for (const second of [0, 1, 2, 3, 4, 5]) {
      await store.append([issuance(`token-${second}`, { time: at(second) })])
      await store.append([row(`row-${second}`, { time: at(second) })])
    }
    expect(await store.size()).toEqual({ tokens: 6, others: 6 })
    expect(await store.keptSince('tokens', 6)).toBeUndefined()
    expect(await store.keptSince('tokens', 2)).toEqual(at(4))
    expect(await store.prune(at(4), { by: 'test', part: 'tokens' })).toEqual({ removed: 4, waiting: [] })
    const left = async () =>
      ids((await store.list({ limit: 100 })).rows)
        .filter((id) => /^(token|row)-/.test(id))
        .sort()
    expect(await left()).toEqual(['row-0', 'row-1', 'row-2', 'row-3', 'row-4', 'row-5', 'token-4', 'token-5'])
    expect(await store.size()).toEqual({ tokens: 2, others: 7 })
    expect(await store.prune(at(5), { by: 'test', part: 'others' })).toEqual({ removed: 5, waiting: [] })
    expect(await left()).toEqual(['row-5', 'token-4', 'token-5'])
    expect((await store.verify()).problems).toEqual([])
    await store.append([issuance('later', { time: at(100) })])
    expect((await store.list({ limit: 1 })).rows).toEqual([asRead(issuance('later', { time: at(100) }))])
    const entries = (await store.list({ limit: 100 })).rows.filter(({ kind }) => kind === 'audit')
    expect(entries.map(({ value }) => value).sort()).toEqual([
      `before ${at(4).toISOString()} (tokens)`,
      `before ${at(5).toISOString()} (all but tokens)`,
    ])
    expect(await store.prune(at(1000), { by: 'test', part: 'tokens' })).toMatchObject({ removed: 3 })
    expect(await store.keptSince('tokens', 0)).toBeUndefined()
    expect((await store.verify()).problems).toEqual([])
  })
})
