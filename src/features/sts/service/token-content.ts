import type { TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import { consumerLimits } from '#config/kinds/sts-preset.ts'
import { JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { Template } from '#kernel/template.ts'
import { isSpiffeId } from '#protocols/sts/spiffe.ts'
import { oauthRefusal } from '#protocols/sts/token-exchange.ts'
import type { Workload } from './workload.ts'

const awsTagsClaim = 'https://aws.amazon.com/tags'
const awsRolesClaim = 'https://aws.amazon.com/roles'
/** Lets verifiers whose clocks are a little behind accept the token at once. */
const notBeforeSeconds = 60
/** A token with less lifetime left is refused: it would expire before it can be used. */
const leastSeconds = 5
const awsTagValue = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]{1,256}$/u

export interface TokenContent {
  readonly claims: ReadonlyMap<string, JsonValue>
  readonly subject: string
  readonly ttlSeconds: number
  readonly expires: Date
}

/** What the mapping of additional claims reads. */
export const workloadSource = ({ username, attributes }: Workload): MappingSource => ({
  userID: username,
  groups: attributes.values('groups'),
  values: (name) => attributes.values(name),
  names: () => attributes.names(),
})

/**
 * The claims of a token for this workload in a fixed order, within the limits of its consumer. Additional claims can't
 * replace any other. It never outlives the subject token.
 * Throws `invalid_grant` if that has no lifetime left, and `invalid_target` if the consumer would reject it.
 */
export function tokenContent(
  endpoint: TokenEndpoint,
  workload: Workload,
  additional: ReadonlyMap<string, MappedValue>,
  jti: string,
  now: Date,
): TokenContent {
  const seconds = Math.floor(now.getTime() / 1000)
  const left = Math.floor(workload.expires.getTime() / 1000) - seconds
  const ttlSeconds = Math.min(endpoint.ttlSeconds, left)
  if (ttlSeconds < leastSeconds) throw oauthRefusal('invalid_grant', 'The subject token is about to expire.')
  const subject = checkedSubject(render(endpoint.subject, workload), endpoint)
  const account = accountOf(workload)
  const tags = awsTags(endpoint, workload)
  // Whole numbers and one text as audience: Amazon rejects fractions, and requires `azp` if there are several.
  const claims = new Map<string, JsonValue>([
    ['iss', endpoint.issuer],
    ['sub', subject],
    ['aud', endpoint.audience],
    ['iat', seconds],
    ['nbf', seconds - notBeforeSeconds],
    ['exp', seconds + ttlSeconds],
  ])
  if (endpoint.jti) claims.set('jti', jti)
  for (const [name, value] of account) claims.set(name, value)
  if (tags !== undefined) claims.set(awsTagsClaim, tags)
  if (endpoint.awsRoles.length > 0) claims.set(awsRolesClaim, [...endpoint.awsRoles])
  for (const [name, value] of additional) if (!claims.has(name)) claims.set(name, claimValue(value))
  return { claims, subject, ttlSeconds, expires: new Date((seconds + ttlSeconds) * 1000) }
}

/** `check` relies on these characters in names when it says that subjects can't collide. */
const namespaceName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const accountName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** None if the subject is not a service account. */
function accountOf({ source, namespace, account }: Workload): readonly (readonly [string, string])[] {
  if (namespace === undefined || account === undefined) return []
  if (!namespaceName.test(namespace) || !accountName.test(account)) {
    throw oauthRefusal('invalid_target', 'The service account has a name that Kubernetes does not allow.')
  }
  return [
    ['cluster', source],
    ['namespace', namespace],
    ['saname', account],
  ]
}

const render = (template: Template, { attributes }: Workload): string =>
  template.render({ attribute: (name) => attributes.first(name) })

function checkedSubject(subject: string, { preset }: TokenEndpoint): string {
  const { leastSubject, mostSubject } = consumerLimits(preset)
  const consumer = preset ?? 'OpenID Connect'
  if (!/^[\x21-\x7e]*$/.test(subject)) {
    throw oauthRefusal('invalid_target', 'The subject holds characters that consumers do not take.')
  }
  if (preset === 'spiffe' && !isSpiffeId(subject)) {
    throw oauthRefusal('invalid_target', 'The subject is not a SPIFFE ID.')
  }
  if (subject.length > mostSubject) {
    const description = `The subject has ${subject.length} bytes, and ${consumer} takes ${mostSubject}.`
    throw oauthRefusal('invalid_target', description)
  }
  if (subject.length < leastSubject) {
    throw oauthRefusal(
      'invalid_target',
      `The subject is shorter than the ${leastSubject} bytes that ${consumer} wants.`,
    )
  }
  return subject
}

/** One value is a text, several are a list: consumers compare texts. */
function claimValue(value: MappedValue): JsonValue {
  if (value instanceof JsonDocument) return value.value
  return value.length === 1 ? (value[0] ?? '') : [...value]
}

/** Amazon requires each value as a list of one. Undefined without tags. */
function awsTags({ awsTags: tags }: TokenEndpoint, workload: Workload): JsonValue | undefined {
  const values = Array.from(tags?.principal ?? [], ([name, template]): [string, string[]] => {
    const value = render(template, workload)
    if (awsTagValue.test(value)) return [name, [value]]
    throw oauthRefusal('invalid_target', 'A session tag has no value that AWS takes.', `the session tag "${name}"`)
  })
  const transitive = tags?.transitive ?? []
  if (values.length === 0) return undefined
  const principal = { principal_tags: Object.fromEntries(values) }
  return transitive.length === 0 ? principal : { ...principal, transitive_tag_keys: [...transitive] }
}
