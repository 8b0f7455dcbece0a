import type { Sighting } from '#engine/keys/key-ring.ts'
import type { Clock } from '#kernel/clock.ts'
import { parseIssuerUrl } from '#kernel/issuer-url.ts'
import { isJsonObject } from '#kernel/json.ts'
import { type FetchLimits, fetchJsonAnswer } from '#protocols/jwt/fetch-json.ts'
import { cacheLifetime } from '#protocols/sts/cache-lifetime.ts'
import { discoveryPath, keysPath } from '#protocols/sts/discovery-document.ts'
import type { IssuerDocuments, PublicTokenKey, TokenIssuer } from '#sdk/sts/token-keys.ts'

const limits: FetchLimits = { bytes: 256 * 1024, millis: 10_000 }
/** Azure reads no more. */
const mostKeys = 100

export type ReadBack = (issuer: TokenIssuer, documents: IssuerDocuments, clock: Clock) => Promise<Sighting>

/**
 * What a consumer finds at the issuer URL now, read as one reads it: no redirects, bounded. A key counts when all of it
 * is there as we would publish it, and its algorithm is announced. Throws a plain Error, for people, when the documents are not those of the issuer.
 */
export const readBack: ReadBack = async (issuer, documents, clock) => {
  const base = issuer.issuer
  parseIssuerUrl(base)
  const discovery = await fetchJsonAnswer(new URL(base + discoveryPath), limits)
  if (!isJsonObject(discovery.body)) throw new Error('the discovery document is not a JSON object')
  if (discovery.body['issuer'] !== base) throw new Error('the discovery document names another issuer')
  if (discovery.body['jwks_uri'] !== base + keysPath) throw new Error('the discovery document names other keys')
  const keys = await fetchJsonAnswer(new URL(base + keysPath), limits)
  const found = isJsonObject(keys.body) ? keys.body['keys'] : undefined
  if (!Array.isArray(found)) throw new Error('the key document has no "keys"')
  if (found.length > mostKeys) throw new Error(`the key document has more than ${mostKeys} keys`)
  const algorithms = discovery.body['id_token_signing_alg_values_supported']
  const announced = (alg: string | undefined) => Array.isArray(algorithms) && algorithms.includes(alg ?? '')
  const seen = documents.keys.keys.filter(
    (key) => announced(key['alg']) && found.some((other) => isSameKey(key, other)),
  )
  const lifetimes = [discovery, keys].map(({ headers }) => cacheLifetime(headers, issuer.cdnSeconds))
  return {
    at: clock().getTime(),
    kids: new Set(seen.flatMap(({ kid }) => (kid === undefined ? [] : [kid]))),
    cacheSeconds: Math.max(...lifetimes),
  }
}

const isSameKey = (key: PublicTokenKey, other: unknown): boolean =>
  isJsonObject(other) && Object.entries(key).every(([name, value]) => other[name] === value)
