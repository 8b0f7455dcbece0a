import { afterEach, describe, expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { AccessRefused, ExpiredList, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import { Informer, type WatchedObjects } from '#protocols/kubernetes/informer.ts'
import type { ObjectChange, Snapshot, WatchSelection } from '#protocols/kubernetes/object-client.ts'
import type { ClusterObject } from './cluster.ts'

const resource = { group: 'g', version: 'v1', plural: 'things', namespace: 'ns' }
const times = { watchSeconds: 60, firstPauseMillis: 2, longestPauseMillis: 8 }

const thing = (name: string, version: string): ClusterObject => ({
  metadata: { name, uid: `u-${name}`, resourceVersion: version },
  content: { spec: version },
})
const stored = (name: string, version: string): ObjectChange => ({ kind: 'stored', object: thing(name, version) })
const removed = (name: string, version: string): ObjectChange => ({ kind: 'removed', object: thing(name, version) })

type Step = ObjectChange | Error

/** A server that plays lists and watches from a script, and then keeps the last watch open. */
class ScriptedServer implements WatchedObjects {
  readonly lists: (Snapshot | Error)[]
  readonly watches: Step[][]
  readonly calls: string[] = []
  readonly selections: WatchSelection[] = []

  constructor(lists: (Snapshot | Error)[], watches: Step[][]) {
    this.lists = lists
    this.watches = watches
  }

  async snapshot(): Promise<Snapshot> {
    this.calls.push('list')
    const next = this.lists.length > 1 ? this.lists.shift() : this.lists[0]
    if (next === undefined || next instanceof Error) throw next
    return next
  }

  async *watch(_resource: unknown, since: string, selection: WatchSelection): AsyncGenerator<ObjectChange> {
    this.calls.push(`watch ${since}`)
    this.selections.push(selection)
    const steps = this.watches.shift()
    for (const step of steps ?? []) {
      if (step instanceof Error) throw step
      yield step
    }
    if (steps !== undefined && this.watches.length > 0) return
    await new Promise((_, reject) => selection.signal.addEventListener('abort', () => reject(new Error('ended'))))
  }
}

const informers: Informer[] = []
afterEach(async () => {
  for (const informer of informers.splice(0)) await informer.close()
})

function open(server: WatchedObjects, most = 10) {
  const changes = vi.fn()
  const errors: unknown[] = []
  const informer = new Informer({
    objects: server,
    resource,
    most,
    times,
    onChange: changes,
    onError: (error) => errors.push(error),
  })
  informers.push(informer)
  informer.start()
  return { informer, changes, errors }
}

const versions = (informer: Informer): string[] =>
  informer.objects.map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort()
const unreachable = new GatewayError('TARGET_UNREACHABLE', 'away')
const expired = new ExpiredList('TARGET_UNREACHABLE', 'too old')

describe('an informer', () => {
  test('knows the result of a list and all changes since', async () => {
    const server = new ScriptedServer(
      [{ objects: [thing('a', '1'), thing('b', '2')], version: '5' }],
      [[stored('c', '6'), stored('a', '7'), removed('b', '8')]],
    )
    const { informer, errors } = open(server)
    expect(informer.isComplete).toBe(false)
    await vi.waitFor(() => expect(versions(informer)).toEqual(['a@7', 'c@6']))
    expect(informer.isComplete).toBe(true)
    expect(server.calls).toEqual(['list', 'watch 5'])
    expect(errors).toEqual([])
  })

  test('continues from the last known revision, including bookmarks, without another list', async () => {
    const server = new ScriptedServer(
      [{ objects: [], version: '5' }],
      [[stored('a', '6')], [{ kind: 'moment', version: '9' }], [unreachable], [stored('b', '10')]],
    )
    const { informer, errors } = open(server)
    await vi.waitFor(() => expect(versions(informer)).toEqual(['a@6', 'b@10']))
    expect(server.calls).toEqual(['list', 'watch 5', 'watch 6', 'watch 9', 'watch 9'])
    expect(errors).toEqual([unreachable])
  })

  test('lists again if its revision has expired, and notices deletions meanwhile', async () => {
    const server = new ScriptedServer(
      [
        { objects: [thing('a', '1'), thing('gone', '2')], version: '5' },
        { objects: [thing('a', '1'), thing('b', '7')], version: '20' },
      ],
      [[expired], []],
    )
    const { informer, errors } = open(server)
    await vi.waitFor(() => expect(versions(informer)).toEqual(['a@1', 'b@7']))
    await vi.waitFor(() => expect(server.calls).toEqual(['list', 'watch 5', 'list', 'watch 20']))
    expect(errors).toEqual([])
  })

  test('keeps its objects while the server is unavailable', async () => {
    const lists = [{ objects: [thing('a', '1')], version: '5' }, unreachable]
    const { informer, errors } = open(new ScriptedServer(lists, [[expired], []]))
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(2))
    expect(versions(informer)).toEqual(['a@1'])
    expect(informer.failure).toBe(unreachable)
  })

  test('a kind that is not served has no objects until it is served', async () => {
    const missing = new KindNotServed('TARGET_FAILED', 'no such kind')
    const lists = [missing, missing, { objects: [thing('a', '1')], version: '5' }]
    const { informer, changes } = open(new ScriptedServer(lists, [[]]))
    await vi.waitFor(() => expect(informer.isComplete).toBe(true))
    await vi.waitFor(() => expect(versions(informer)).toEqual(['a@1']))
    expect(changes).toHaveBeenCalledTimes(2)
  })

  test('is not complete while it may not list', async () => {
    const refused = new AccessRefused('TARGET_FAILED', 'forbidden')
    const { informer, errors } = open(new ScriptedServer([refused], []))
    await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1))
    expect([informer.isComplete, informer.failure]).toEqual([false, refused])
  })

  test('pauses if a server ends every watch at once', async () => {
    const server = new ScriptedServer(
      [{ objects: [], version: '5' }],
      Array.from({ length: 1000 }, () => []),
    )
    open(server)
    await new Promise((resume) => setTimeout(resume, 60))
    expect(server.calls.length).toBeLessThan(40)
  })

  test('does not grow beyond its limit', async () => {
    const changes = Array.from({ length: 50 }, (_, i) => stored(`n${i}`, String(i + 6)))
    const server = new ScriptedServer([{ objects: [], version: '5' }], [changes, []])
    const { informer, errors } = open(server, 3)
    await vi.waitFor(() => expect(errors).toHaveLength(1))
    expect(String(errors[0])).toContain('more than 3 things')
    await vi.waitFor(() => expect(informer.objects).toHaveLength(0))
  })

  test('close ends an open watch', async () => {
    const server = new ScriptedServer([{ objects: [], version: '5' }], [])
    const { informer } = open(server)
    await vi.waitFor(() => expect(server.selections).toHaveLength(1))
    await informer.close()
    expect(server.selections[0]?.signal.aborted).toBe(true)
  })
})
