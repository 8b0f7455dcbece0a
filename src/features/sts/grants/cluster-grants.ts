import type { Logger } from '#kernel/logger.ts'
import { KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { Informer, type InformerState } from '#protocols/kubernetes/informer.ts'
import type { ClusterWatches } from '#sdk/target/kubernetes-cluster.ts'
import { type GrantEndpoint, type GrantVerdict, judgeGrants, mayHaveGrants } from './grant-verdict.ts'
import {
  type GrantNamespace,
  grantName,
  grantOf,
  namespaces,
  readNamespace,
  reducedGrant,
  reducedNamespace,
  type TokenGrant,
  tokenGrants,
} from './token-grant.ts'

/** What is known of a workload by grants. */
export type GrantResult =
  | { readonly kind: 'granted'; readonly grant: string }
  /** With the grants of its namespace that don't count, and why, where there is no status that has it. */
  | { readonly kind: 'none'; readonly refused?: readonly string[] }
  /** Grants could allow it, and are not known. */
  | { readonly kind: 'unknown'; readonly reason: string }

export interface ClusterGrantsParts {
  /** The name of its target. */
  readonly cluster: string
  readonly watches: ClusterWatches
  readonly endpoints: ReadonlyMap<string, GrantEndpoint>
  readonly log: Logger
  /** What an earlier configuration knew of the same cluster. */
  readonly resume: GrantsState | undefined
  onChange(): void
}

export interface GrantsState {
  readonly grants: InformerState | undefined
  readonly namespaces: InformerState | undefined
}

/** A TokenGrant with what is decided about it. */
export interface JudgedGrant {
  readonly object: ClusterObject
  readonly verdict: GrantVerdict
}

interface ReadGrant extends TokenGrant {
  readonly object: ClusterObject
}

/** Of each kind; a namespace beyond its share does not cost others theirs. */
const mostGrants = 20_000
export const mostInNamespace = 200
const mostNamespaces = 50_000
/** A hanging connection is noticed after this time at the latest. */
const watchSeconds = 60

/** The grants of one cluster, and its namespaces: watched, so that what is deleted stops counting at once. */
export class ClusterGrants {
  readonly #parts: ClusterGrantsParts
  readonly #grants: Informer
  readonly #namespaces: Informer
  readonly #read = new WeakMap<ClusterObject, ReadGrant>()
  #byNamespace: ReadonlyMap<string, readonly ReadGrant[]> | undefined
  #known: ReadonlyMap<string, GrantNamespace> | undefined
  readonly #verdicts = new Map<string, ReadonlyMap<ReadGrant, GrantVerdict>>()
  #isStarted = false
  #isSilent = false

  constructor(parts: ClusterGrantsParts) {
    this.#parts = parts
    const { resume } = parts
    const changed = (): void => {
      this.#byNamespace = undefined
      this.#known = undefined
      this.#verdicts.clear()
      parts.onChange()
    }
    const informer = (
      resource: ClusterResource,
      more: Pick<ConstructorParameters<typeof Informer>[0], 'most' | 'mostPerNamespace' | 'reduce' | 'resume'>,
    ): Informer =>
      new Informer({
        objects: parts.watches,
        resource,
        times: { watchSeconds, firstPauseMillis: 200, longestPauseMillis: 15_000 },
        onChange: changed,
        onError: reporter(parts, resource.plural),
        ...more,
      })
    this.#grants = informer(tokenGrants, {
      most: mostGrants,
      mostPerNamespace: mostInNamespace,
      reduce: reducedGrant,
      resume: resume?.grants,
    })
    this.#namespaces = informer(namespaces, {
      most: mostNamespaces,
      reduce: reducedNamespace,
      resume: resume?.namespaces,
    })
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#grants.start()
    this.#namespaces.start()
  }

  async close(): Promise<void> {
    await Promise.all([this.#grants.close(), this.#namespaces.close()])
  }

  /** False until both kinds were listed once. */
  get isKnown(): boolean {
    return this.#grants.isComplete && this.#namespaces.isComplete
  }

  get failure(): unknown {
    return this.#grants.failure ?? this.#namespaces.failure
  }

  /** Since the API server last confirmed what is known; undefined before it did. */
  get ageSeconds(): number | undefined {
    const heard = Math.min(this.#grants.heardAt, this.#namespaces.heardAt)
    return Number.isFinite(heard) ? (performance.now() - heard) / 1000 : undefined
  }

  get state(): GrantsState {
    return { grants: this.#grants.state, namespaces: this.#namespaces.state }
  }

  /** The oldest accepted grant that allows this account tokens of the endpoint. */
  find(endpoint: string, namespace: string, account: string): GrantResult {
    const limits = this.#parts.endpoints.get(endpoint)?.grants
    if (limits === undefined) return { kind: 'none' }
    const silence = this.#silence(limits.staleSeconds)
    if (silence !== undefined) {
      const place = this.#namespaceOf(namespace)
      const isWithin = mayHaveGrants({ ...limits, namespaceLabels: new Map() }, namespace, place ?? anyNamespace)
      return isWithin ? { kind: 'unknown', reason: silence } : { kind: 'none' }
    }
    for (const [grant, { status }] of this.#verdictsOf(namespace)) {
      if (status === 'True' && grant.endpoint === endpoint && grant.serviceAccounts.includes(account)) {
        return { kind: 'granted', grant: grantName(grant) }
      }
    }
    return { kind: 'none' }
  }

  /** Every grant with its verdict; none while namespaces are not known. */
  judged(): readonly JudgedGrant[] {
    if (!this.isKnown) return []
    return [...this.#grantsByNamespace().keys()].flatMap((namespace) =>
      Array.from(this.#verdictsOf(namespace), ([{ object }, verdict]) => ({ object, verdict })),
    )
  }

  /** Why what is known does not count; undefined if it does. */
  #silence(staleSeconds: number): string | undefined {
    const { cluster, log } = this.#parts
    if (!this.isKnown) return `the grants of the cluster "${cluster}" are not known yet`
    const seconds = this.ageSeconds ?? Number.POSITIVE_INFINITY
    const isSilent = seconds > staleSeconds
    if (isSilent !== this.#isSilent) {
      this.#isSilent = isSilent
      if (isSilent) log.error('grants no longer count: the API server could not be watched', { cluster, staleSeconds })
      else log.info('grants count again', { cluster })
    }
    if (!isSilent) return undefined
    return `the grants of the cluster "${cluster}" could not be watched for ${Math.floor(seconds)} s`
  }

  #grantsByNamespace(): ReadonlyMap<string, readonly ReadGrant[]> {
    this.#byNamespace ??= Map.groupBy(
      this.#grants.objects.map((object) => this.#readGrant(object)),
      ({ namespace }) => namespace,
    )
    return this.#byNamespace
  }

  #readGrant(object: ClusterObject): ReadGrant {
    const known = this.#read.get(object) ?? { ...grantOf(object), object }
    this.#read.set(object, known)
    return known
  }

  #namespaceOf(name: string): GrantNamespace | undefined {
    this.#known ??= new Map(this.#namespaces.objects.map((object) => [object.metadata.name, readNamespace(object)]))
    return this.#known.get(name)
  }

  #verdictsOf(namespace: string): ReadonlyMap<ReadGrant, GrantVerdict> {
    const { cluster, endpoints } = this.#parts
    const known = this.#verdicts.get(namespace)
    if (known !== undefined) return known
    const grants = this.#grantsByNamespace().get(namespace) ?? []
    if (grants.length === 0) return new Map()
    const judged = judgeGrants(grants, this.#namespaceOf(namespace), endpoints, cluster)
    this.#verdicts.set(namespace, judged)
    return judged
  }
}

const anyNamespace: GrantNamespace = { labels: {}, isEnding: false }

/** Logs each failure once until another one. */
function reporter({ cluster, log }: ClusterGrantsParts, plural: string): (error: unknown) => void {
  let reported = ''
  return (err) => {
    const message = String(err)
    if (message === reported) return
    reported = message
    if (err instanceof KindNotServed) {
      log.warn('the cluster has no TokenGrants: apply deploy/crds/tokengrants.yaml', { cluster })
    } else {
      log.warn('the watch for grants failed; the known ones count for a limited time', { cluster, plural, err })
    }
  }
}
