import type { Configuration } from '#config/configuration/configuration.ts'
import type { TokenIssuer } from '#config/configuration/token-keys.ts'
import { readPublications } from '#features/sts/publish/publication.ts'
import type { Logger } from '#kernel/logger.ts'
import { withoutTokens } from '#kernel/text/redaction.ts'
import { type KeyRing, mayActivateAt, readRing } from '#keys/key-ring.ts'
import type { KeyStore } from '#keys/key-store.ts'
import { hostOrigins } from '#sdk/http/host-origins.ts'
import type { TokenIssuerFacts, TokenKeyFacts, TokenReportAccess } from './token-report-view.ts'

interface TokenReportParts {
  readonly store: Pick<KeyStore, 'list'>
  readonly log: Logger
  /** The running configuration. */
  configuration(): Pick<Configuration, 'stsEndpoints' | 'issuers'>
}

type Described = Pick<TokenIssuerFacts, 'keys' | 'publications'>

/** The endpoints of the token service and the own issuers, with their stored keys. */
export function createTokenReport({ store, log, configuration }: TokenReportParts): TokenReportAccess {
  return {
    async describe(request) {
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
          rules: rules.length,
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
    },
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
