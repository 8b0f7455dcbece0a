import type { Configuration } from '#config/configuration/configuration.ts'
import type { TokenIssuer } from '#config/configuration/token-keys.ts'
import { readPublications } from '#features/sts/publish/publication.ts'
import type { Logger } from '#kernel/logger.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'
import { type KeyRing, mayActivateAt, readRing } from '#keys/key-ring.ts'
import type { KeyStore } from '#keys/key-store.ts'
import { hostOrigins, type RequestPlace } from '#sdk/http/host-origins.ts'

interface TokenIssuerFacts {
  readonly name: string
  /** For workloads, or for users of OpenID Connect clients. */
  readonly kind: 'workloads' | 'users'
  /** Where it is configured. */
  readonly at: string
  readonly issuer: string
  readonly algorithm: string
  /** The longest lifetime of a token. */
  readonly maxTokenSeconds: number
  /** The audience of its tokens; of workloads only. */
  readonly audience?: string
  /** Clusters and issuers whose tokens it exchanges. */
  readonly accepts: readonly string[]
  /** The number of rules; grants count as one. Without any, no one gets a token. */
  readonly rules: number
  /** In the order of their lives; absent if they can't be read. */
  readonly keys?: readonly TokenKeyFacts[]
  /** The destinations of the documents, and reading them back. */
  readonly publications: readonly PublicationFacts[]
}

interface TokenKeyFacts {
  readonly kid: string
  readonly algorithm: string
  readonly state: 'next' | 'active' | 'retiring'
  /** Comes from a file or a secret, whose owner replaces it. */
  readonly given: boolean
  /** The service that stores the private part, such as `transit/aws`. */
  readonly custody?: string
  readonly created: Date
  readonly visibleSince?: Date
  readonly activated?: Date
  /** When the next key may sign, as far as known. */
  readonly activatesAt?: Date
  /** When it is removed from the documents. */
  readonly goneAt?: Date
}

interface PublicationFacts {
  readonly place: string
  /** The last success. */
  readonly done?: Date
  /** Failed tries since then. */
  readonly failures: number
  readonly error?: string
  readonly retryAt?: Date
}

interface TokenReportParts {
  readonly store: Pick<KeyStore, 'list'>
  readonly log: Logger
  /** The running configuration. */
  configuration(): Pick<Configuration, 'stsEndpoints' | 'issuers'>
}

type Described = Pick<TokenIssuerFacts, 'keys' | 'publications'>

/**
 * The endpoints of the token service and the own issuers, with their stored keys, for administrators. Private parts of
 * keys are never in it.
 */
export class TokenReport {
  readonly #parts: TokenReportParts

  constructor(parts: TokenReportParts) {
    this.#parts = parts
  }

  /** The issuer of an OpenID Connect issuer is an address at the host of the request, or else at its first host. */
  async describe(request: RequestPlace): Promise<readonly TokenIssuerFacts[]> {
    const { store, log, configuration } = this.#parts
    const stored = new Map((await store.list()).map((each) => [each.endpoint, each]))
    const keysOf = ({ endpoint }: TokenIssuer): Described => {
      const found = stored.get(endpoint)
      if (found === undefined) return { keys: [], publications: [] }
      const publications = [...readPublications(found.publications)].map(
        ([place, { done, failures, error, retryAt }]) => ({
          place,
          failures,
          ...(error === null ? {} : { error: withoutTokens(error) }),
          ...dates({ done, retryAt }),
        }),
      )
      try {
        return { keys: describeKeys(readRing(endpoint, found.ring)), publications }
      } catch (err) {
        log.error('stored keys cannot be read', { endpoint, err })
        return { publications }
      }
    }
    const { stsEndpoints, issuers } = configuration()
    return [
      ...stsEndpoints.map(({ endpoint, issuer, rules, at }) => ({
        ...describeIssuer(issuer),
        name: endpoint.name,
        kind: 'workloads' as const,
        at,
        audience: endpoint.audience,
        accepts: [...endpoint.clusters, ...endpoint.subjectIssuers.map(({ name }) => name)],
        rules: rules.length + (endpoint.grants === undefined ? 0 : 1),
        ...keysOf(issuer),
      })),
      ...issuers.map(({ name, keys, rules, at, trusts, hosts, mount }) => ({
        ...describeIssuer(keys),
        issuer: `${hostOrigins(hosts, request)[0] ?? request.origin}${mount}`,
        name,
        kind: 'users' as const,
        at,
        accepts: trusts.map((trust) => trust.name),
        rules: rules.length,
        ...keysOf(keys),
      })),
    ]
  }
}

const describeIssuer = ({ issuer, algorithm, maxTokenSeconds }: TokenIssuer) => ({ issuer, algorithm, maxTokenSeconds })

const order = ['next', 'active', 'retiring'] as const

function describeKeys(ring: KeyRing): TokenKeyFacts[] {
  const activatesAt = mayActivateAt(ring)
  return order.flatMap((state) =>
    ring.keys
      .filter((key) => key.state === state)
      .map(({ kid, alg, given, custody, created, visible, activated, gone }) => ({
        kid,
        algorithm: alg,
        state,
        given,
        ...(custody === null ? {} : { custody: `${custody.key} version ${custody.version}` }),
        created: new Date(created),
        ...dates({
          visibleSince: visible,
          activated,
          goneAt: gone,
          activatesAt: state === 'next' ? (activatesAt ?? null) : null,
        }),
      })),
  )
}

/** Those that have happened, or are known. */
const dates = <N extends string>(times: Readonly<Record<N, number | null>>): { readonly [name in N]?: Date } =>
  Object.fromEntries(
    Object.entries<number | null>(times).flatMap(([name, time]) => (time === null ? [] : [[name, new Date(time)]])),
  ) as { readonly [name in N]?: Date }
