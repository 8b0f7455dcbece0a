import { expect, test } from 'vitest'
import type { AuditRow, AuditStore } from '#storage/audit-store.ts'

const at = (second: number): Date => new Date(Date.UTC(2030, 0, 1) + second * 1000)

function row(id: string, more: Partial<AuditRow> = {}): AuditRow {
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

const ids = (rows: readonly AuditRow[]): string[] => rows.map(({ id }) => id)

/** What every AuditStore owes; `open` gives an empty one. */
export function auditStoreConformance(open: () => Promise<AuditStore>): void {
  test('rows are read as they were written, latest first', async () => {
    const store = await open()
    const { value: _, requestId: __, ...secret } = row('b', { attribute: 'userPassword', action: 'replace' })
    await store.append([row('a'), secret])
    expect(await store.list({ limit: 10 })).toEqual({ rows: [secret, row('a')] })
  })

  test('all rows are written, or none', async () => {
    const store = await open()
    await store.append([row('a')])
    await expect(store.append([row('b', { subject: 'bob' }), row('a'), row('c')])).rejects.toMatchObject({
      code: 'CONFLICT',
    })
    expect(ids((await store.list({ limit: 10 })).rows)).toEqual(['a'])
    await store.append([])
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

  test('pages follow each other without gap or repetition, while rows are added', async () => {
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

  test('a page is bounded whatever is asked, and a cursor is read strictly', async () => {
    const store = await open()
    await store.append(Array.from({ length: 600 }, (_, i) => row(`${i}`)))
    expect((await store.list({ limit: 1_000_000 })).rows).toHaveLength(500)
    expect((await store.list({ limit: Number.NaN })).rows).toHaveLength(1)
    await expect(store.list({ limit: 1, after: '1; drop table audit' })).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('a row is written whatever characters it holds and however long it is', async () => {
    const store = await open()
    const long = 'x'.repeat(100_000)
    await store.append([row('a', { value: 'a\0b\ud800', subject: long, requestor: 'é\u{1f600}' })])
    const [found] = (await store.list({ limit: 1, subject: long.toUpperCase() })).rows
    expect(found).toMatchObject({ value: 'a\ufffdb\ufffd', subject: long, requestor: 'é\u{1f600}' })
  })

  test('parallel appends are all there, each whole', async () => {
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
}
