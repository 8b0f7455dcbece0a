import type { JsonValue } from '#kernel/json.ts'

interface TokenTimes {
  /** Whole seconds since 1970. */
  readonly now: number
  readonly ttlSeconds: number
}

export interface WorkloadClaims extends TokenTimes {
  readonly issuer: string
  readonly subject: string
  readonly audience: string
  readonly jti: string | undefined
  /** Undefined if the subject is not a service account. */
  readonly account: { readonly cluster: string; readonly namespace: string; readonly name: string } | undefined
  readonly additional: ReadonlyMap<string, JsonValue>
  /** By tag name. */
  readonly awsTags: ReadonlyMap<string, string>
  readonly awsTransitiveTags: readonly string[]
  readonly awsRoles: readonly string[]
}

const awsTagsClaim = 'https://aws.amazon.com/tags'
const awsRolesClaim = 'https://aws.amazon.com/roles'
/** Lets verifiers whose clocks are a little behind accept the token at once. */
const notBeforeSeconds = 60

/**
 * The claims of a token, in a fixed order. Times are whole numbers and the audience is one text, because Amazon
 * rejects fractions, and requires `azp` if there are several. Additional claims can't replace any other.
 */
export function workloadClaims(content: WorkloadClaims): Map<string, JsonValue> {
  const { now, ttlSeconds, jti } = content
  const claims = new Map<string, JsonValue>([
    ['iss', content.issuer],
    ['sub', content.subject],
    ['aud', content.audience],
    ['iat', now],
    ['nbf', now - notBeforeSeconds],
    ['exp', now + ttlSeconds],
  ])
  if (jti !== undefined) claims.set('jti', jti)
  if (content.account !== undefined) {
    claims.set('cluster', content.account.cluster)
    claims.set('namespace', content.account.namespace)
    claims.set('saname', content.account.name)
  }
  if (content.awsTags.size > 0) claims.set(awsTagsClaim, tagsClaim(content))
  if (content.awsRoles.length > 0) claims.set(awsRolesClaim, [...content.awsRoles])
  for (const [name, value] of content.additional) if (!claims.has(name)) claims.set(name, value)
  return claims
}

/** Amazon requires each value as a list of one. */
const tagsClaim = ({ awsTags, awsTransitiveTags }: WorkloadClaims): JsonValue => ({
  principal_tags: Object.fromEntries(Array.from(awsTags, ([name, value]) => [name, [value]])),
  ...(awsTransitiveTags.length === 0 ? {} : { transitive_tag_keys: [...awsTransitiveTags] }),
})
