import { expect, test, vi } from 'vitest'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { JournalEntry } from './journal-entry.ts'
import type { JournalBatch, JournalStore } from './journal-store.ts'
import { Journals } from './journals.ts'

const entry = (requestId: string): JournalEntry => ({
  time: new Date(0),
  requestId,
  caller: 'idp',
  method: 'GET',
  path: '/',
  status: 200,
  millis: 1,
  workflows: [],
})

function open() {
  const written: JournalBatch[][] = []
  const warnings: string[] = []
  const state = { failing: false }
  const store: Pick<JournalStore, 'append' | 'list'> = {
    append: async (batches) => {
      if (state.failing) throw new Error('away')
      written.push([...batches])
    },
    list: async () => ({ entries: [] }),
  }
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
  return { journals: new Journals(store, log), written, warnings, state }
}

const shape = (written: readonly JournalBatch[][]) =>
  written.map((batches) =>
    batches.map(({ journal, keep, entries }) => [journal, keep, entries.map(({ requestId }) => requestId)]),
  )

test('writes the entries of all journals together, at most once a second', async () => {
  vi.useFakeTimers()
  try {
    const { journals, written } = open()
    const [a, b] = [journals.open({ name: 'a', keep: 10 }), journals.open({ name: 'b', keep: 20 })]
    a.add(entry('1'))
    b.add(entry('2'))
    await vi.advanceTimersByTimeAsync(999)
    a.add(entry('3'))
    expect(written).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(shape(written)).toEqual([
      [
        ['a', 10, ['1', '3']],
        ['b', 20, ['2']],
      ],
    ])
    await vi.advanceTimersByTimeAsync(5000)
    expect(written).toHaveLength(1)
  } finally {
    vi.useRealTimers()
  }
})

test('collects and writes no more entries than the journal keeps', async () => {
  const { journals, written } = open()
  const journal = journals.open({ name: 'a', keep: 3 })
  for (let i = 0; i < 1000; i++) journal.add(entry(`${i}`))
  await journal.close()
  expect(shape(written)).toEqual([[['a', 3, ['997', '998', '999']]]])
})

test('writes collected entries when a journal is closed or read', async () => {
  const { journals, written } = open()
  const journal = journals.open({ name: 'a', keep: 3 })
  journal.add(entry('1'))
  await journals.list({ limit: 1 })
  journal.add(entry('2'))
  await journal.close()
  await journal.close()
  await journals.close()
  expect(shape(written)).toEqual([[['a', 3, ['1']]], [['a', 3, ['2']]]])
})

test('logs the first failed write, and writes the entries later', async () => {
  const { journals, written, warnings, state } = open()
  const journal = journals.open({ name: 'a', keep: 3 })
  state.failing = true
  for (const id of ['1', '2', '3', '4']) {
    journal.add(entry(id))
    await journals.write()
  }
  expect(warnings).toHaveLength(1)
  state.failing = false
  await journals.write()
  expect(shape(written)).toEqual([[['a', 3, ['2', '3', '4']]]])
  state.failing = true
  journal.add(entry('5'))
  await journals.write()
  expect(warnings).toHaveLength(2)
})

test('shares a journal with a new configuration, with its new size', async () => {
  const { journals, written } = open()
  const old = journals.open({ name: 'a', keep: 3 })
  const fresh = journals.open({ name: 'a', keep: 5 })
  old.add(entry('1'))
  await old.close()
  fresh.add(entry('2'))
  await fresh.close()
  expect(shape(written)).toEqual([[['a', 5, ['1']]], [['a', 5, ['2']]]])
})
