import { expect, test, vi } from 'vitest'
import type { LoadResult } from '#config/load/load.ts'
import type { SourceListener } from '#config/watch/configuration-source.ts'
import { ConfigurationChanges } from './configuration-changes.ts'

const read = (hash: string): LoadResult => ({
  issues: [],
  found: [],
  scripts: { total: 0, served: 0, unserved: [] },
  hash,
})

function open() {
  const applied: string[] = []
  const unread: unknown[] = []
  const source = { next: 'first', listener: undefined as SourceListener | undefined }
  const planned: { readonly problems: readonly string[]; readonly attempt: () => void }[] = []
  const lacking = new Map<string, readonly string[]>()
  const changes = new ConfigurationChanges(read('first'), [], {
    retries: { plan: (problems, _, attempt) => void planned.push({ problems, attempt }) },
    source: {
      load: async () => {
        if (source.next === 'nothing') throw new Error('no folder')
        return read(source.next)
      },
      watch: (listener) => {
        source.listener = listener
        return { close: async () => {} }
      },
    },
    apply: async (served) => {
      const { hash } = served
      applied.push(`${hash} begins`)
      await new Promise((resolve) => setImmediate(resolve))
      applied.push(`${hash} ends`)
      return { outcome: hash === 'broken' ? 'refused' : 'applied', served, notCreated: lacking.get(hash) ?? [] }
    },
    settled: () => {},
    unread: (error) => void unread.push(error),
  })
  changes.watch()
  return { changes, source, applied, unread, planned, lacking }
}

test('configurations are applied one at a time, in the order in which they were read', async () => {
  const { changes, source, applied } = open()
  void source.listener?.onChange(read('a'))
  void source.listener?.onChange(read('b'))
  await changes.close()
  expect(applied).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
})

test('a change that was read before a reload is read again, and later ones are not', async () => {
  const { changes, source, applied } = open()
  source.next = 'new'
  await changes.reload()
  await source.listener?.onChange(read('old'))
  await source.listener?.onChange(read('newer'))
  expect(applied.filter((text) => text.endsWith('ends'))).toEqual(['new ends', 'new ends', 'newer ends'])
})

test('a source that cannot be read is reported, and the next change is applied', async () => {
  const { changes, source, applied, unread } = open()
  source.next = 'nothing'
  await changes.reload()
  expect(unread).toEqual([new Error('no folder')])
  await source.listener?.onChange(read('a'))
  expect(applied).toContain('a ends')
})

test('what could not be created is tried again, also after a change that is refused, until another one is applied', async () => {
  const { source, applied, planned, lacking } = open()
  lacking.set('a', ['no host'])
  await source.listener?.onChange(read('a'))
  await source.listener?.onChange(read('broken'))
  expect(planned.map(({ problems }) => problems)).toEqual([[], ['no host']])
  lacking.delete('a')
  planned[1]?.attempt()
  const ended = () => applied.filter((text) => text.endsWith('ends'))
  await vi.waitFor(() => expect(ended()).toEqual(['a ends', 'broken ends', 'a ends', 'broken ends']))
  await source.listener?.onChange(read('b'))
  planned[1]?.attempt()
  await source.listener?.onChange(read('c'))
  expect(ended().slice(4)).toEqual(['b ends', 'c ends'])
})

test('nothing is applied once the gateway closes', async () => {
  const { changes, source, applied, planned, lacking } = open()
  lacking.set('a', ['no host'])
  await source.listener?.onChange(read('a'))
  await changes.close()
  applied.length = 0
  source.next = 'b'
  await changes.reload()
  await source.listener?.onChange(read('c'))
  planned.at(-1)?.attempt()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(applied).toEqual([])
})
