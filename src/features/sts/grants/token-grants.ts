import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import type { ClusterApi, ClusterWatches } from '#sdk/target/kubernetes-cluster.ts'
import { ClusterGrants, type GrantResult, type GrantsState } from './cluster-grants.ts'
import { GrantStatusWriter } from './grant-status.ts'
import type { GrantEndpoint } from './grant-verdict.ts'

/** A cluster whose grants count. */
export interface GrantCluster {
  readonly name: string
  /** Of its API server. */
  readonly address: string
  readonly objects: Pick<ClusterApi, 'create'>
  readonly watches: ClusterWatches
}

export interface OpenGrants {
  /** Of the cluster. */
  readonly name: string
  readonly address: string
  state(): GrantsState
  /** Since the API server last confirmed them; undefined before it did. */
  ageSeconds(): number | undefined
}

/** What is watched now. The next configuration continues from it. */
export type KnownGrants = Set<OpenGrants>

interface TokenGrantsParts {
  readonly clusters: readonly GrantCluster[]
  readonly endpoints: readonly GrantEndpoint[]
  readonly known: KnownGrants
  readonly rateLimits: RateLimits
  readonly clock: Clock
  readonly log: Logger
}

interface GrantedWorkload {
  /** The name of its cluster or issuer. */
  readonly source: string
  /** Undefined, like `account`, if it is not a service account. */
  readonly namespace: string | undefined
  readonly account: string | undefined
  /** Proven by an issuer, and not by a cluster. */
  readonly byIssuer?: true | undefined
}

/** Where token endpoints look for grants. */
export interface GrantSource {
  find(endpoint: string, workload: GrantedWorkload): GrantResult
  /** Resolves when the grants of the cluster are known, or can't be. */
  known?(cluster: string): Promise<void>
}

/** How long a command waits for the first list. */
const firstListMillis = 10_000

/** The grants of all clusters of the token endpoints. */
export class TokenGrants implements GrantSource {
  readonly #clusters: ReadonlyMap<string, ClusterGrants>
  readonly #writers: readonly GrantStatusWriter[]
  readonly #known: KnownGrants
  readonly #opened: OpenGrants[] = []

  constructor({ clusters, endpoints, known, ...shared }: TokenGrantsParts) {
    const byName = new Map(endpoints.map((one) => [one.name, one]))
    const writers: GrantStatusWriter[] = []
    this.#clusters = new Map(
      clusters.map(({ name, address, objects, watches }) => {
        const earlier = [...known].findLast((one) => one.name === name && one.address === address)
        const grants: ClusterGrants = new ClusterGrants({
          cluster: name,
          watches,
          endpoints: byName,
          log: shared.log,
          resume: earlier?.state(),
          onChange: () => writer.request(),
        })
        const writer = new GrantStatusWriter({
          ...shared,
          cluster: name,
          objects,
          watches,
          judged: () => grants.judged(),
        })
        writers.push(writer)
        const open = { name, address, state: () => grants.state, ageSeconds: () => grants.ageSeconds }
        known.add(open)
        this.#opened.push(open)
        return [name, grants]
      }),
    )
    this.#writers = writers
    this.#known = known
  }

  /** Watches, and writes the status of grants, until it is closed. */
  start(): void {
    for (const grants of this.#clusters.values()) grants.start()
    for (const writer of this.#writers) writer.start()
  }

  find(endpoint: string, { source, namespace, account, byIssuer }: GrantedWorkload): GrantResult {
    const cluster = byIssuer === true ? undefined : this.#clusters.get(source)
    if (cluster === undefined || namespace === undefined || account === undefined) return { kind: 'none' }
    return cluster.find(endpoint, namespace, account)
  }

  get clusters(): readonly string[] {
    return [...this.#clusters.keys()]
  }

  /** After `known`: the grants that count, those that don't with the reason, and why they are not known. */
  describe(name: string): {
    readonly accepted: number
    readonly refused: readonly string[]
    readonly failure: unknown
  } {
    const cluster = this.#clusters.get(name)
    const judged = cluster?.judged() ?? []
    const refused = judged.filter(({ verdict }) => verdict.status === 'False')
    return {
      accepted: judged.length - refused.length,
      refused: refused.map(
        ({ object: { metadata }, verdict }) => `${metadata.namespace}/${metadata.name}: ${verdict.message}`,
      ),
      failure: cluster?.failure ?? (cluster?.isKnown === false ? new Error('no answer in time') : undefined),
    }
  }

  /** For a command: watches the cluster without writing anything, and waits for its first list. */
  async known(name: string, millis = firstListMillis): Promise<void> {
    const cluster = this.#clusters.get(name)
    cluster?.start()
    const end = performance.now() + millis
    while (cluster?.isKnown === false && performance.now() < end) await delay(20)
  }

  async close(): Promise<void> {
    // Nothing continues from what is no longer watched: it would bring back what was deleted since.
    for (const open of this.#opened) this.#known.delete(open)
    await Promise.all(this.#writers.map((writer) => writer.close()))
    await Promise.all(Array.from(this.#clusters.values(), (grants) => grants.close()))
  }
}
