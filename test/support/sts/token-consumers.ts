import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JWK, type JWTPayload, jwtVerify } from 'jose'

/** The settings of a consumer, and its view of a token. */
export interface Presented {
  /** As received, byte for byte. */
  readonly token: string
  readonly keys: { readonly keys: readonly Readonly<Record<string, unknown>>[] }
  /** `iss` in the consumer's account. */
  readonly issuer: string
  readonly audience: string
  readonly now: Date
}

type Claims = JWTPayload & Readonly<Record<string, unknown>>

interface Seen extends Presented {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Claims
}

/** A rule of a vendor, with the reason if it is broken. */
type Rule = readonly [name: string, holds: (seen: Seen) => boolean]

const bytes = (value: unknown): number => (typeof value === 'string' ? Buffer.byteLength(value) : Number.NaN)
const life = ({ claims: { exp, iat } }: Seen): number => (exp ?? Number.NaN) - (iat ?? Number.NaN)
const isOneElementList = (value: unknown): boolean => Array.isArray(value) && value.length === 1
const keyMembers = (allowed: readonly string[]) => (seen: Seen) =>
  seen.keys.keys.every((key) => Object.keys(key).every((name) => allowed.includes(name)))

const amazon: readonly Rule[] = [
  ['the algorithm is RS or ES', ({ header }) => /^(RS|ES)(256|384|512)$/.test(String(header['alg']))],
  [
    'iss, sub, aud, iat and exp are there',
    ({ claims }) => ['iss', 'sub', 'aud', 'iat', 'exp'].every((c) => c in claims),
  ],
  [
    'times are whole numbers',
    ({ claims }) => ['iat', 'nbf', 'exp'].every((c) => claims[c] === undefined || Number.isInteger(claims[c])),
  ],
  [
    'times hold within five minutes',
    ({ claims, now }) => {
      const seconds = now.getTime() / 1000
      const { iat = 0, nbf = 0, exp = 0 } = claims
      return iat <= seconds + 300 && nbf <= seconds + 300 && exp > seconds - 300
    },
  ],
  [
    'several audiences come with azp',
    ({ claims }) => !Array.isArray(claims.aud) || claims.aud.length === 1 || 'azp' in claims,
  ],
  ['keys have a kid', ({ keys }) => keys.keys.every((key) => typeof key['kid'] === 'string')],
  ['keys are not for encryption', ({ keys }) => keys.keys.every((key) => key['use'] !== 'enc')],
  ['keys have no key_ops', ({ keys }) => keys.keys.every((key) => !('key_ops' in key))],
  ['there are at most 100 keys', ({ keys }) => keys.keys.length <= 100],
  ['a subject of 6 to 255', ({ claims }) => bytes(claims.sub) >= 6 && bytes(claims.sub) <= 255],
  ['the issuer has no port and no query', ({ claims }) => /^https:\/\/[^:?#]+$/.test(claims.iss ?? '')],
  [
    'session tags are lists of one',
    ({ claims }) => {
      const tags = claims['https://aws.amazon.com/tags'] as { principal_tags?: Record<string, unknown> } | undefined
      return tags === undefined || Object.values(tags.principal_tags ?? {}).every(isOneElementList)
    },
  ],
]

const microsoft: readonly Rule[] = [
  ['the algorithm is RS256', ({ header }) => header['alg'] === 'RS256'],
  ['issuer is exactly the configured one', ({ claims, issuer }) => claims.iss === issuer],
  [
    'issuer, subject and audience have at most 600',
    ({ claims, audience }) => [claims.iss, claims.sub, audience].every((t) => bytes(t) <= 600),
  ],
  ['no space around the issuer', ({ claims }) => claims.iss === claims.iss?.trim()],
  ['a life of at most 25 hours', (seen) => life(seen) <= 25 * 3600],
]

const google: readonly Rule[] = [
  ['a kid in the header', ({ header }) => typeof header['kid'] === 'string'],
  ['the algorithm is RS256 or ES256', ({ header }) => header['alg'] === 'RS256' || header['alg'] === 'ES256'],
  ['iat is in the past', ({ claims, now }) => (claims.iat ?? Number.NaN) <= Math.ceil(now.getTime() / 1000)],
  ['a life below 48 hours', (seen) => life(seen) < 48 * 3600],
  ['a subject of at most 127 bytes', ({ claims }) => bytes(claims.sub) <= 127],
  ['an audience of at most 256', ({ audience }) => bytes(audience) <= 256],
  ['keys have no other members', keyMembers(['kty', 'alg', 'use', 'kid', 'n', 'e', 'x', 'y', 'crv'])],
  ['at most 8 KB of claims', ({ claims }) => JSON.stringify(claims).length <= 8192],
]

const vault: readonly Rule[] = [
  ['issuer is byte equal', ({ claims, issuer }) => claims.iss === issuer],
  ['user_claim is a text', ({ claims }) => typeof claims.sub === 'string'],
]

const kubernetes: readonly Rule[] = [
  ['issuer is byte equal and https', ({ claims, issuer }) => claims.iss === issuer && issuer.startsWith('https://')],
  ['nbf within 60 seconds', ({ claims, now }) => (claims.nbf ?? 0) <= now.getTime() / 1000 + 60],
  ['not expired at all', ({ claims, now }) => (claims.exp ?? 0) > now.getTime() / 1000],
]

const anthropic: readonly Rule[] = [
  ['at most 16 KiB', ({ token }) => token.length <= 16 * 1024],
  ['a kid in the header', ({ header }) => typeof header['kid'] === 'string'],
  ['sub, iat and exp are there', ({ claims }) => ['sub', 'iat', 'exp'].every((c) => c in claims)],
  ['a life of at most an hour', (seen) => life(seen) <= 3600],
  [
    'claims are texts at the top',
    ({ claims }) => ['cluster', 'namespace', 'saname'].every((c) => typeof claims[c] === 'string'),
  ],
]

/** The rules of each vendor, beyond a valid signature, issuer and audience. */
export const consumerRules = { aws: amazon, azure: microsoft, gcp: google, vault, kubernetes, anthropic } as const
export type Consumer = keyof typeof consumerRules

/** Every reason for which the vendor would reject the token; empty if it accepts it. */
export async function refusalsBy(consumer: Consumer, presented: Presented): Promise<string[]> {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(presented.token)) return ['not a compact JWT, byte for byte']
  const seen: Seen = {
    ...presented,
    header: decodeProtectedHeader(presented.token),
    claims: decodeJwt(presented.token),
  }
  const reasons = consumerRules[consumer].filter(([, holds]) => !holds(seen)).map(([name]) => name)
  try {
    await jwtVerify(presented.token, createLocalJWKSet({ keys: presented.keys.keys as JWK[] }), {
      issuer: presented.issuer,
      audience: presented.audience,
      currentDate: presented.now,
      clockTolerance: consumer === 'aws' ? 300 : 30,
    })
  } catch (error) {
    reasons.push(error instanceof Error ? error.message : String(error))
  }
  return reasons
}
