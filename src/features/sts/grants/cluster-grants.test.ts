import { afterEach, describe, expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import { KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import type { ListSelection, ObjectChange, Snapshot, WatchSelection } from '#protocols/kubernetes/object-client.ts'
import type { ClusterWatches } from '#sdk/target/kubernetes-cluster.ts'
import { ClusterGrants, type GrantsState, mostInNamespace } from './cluster-grants.ts'
import type { GrantEndpoint } from './grant-verdict.ts'
import { type KnownGrants, TokenGrants } from './token-grants.ts'

const limits = {
  namespaces: ['shop', 'flood'],
  namespaceLabels: new Map<string, string>(),
  serviceAccounts: [],
  maxServiceAccounts: 10,
  maxGrants: 10,
  staleSeconds: 120,
}
const endpoints = new Map<string, GrantEndpoint>([['aws', { name: 'aws', clusters: ['k8s'], grants: limits }]])

let version = 1
const object = (namespace: string | undefined, name: string, content: object): ClusterObject => {
  const metadata = { name, uid: `u-${namespace}-${name}`, resourceVersion: String(++version) }
  return { metadata: { ...metadata, ...(namespace === undefined ? {} : { namespace }) }, content: { ...content } }
}
const grantOf = (namespace: string, name: string, account = 'cart'): ClusterObject =>
  object(namespace, name, { spec: { endpoint: 'aws', serviceAccounts: [account] } })

/** The objects of an API server that lists and watches; `away` makes both fail. */
class Server implements ClusterWatches {
  readonly objects: Record<string, ClusterObject[]> = {
    tokengrants: [grantOf('shop', 'cart')],
    namespaces: [object(undefined, 'shop', {}), object(undefined, 'flood', {})],
  }
  readonly #listeners = new Map<string, (change: ObjectChange | Error) => void>()
  failure: Error | undefined
  lists = 0

  change(plural: string, change: ObjectChange | Error): void {
    this.#listeners.get(plural)?.(change)
  }

  async snapshot({ plural }: ClusterResource, _most: number, { keep }: ListSelection = {}): Promise<Snapshot> {
    if (this.failure !== undefined) throw this.failure
    this.lists++
    const kept = keep?.()
    const all = this.objects[plural] ?? []
    return { objects: kept === undefined ? all : all.flatMap((one) => kept(one) ?? []), version: String(version) }
  }

  async *watch({ plural }: ClusterResource, _since: string, { signal }: WatchSelection): AsyncGenerator<ObjectChange> {
    if (this.failure !== undefined) throw this.failure
    const changes: (ObjectChange | Error)[] = []
    for (;;) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => reject(new Error('ended')), { once: true })
      this.#listeners.set(plural, (change) => {
        changes.push(change)
        resolve()
      })
      await promise
      for (const change of changes.splice(0)) {
        if (change instanceof Error) throw change
        yield change
      }
    }
  }

  async replaceStatus(): Promise<never> {
    throw new Error('not here')
  }
}

const opened: ClusterGrants[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const grants of opened.splice(0)) await grants.close()
})

function open(server: Server, resume?: GrantsState): ClusterGrants {
  const grants = new ClusterGrants({
    cluster: 'k8s',
    watches: server,
    endpoints,
    log: silentLogger,
    resume,
    onChange: () => {},
  })
  opened.push(grants)
  grants.start()
  return grants
}

const unreachable = new GatewayError('TARGET_UNREACHABLE', 'away')
const away = (): never => {
  throw unreachable
}
const kindOf = (grants: ClusterGrants, namespace = 'shop', account = 'cart') =>
  grants.find('aws', namespace, account).kind

describe('the grants of a cluster', () => {
  test('are unknown before the first list, but only where there may be some', async () => {
    const server = new Server()
    server.failure = unreachable
    const grants = open(server)
    expect([kindOf(grants), kindOf(grants, 'other')]).toEqual(['unknown', 'none'])
    server.failure = undefined
    await vi.waitFor(() => expect(kindOf(grants)).toBe('granted'), 10_000)
    expect([kindOf(grants, 'shop', 'admin'), kindOf(grants, 'other')]).toEqual(['none', 'none'])
  })

  test('stop counting with the event of their deletion, and with that of their namespace', async () => {
    const server = new Server()
    const grants = open(server)
    await vi.waitFor(() => expect(kindOf(grants)).toBe('granted'))
    const ending = object(undefined, 'shop', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })
    server.change('namespaces', { kind: 'stored', object: ending })
    await vi.waitFor(() => expect(kindOf(grants)).toBe('none'))
    server.change('namespaces', { kind: 'stored', object: object(undefined, 'shop', {}) })
    await vi.waitFor(() => expect(kindOf(grants)).toBe('granted'))
    const [first] = server.objects['tokengrants'] ?? []
    if (first !== undefined) server.change('tokengrants', { kind: 'removed', object: first })
    await vi.waitFor(() => expect(kindOf(grants)).toBe('none'))
  })

  test('count for a limited time while the API server cannot be watched', async () => {
    const server = new Server()
    const grants = open(server)
    await vi.waitFor(() => expect(kindOf(grants)).toBe('granted'))
    server.failure = unreachable
    server.change('tokengrants', unreachable)
    await vi.waitFor(() => expect(grants.failure).toBe(unreachable))
    const now = performance.now()
    const clock = vi.spyOn(performance, 'now')
    clock.mockReturnValue(now + 119_000)
    expect(kindOf(grants)).toBe('granted')
    clock.mockReturnValue(now + 121_000)
    expect(grants.find('aws', 'shop', 'cart')).toEqual({
      kind: 'unknown',
      reason: expect.stringMatching(/^the grants of the cluster "k8s" could not be watched for 12\d s$/),
    })
    expect(kindOf(grants, 'other')).toBe('none')
  })

  test('of a namespace with far too many do not cost others theirs', async () => {
    const server = new Server()
    const flood = Array.from({ length: 30_000 }, (_, i) => grantOf('flood', `g-${i}`))
    server.objects['tokengrants'] = [...flood, grantOf('shop', 'cart')]
    const grants = open(server)
    await vi.waitFor(() => expect(kindOf(grants)).toBe('granted'), 20_000)
    const judged = grants.judged().filter(({ object }) => object.metadata.namespace === 'flood')
    expect(judged.filter(({ verdict }) => verdict.status === 'True')).toHaveLength(limits.maxGrants)
    expect(judged).toHaveLength(mostInNamespace)
    server.change('tokengrants', { kind: 'stored', object: grantOf('flood', 'one-more') })
    server.change('tokengrants', { kind: 'stored', object: grantOf('shop', 'second', 'basket') })
    await vi.waitFor(() => expect(kindOf(grants, 'shop', 'basket')).toBe('granted'))
    expect(grants.judged().filter(({ object }) => object.metadata.namespace === 'flood')).toHaveLength(mostInNamespace)
  })

  test('are known at once to the next configuration, which continues the watch', async () => {
    const server = new Server()
    const first = open(server)
    await vi.waitFor(() => expect(kindOf(first)).toBe('granted'))
    const { lists } = server
    const next = open(server, first.state)
    expect(kindOf(next)).toBe('granted')
    expect(server.lists).toBe(lists)
  })

  test('are none where the cluster has no such kind', async () => {
    const server = new Server()
    server.failure = new KindNotServed('TARGET_FAILED', 'no such kind')
    const grants = open(server)
    await vi.waitFor(() => expect(kindOf(grants)).toBe('none'))
  })

  test('are listed again by the next configuration after the kind was removed', async () => {
    const server = new Server()
    const first = open(server)
    await vi.waitFor(() => expect(kindOf(first)).toBe('granted'))
    const removed = new KindNotServed('TARGET_FAILED', 'no such kind')
    server.failure = removed
    server.change('tokengrants', removed)
    await vi.waitFor(() => expect(kindOf(first)).toBe('none'))
    server.failure = undefined
    const next = open(server, first.state)
    await vi.waitFor(() => expect(kindOf(next)).toBe('granted'))
  })
})

describe('the grants of all clusters', () => {
  const open = (server: Server, known: KnownGrants, log = silentLogger): TokenGrants =>
    new TokenGrants({
      clusters: [{ name: 'k8s', address: 'https://k8s', objects: { create: async () => away() }, watches: server }],
      endpoints: [...endpoints.values()],
      known,
      rateLimits: new MemoryRateLimits(() => new Date()),
      clock: () => new Date(),
      log,
    })
  const workload = { source: 'k8s', namespace: 'shop', account: 'cart' }

  test('of which nothing is known in time are no “0 grants”', async () => {
    const server = new Server()
    server.snapshot = () => new Promise(() => {})
    const grants = open(server, new Set())
    await grants.known('k8s', 50)
    expect(grants.describe('k8s')).toMatchObject({ accepted: 0, failure: new Error('no answer in time') })
    void grants.close()
  })

  test('continue from what is watched now, and from nothing that is closed', async () => {
    const server = new Server()
    const known: KnownGrants = new Set()
    const first = open(server, known)
    await first.known('k8s')
    expect(first.describe('k8s')).toEqual({ accepted: 1, refused: [], failure: undefined })
    const second = open(server, known)
    expect(second.find('aws', workload).kind).toBe('granted')
    expect(second.find('aws', { ...workload, byIssuer: true }).kind).toBe('none')
    await second.close()
    // A configuration that is given up costs the running one nothing.
    expect([...known].map(({ name }) => name)).toEqual(['k8s'])
    await first.close()
    expect(open(server, known).find('aws', workload).kind).toBe('unknown')
  })

  test('whose status may not be written are one line of the log', async () => {
    const server = new Server()
    server.objects['tokengrants'] = Array.from({ length: 100 }, (_, i) => grantOf('shop', `cart-${i}`))
    const warnings: unknown[] = []
    const log = {
      ...silentLogger,
      warn: (message: string, fields?: object) => void warnings.push({ message, ...fields }),
    }
    const grants = open(server, new Set(), log)
    grants.start()
    await vi.waitFor(() => expect(warnings).not.toEqual([]), 30_000)
    await grants.close()
    expect(warnings).toEqual([
      {
        message: 'the status of grants could not be written',
        ...{ cluster: 'k8s', grants: 100, grant: 'shop/cart-0', err: new Error('not here') },
      },
    ])
  })
})
