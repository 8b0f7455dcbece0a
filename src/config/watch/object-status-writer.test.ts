import { expect, test } from 'vitest'
import type { LoadResult } from '#config/load/load.ts'
import { configResources } from '#config/sources/cluster-documents.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { KindNotServed, ObjectMissing } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject } from '#protocols/kubernetes/cluster.ts'
import { ObjectStatusWriter } from './object-status-writer.ts'

interface Stored {
  readonly metadata: { readonly name: string; uid: string; generation: number; resourceVersion: string }
  status?: { conditions: readonly { reason: string; message: string }[] }
}

const stored = (name: string): Stored => ({ metadata: { name, uid: `u-${name}`, generation: 1, resourceVersion: '1' } })
const result = (...broken: string[]): LoadResult => ({
  found: [],
  scripts: { total: 0, served: 0, unserved: [] },
  hash: 'h',
  issues: broken.map((name) => ({
    level: 'error',
    file: `Target/ns/${name}`,
    hasLines: false,
    line: 1,
    column: 1,
    path: 'spec',
    message: 'is wrong',
  })),
})

function fixture(...objects: Stored[]) {
  const resource = configResources.find(({ plural }) => plural === 'targets')
  if (resource === undefined) throw new Error('no targets')
  const written: string[] = []
  const warnings: string[] = []
  let failure: Error | undefined
  let failsFor: string | undefined
  const informer = {
    get objects(): readonly ClusterObject[] {
      return objects.map((object) => ({ metadata: { ...object.metadata }, content: { ...object } }))
    },
  }
  const writer = new ObjectStatusWriter({
    objects: {
      async replaceStatus(_resource, name, { status }) {
        written.push(name)
        if (failure !== undefined && (failsFor === undefined || failsFor === name)) throw failure
        const found = objects.find(({ metadata }) => metadata.name === name)
        if (found !== undefined) found.status = status as NonNullable<Stored['status']>
      },
    },
    kinds: [{ resource, informer }],
    namespace: 'ns',
    clock: () => new Date(0),
    log: { ...silentLogger, warn: (message) => void warnings.push(message) },
  })
  writer.mayWrite = () => true
  const settle = (loaded: LoadResult, outcome: 'applied' | 'refused'): Promise<void> => {
    writer.remember(loaded, writer.generations())
    writer.settle(loaded, outcome)
    return writer.write()
  }
  const take = (): string[] => written.splice(0)
  const fail = (error: Error | undefined, name?: string): void => {
    failure = error
    failsFor = name
  }
  return { writer, settle, take, fail, warnings }
}
const reason = ({ status }: Stored): string | undefined => status?.conditions[0]?.reason

test('the status of an object is written once, and again when its verdict changes', async () => {
  const [a, b] = [stored('a'), stored('b')]
  const { writer, settle, take } = fixture(a, b)
  await settle(result(), 'applied')
  expect([take(), reason(a), reason(b)]).toEqual([['a', 'b'], 'Served', 'Served'])
  await writer.write()
  await settle(result(), 'applied')
  expect(take()).toEqual([])
  b.metadata.generation = 2
  await settle(result('b'), 'refused')
  expect([take(), reason(a), reason(b)]).toEqual([['b'], 'Served', 'Invalid'])
})

test('only the replica that may write does', async () => {
  const { writer, settle, take } = fixture(stored('a'))
  writer.mayWrite = () => false
  await settle(result(), 'applied')
  expect(take()).toEqual([])
  writer.mayWrite = () => true
  await writer.write()
  expect(take()).toEqual(['a'])
})

test('an object that changed or appeared since it was read is left unchanged', async () => {
  const a = stored('a')
  const { writer, take } = fixture(a)
  const loaded = result()
  writer.remember(loaded, writer.generations())
  a.metadata.generation = 2
  writer.settle(loaded, 'applied')
  await writer.write()
  expect(take()).toEqual([])
})

test('a re-created object does not count as running because a deleted one did', async () => {
  const [a, b] = [stored('a'), stored('b')]
  const { settle } = fixture(a, b)
  await settle(result(), 'applied')
  a.metadata.uid = 'another'
  delete a.status
  await settle(result('b'), 'refused')
  expect([reason(a), reason(b)]).toEqual(['Waiting', 'Invalid'])
})

test('failures are retried, except for a kind without status', async () => {
  const { writer, settle, take, fail } = fixture(stored('a'))
  for (const error of [
    new GatewayError('VERSION_MISMATCH', 'changed'),
    new GatewayError('TARGET_UNREACHABLE', 'away'),
    new KindNotServed('TARGET_FAILED', 'no status'),
  ]) {
    fail(error)
    await settle(result(), 'applied')
    expect(take()).toEqual(['a'])
  }
  fail(undefined)
  await writer.write()
  expect(take()).toEqual([])
})

test('an object whose status is rejected does not block the others', async () => {
  const objects = Array.from({ length: 12 }, (_, i) => stored(`o${i}`))
  const { settle, fail } = fixture(...objects)
  fail(new GatewayError('BAD_REQUEST', 'more than 1048576 bytes'), 'o0')
  await settle(result(), 'applied')
  expect(objects.map(reason)).toEqual([undefined, ...Array.from({ length: 11 }, () => 'Served')])
})

test('an object that is gone is no failure; one with an error that only mentions it is', async () => {
  const { settle, fail, warnings } = fixture(stored('a'))
  fail(new ObjectMissing('TARGET_FAILED', 'write the status of targets: 404 NotFound targets "a" not found'))
  await settle(result(), 'applied')
  expect(warnings).toEqual([])
  fail(new GatewayError('BAD_REQUEST', 'write the status of targets: 422 Invalid spec.x: "a 404 NotFound b"'))
  await settle(result(), 'applied')
  expect(warnings).toEqual(['the status of an object could not be written'])
})

test('while the API server is unavailable, it is not called for one object after the other', async () => {
  const objects = Array.from({ length: 100 }, (_, i) => stored(`o${i}`))
  const { settle, take, fail } = fixture(...objects)
  fail(new GatewayError('TARGET_UNREACHABLE', 'away'))
  await settle(result(), 'applied')
  expect(take().length).toBeLessThan(10)
})
