import type { Clock } from '#kernel/clock.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { DiscoveredKeySet, type DiscoveryTimes, discoveryTimes } from '#protocols/jwt/discovered-key-set.ts'
import type { FetchLimits } from '#protocols/jwt/fetch-json.ts'
import type { KeySet } from '#protocols/jwt/key-set.ts'

/** Gets a JSON document from the API server itself, with the gateway's credentials. */
export type FetchFromCluster = (path: string, limits: FetchLimits) => Promise<unknown>

export interface ClusterKeySet extends KeySet {
  /** What the cluster calls itself in `iss`; known as soon as a key was found. */
  readonly issuer: string | undefined
}

const discoveryPath = '/.well-known/openid-configuration'
const keysPath = '/openid/v1/jwks'
/** A placeholder where an address is needed. Requests go to the API server instead. */
const placeholder = 'https://cluster.invalid'

/**
 * The keys that a cluster signs service-account tokens with. The addresses in its discovery document are for others,
 * and often cannot be reached from here, so both documents are read from the API server's own address.
 */
export function createClusterKeySet(
  fetch: FetchFromCluster,
  clock: Clock,
  log: Logger,
  times: DiscoveryTimes = discoveryTimes,
): ClusterKeySet {
  let issuer: string | undefined
  const keys = new DiscoveredKeySet({
    issuer: placeholder,
    owner: 'the cluster',
    clock,
    log,
    times,
    fetch: async (url, limits) => {
      if (url.pathname !== discoveryPath) return fetch(keysPath, limits)
      const document = await fetch(discoveryPath, limits)
      const named = isJsonObject(document) ? document['issuer'] : undefined
      if (typeof named !== 'string' || named === '') throw new Error('the cluster does not say what its issuer is')
      issuer = named
      return { issuer: placeholder, jwks_uri: `${placeholder}${keysPath}` }
    },
  })
  return {
    get issuer() {
      return issuer
    },
    find: (algorithm, kid) => keys.find(algorithm, kid),
    fresh: () => keys.fresh(),
  }
}
