import { expect, test } from 'vitest'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { openStores } from '#testing/databases/stores.ts'
import type { JournalEntry, StoredJournalEntry } from './journal-entry.ts'

const at = (second: number): Date => new Date(Date.UTC(2030, 0, 1) + second * 1000)

function row(requestId: string, more: Partial<JournalEntry> = {}): JournalEntry {
  return {
    time: at(0),
    requestId,
    caller: 'idp',
    method: 'GET',
    path: '/scim/Users',
    status: 200,
    millis: 3,
    workflows: [],
    ...more,
  }
}

const requests = (entries: readonly StoredJournalEntry[]): string[] => entries.map(({ requestId }) => requestId)

onEachDatabase('journals', (freshUrl) => {
  const open = async () => (await openStores(await freshUrl())).one.journal

  test('returns entries as they were written, latest first', async () => {
    const store = await open()
    const failed = row('b', {
      status: 400,
      keyword: 'invalidPath',
      error: 'There is no such attribute.',
      workflows: ['run-1', 'run-2'],
      operations: [{ op: 'replace', path: 'emails', values: 2 }],
    })
    await store.append([{ journal: 'people', keep: 10, entries: [row('a'), failed] }])
    const { entries, next } = await store.list({ limit: 10 })
    expect(next).toBeUndefined()
    const [first, second] = entries
    expect(first).toEqual({ ...failed, id: first?.id, journal: 'people' })
    expect(second).toEqual({ ...row('a'), id: second?.id, journal: 'people' })
    expect(first?.id).toBeGreaterThan(second?.id ?? Number.NaN)
  })

  test('keeps the latest entries of each journal', async () => {
    const store = await open()
    const many = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => row(`${prefix}${i}`))
    await store.append([
      { journal: 'a', keep: 5, entries: many(20, 'first-') },
      { journal: 'b', keep: 100, entries: many(20, 'other-') },
    ])
    await store.append([{ journal: 'a', keep: 5, entries: many(3, 'second-') }])
    const of = async (journal: string) => requests((await store.list({ journals: [journal], limit: 100 })).entries)
    expect(await of('a')).toEqual(['second-2', 'second-1', 'second-0', 'first-19', 'first-18'])
    expect(await of('b')).toHaveLength(20)
    await store.append([{ journal: 'a', keep: 0, entries: many(3, 'third-') }])
    expect(await of('a')).toEqual([])
    await store.append([])
  })

  test('applies every condition', async () => {
    const store = await open()
    await store.append([
      {
        journal: 'a',
        keep: 10,
        entries: [row('1'), row('2', { status: 404 }), row('3', { time: at(100), status: 500 })],
      },
      { journal: 'b', keep: 10, entries: [row('4', { status: 404 })] },
    ])
    const found = async (query: object) => requests((await store.list({ limit: 10, ...query })).entries).sort()
    expect(await found({ journals: ['a'] })).toEqual(['1', '2', '3'])
    expect(await found({ journals: ['a', 'b'], failed: true })).toEqual(['2', '3', '4'])
    expect(await found({ status: 404 })).toEqual(['2', '4'])
    expect(await found({ since: at(100) })).toEqual(['3'])
    expect(await found({ journals: ['b'], since: at(1) })).toEqual([])
    expect(await found({ journals: [] })).toEqual([])
    expect(await found({ journals: ['a\0'] })).toEqual([])
    expect(await found({ journals: ["a' or '1'='1"] })).toEqual([])
  })

  test('returns pages without gaps or repetition while entries are added', async () => {
    const store = await open()
    const append = (...ids: string[]) => store.append([{ journal: 'a', keep: 1000, entries: ids.map((id) => row(id)) }])
    await append(...Array.from({ length: 105 }, (_, i) => `${i}`))
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await store.list({ limit: 25, ...(after === undefined ? {} : { after }) })
      seen.push(...requests(page.entries))
      after = page.next
      await append(`later-${seen.length}`)
    } while (after !== undefined)
    expect(seen).toEqual(Array.from({ length: 105 }, (_, i) => `${104 - i}`))
  })

  test('bounds the page size and rejects an invalid cursor', async () => {
    const store = await open()
    await store.append([{ journal: 'a', keep: 1000, entries: Array.from({ length: 600 }, (_, i) => row(`${i}`)) }])
    expect((await store.list({ limit: 1_000_000 })).entries).toHaveLength(500)
    expect((await store.list({ limit: Number.NaN })).entries).toHaveLength(1)
    await expect(store.list({ limit: 1, after: '1; drop table journal' })).rejects.toMatchObject({
      code: 'BAD_REQUEST',
    })
  })

  test('writes entries with any characters', async () => {
    const store = await open()
    const operations = { note: 'a\0b\ud800' }
    await store.append([
      { journal: 'a', keep: 5, entries: [row('r', { path: '/a\0b\ud800', error: 'é\u{1f600}', operations })] },
    ])
    const [found] = (await store.list({ limit: 1 })).entries
    expect(found).toMatchObject({ path: '/a\ufffdb\ufffd', error: 'é\u{1f600}', operations })
  })

  test('keeps the entries of concurrent appends', async () => {
    const store = await open()
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        store.append([{ journal: 'a', keep: 100, entries: [row(`${i}`), row(`${i}b`)] }]),
      ),
    )
    expect((await store.list({ limit: 100 })).entries).toHaveLength(40)
  })
})
