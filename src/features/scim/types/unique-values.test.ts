import { expect, onTestFinished, test } from 'vitest'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { memoryUserDirectory } from '#testing/databases/memory-database.ts'
import { addedValues, uniquePaths, ValueLocks } from './unique-values.ts'

const unique = { uniqueness: 'server' } as const
const schema = new ResourceSchema({
  id: 'urn:example:Device',
  name: 'Device',
  description: '',
  attributes: [
    attribute('serial', '', unique),
    attribute('label', '', unique),
    attribute('keys', '', { ...unique, multiValued: true, caseExact: true }),
    attribute('state', '', { ...unique, mutability: 'readOnly' }),
    attribute('place', '', { type: 'complex', subAttributes: [attribute('desk', '', unique), attribute('floor', '')] }),
  ],
})
const paths = uniquePaths(schema, 'serial')
const values = (label: string) => addedValues(paths, {}, { label })

function locksAt(time: () => number) {
  const directory = memoryUserDirectory()
  onTestFinished(() => directory.close())
  const open = new Set<string>()
  const locks = new ValueLocks(
    directory,
    () => new Date(time()),
    async ({ run, resource }) => open.has(run ?? resource),
  )
  const change = (resource: string) => ({ resource, run: () => `run of ${resource}` })
  const run = <T>(added: ReturnType<typeof values>, work: () => Promise<T>, resource = 'some') =>
    locks.run(added, change(resource), work)
  return { directory, open, locks: { run }, prune: () => locks.prune() }
}

test('only values that a change adds have to be unique', () => {
  const before = { serial: 'a', label: 'one', keys: ['k1', 'k2'], place: { desk: 'd1', floor: '1' } }
  const after = { serial: 'b', label: 'one', keys: ['k2', 'K1', ''], state: 's', place: { desk: 'd2', floor: '2' } }
  const added = addedValues(paths, before, after)
  expect(added.map(({ path, value }) => [path.attribute.name, path.sub?.name, value])).toEqual([
    ['keys', undefined, 'K1'],
    ['place', 'desk', 'd2'],
  ])
})

test('changes that add one value run one after the other, and leave no lock', async () => {
  const { directory, locks } = locksAt(() => 0)
  let running = 0
  const work = async () => {
    expect(++running).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    running--
  }
  const both = [...values('one'), ...values('two')]
  await Promise.all([locks.run(both, work), locks.run(both.toReversed(), work), locks.run(values('ONE'), work)])
  await expect(locks.run(values('one'), () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect((await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(0)
})

test('the lock of a process that died expires', async () => {
  let now = 0
  const { directory, locks } = locksAt(() => now)
  let end = (): void => {}
  const dead = locks.run(values('one'), () => new Promise<void>((resolve) => (end = resolve)))
  await expect.poll(async () => (await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(1)
  now = 121_000
  expect(await locks.run(values('one'), async () => 'done')).toBe('done')
  end()
  await dead
})

test('a change that took too long leaves the lock of another', async () => {
  let now = 0
  const { directory, locks } = locksAt(() => now)
  const order: string[] = []
  const start = (name: string) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const done = locks.run(values('one'), async () => {
      order.push(name)
      begun.resolve()
      await promise
    })
    return { begun: begun.promise, end: resolve, done }
  }
  const slow = start('slow')
  await slow.begun
  now = 121_000
  const second = start('second')
  await second.begun
  slow.end()
  await slow.done
  expect((await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(1)
  const third = start('third')
  second.end()
  await second.done
  await third.begun
  third.end()
  await third.done
  expect(order).toEqual(['slow', 'second', 'third'])
  expect((await directory.searchUsers({ offset: 0, limit: 1 })).total).toBe(0)
})

test('the lock of a process that died stays while a run of its resource has not ended', async () => {
  let now = Date.parse('2026-01-02')
  const { locks, open } = locksAt(() => now)
  const begun = Promise.withResolvers<void>()
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const work = async () => {
    begun.resolve()
    await promise
  }
  const dead = locks.run(values('one'), work, 'a')
  await begun.promise
  now += 121_000
  open.add('a')
  await expect(locks.run(values('one'), async () => 'done', 'b')).rejects.toMatchObject({ keyword: 'uniqueness' })
  open.clear()
  expect(await locks.run(values('one'), async () => 'done', 'b')).toBe('done')
  end()
  await dead
})

test('a run that is tried again keeps its values until it ends', async () => {
  const { directory, locks, open, prune } = locksAt(() => Date.parse('2026-01-02'))
  const fail = () => Promise.reject(new Error('failed'))
  const count = async () => (await directory.searchUsers({ offset: 0, limit: 1 })).total
  open.add('run of a')
  await expect(locks.run(values('one'), fail, 'a')).rejects.toThrow('failed')
  await prune()
  await expect(locks.run(values('ONE'), fail, 'b')).rejects.toMatchObject({ keyword: 'uniqueness' })
  // A later change of the same resource comes after it, or replaces it.
  await expect(locks.run(values('one'), fail, 'a')).rejects.toThrow('failed')
  expect(await count()).toBe(1)
  open.clear()
  expect(await locks.run(values('one'), async () => 'done', 'b')).toBe('done')
  expect(await count()).toBe(0)
  open.add('run of a')
  await expect(locks.run(values('one'), fail, 'a')).rejects.toThrow('failed')
  open.clear()
  await prune()
  expect(await count()).toBe(0)
})
