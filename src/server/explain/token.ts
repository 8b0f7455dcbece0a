import type { Configuration, StsEndpointConfig, TargetConfig } from '#config/configuration/configuration.ts'
import type { TokenEndpoint } from '#config/configuration/token-endpoint.ts'
import type { GrantResult } from '#features/sts/grants/cluster-grants.ts'
import type { GrantSource } from '#features/sts/grants/token-grants.ts'
import { issuerAttributes } from '#features/sts/service/issuer-subjects.ts'
import type { TokenContent } from '#features/sts/service/token-content.ts'
import type { TokenIssuing } from '#features/sts/service/token-issuing.ts'
import { type Workload, workloadSubject } from '#features/sts/service/workload.ts'
import { Attributes } from '#identity/attributes.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { RuleEvaluator } from '#requests/routing/rule-evaluator.ts'
import type { RuleVerdict } from '#sdk/rule/rule.ts'
import type { KubernetesCluster } from '#sdk/target/kubernetes-cluster.ts'
import { workloadAttributes } from '#sdk/target/service-account.ts'
import type { AccountTokenVerifier } from '#sdk/target/token-review.ts'
import type { Detail, Explanation } from './explanation.ts'
import { verdictText } from './request.ts'

/** The explained token: an actual one, or that of a described workload. */
export type ExplainedWorkload =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'described'; readonly attributes: DescribedAttributes }

/** By name, as they were given. */
type DescribedAttributes = ReadonlyMap<string, readonly string[]>

type Evaluator = RuleEvaluator

/** What a token endpoint does for a workload. */
export interface TokenDecision {
  readonly verdicts: readonly RuleVerdict[]
  /** Of a grant; undefined if the endpoint honors none, or a rule passes. */
  readonly granted?: GrantResult | undefined
  /** The token that it would issue. */
  readonly content?: TokenContent
  /** Why it would issue none although a rule passes. */
  readonly refusal?: GatewayError
}

/** A described workload has a token that does not expire. */
const far = new Date(8.64e15)

/** Signs, audits and counts nothing. Without `grants`, none counts. */
export async function decideToken(
  { tokens, rules: evaluator, grants }: TokenDecider,
  { endpoint, rules }: StsEndpointConfig,
  workload: Workload,
): Promise<TokenDecision> {
  const verdicts = await evaluator.explain(workloadSubject(workload), rules)
  const isAsked = !verdicts.some(({ passed }) => passed) && endpoint.grants !== undefined
  const granted = isAsked ? (grants?.find(endpoint.name, workload) ?? { kind: 'none' as const }) : undefined
  const decision = { verdicts, granted }
  if (granted?.kind !== 'granted' && !verdicts.some(({ passed }) => passed)) return decision
  try {
    return { ...decision, content: await tokens.preview(endpoint.name, workload) }
  } catch (error) {
    return { ...decision, refusal: asGatewayError(error) }
  }
}

/** What decides about tokens. */
export interface TokenDecider {
  readonly tokens: TokenIssuing
  readonly rules: Evaluator
  readonly grants?: GrantSource | undefined
}

/** In words. */
export function grantText(granted: GrantResult): string {
  if (granted.kind === 'granted') return `pass  TokenGrant ${granted.grant}`
  return granted.kind === 'none' ? 'fail  no TokenGrant that counts allows it' : `unknown  ${granted.reason}`
}

/** Why grants of the workload's namespace don't count, as far as their file says. */
export const refusedGrants = (granted: GrantResult | undefined): readonly string[] =>
  granted?.kind === 'none' ? (granted.refused ?? []) : []

/**
 * What a token endpoint would do for this workload, in words. An actual token is verified and reviewed as the
 * endpoint does it. Throws a plain Error for a wrong description of a workload.
 */
export async function explainToken(
  decider: TokenDecider,
  config: StsEndpointConfig,
  explained: ExplainedWorkload,
): Promise<Explanation> {
  const { tokens } = decider
  const { endpoint, at } = config
  const details: Detail[] = []
  const add = (about: string, text: string, more?: readonly string[]): void => void details.push({ about, text, more })
  add('endpoint', `${endpoint.name} (${at})`)
  add('audience', endpoint.audience)
  add('issuer', endpoint.issuer)
  for (const accepted of acceptedTokens(endpoint)) add('accepts', accepted)
  const refuse = (step: string, { message, status, keyword, code }: GatewayError): Explanation => {
    add(step, message)
    add('decision', `refused: ${status} ${keyword ?? code}`)
    return { allowed: false, details }
  }
  let workload: Workload
  if (explained.kind === 'described') workload = describeWorkload(explained.attributes, endpoint)
  else {
    try {
      workload = await tokens.validate(endpoint.name, explained.token.trim())
    } catch (error) {
      return refuse('token', asGatewayError(error))
    }
    add('token', `accepted${proofOf(workload)}`)
  }
  const attributes = Array.from(workload.attributes, ([name, values]) => `${name}: ${values.join(', ')}`)
  add('workload', `${workload.username} of ${workload.source}`, attributes)
  await decider.grants?.known?.(workload.source)
  const { verdicts, granted, content, refusal } = await decideToken(decider, config, workload)
  for (const verdict of verdicts) add('rule', verdictText(verdict))
  if (granted !== undefined) add('grant', grantText(granted), refusedGrants(granted))
  if (refusal !== undefined) return refuse('claims', refusal)
  if (content === undefined) {
    add('decision', granted?.kind === 'unknown' ? 'refused: 503 TARGET_UNREACHABLE' : 'refused: 403 access_denied')
    return { allowed: false, details }
  }
  const claims = Array.from(content.claims, ([name, value]) => `${name}: ${JSON.stringify(value)}`)
  add('decision', `issued for ${content.ttlSeconds} s with ${endpoint.algorithm}`, claims)
  return { allowed: true, details }
}

function acceptedTokens({ clusters, incomingAudience, subjectIssuers }: TokenEndpoint): string[] {
  return [
    ...(clusters.length === 0 ? [] : [`tokens for ${incomingAudience} of ${clusters.join(', ')}`]),
    ...subjectIssuers.map(({ name, issuer, audience }) => `tokens for ${audience} of ${name} (${issuer})`),
  ]
}

function proofOf({ byIssuer, offline }: Workload): string {
  if (byIssuer === true) return ' by the keys of its issuer'
  return offline ? ' by its signature alone: the API server is away' : ''
}

/**
 * The workload that a token with these attributes would prove. Throws a plain Error if something is missing or
 * unknown.
 */
export function describeWorkload(given: DescribedAttributes, endpoint: TokenEndpoint): Workload {
  const { clusters, subjectIssuers } = endpoint
  const outside = subjectIssuers.filter(({ kubernetes }) => !kubernetes)
  const isOutside = clusters.length === 0 && outside.length > 0
  const places = isOutside ? outside.map(({ name }) => name) : [...clusters, ...subjectIssuers.map(({ name }) => name)]
  const placeName = isOutside ? 'issuer' : 'cluster'
  const one = (name: string): string | undefined => {
    const [value, ...more] = given.get(name) ?? []
    if (more.length > 0) throw new Error(`"${name}" has more than one value`)
    return value
  }
  const required = (name: string): string => {
    const value = one(name)
    if (value === undefined) throw new Error(`"${name}" is required`)
    return value
  }
  if (one(placeName) === undefined && places.length > 1) {
    throw new Error(`"${placeName}" is required: the endpoint has ${places.join(', ')}`)
  }
  const place = one(placeName) ?? places[0] ?? ''
  if (!places.includes(place)) {
    throw new Error(`the endpoint takes no tokens of the ${placeName} "${place}"${suggestion(place, places)}`)
  }
  const proof = { source: place, expires: far, offline: false }
  const issuer = outside.find(({ name }) => name === place)
  if (isOutside && issuer !== undefined) {
    requireKnown(given, ['issuer', 'sub', ...issuer.claims])
    const username = `${place}:${required('sub')}`
    const attributes = issuerAttributes(issuer, Object.fromEntries(given))
    return { ...proof, username, namespace: undefined, account: undefined, podUid: undefined, attributes }
  }
  requireKnown(given, describable)
  const [namespace, account] = [required('namespace'), required('saname')]
  const username = `system:serviceaccount:${namespace}:${account}`
  const attributes = Attributes.from({
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  })
  for (const [name, values] of given) attributes.set(name, values)
  attributes.set('sub', [username])
  attributes.set('username', [username])
  const all = workloadAttributes(place, namespace, account, attributes.claimed())
  return { ...proof, username, namespace, account, podUid: one('pod-uid'), attributes: all }
}

/** What can be described of a service account; the rest is derived. */
const describable = [
  ...['namespace', 'saname', 'cluster', 'uid', 'groups'],
  ...['pod-name', 'pod-uid', 'node-name', 'node-uid', 'credential-id'],
]

function requireKnown(given: DescribedAttributes, known: readonly string[]): void {
  for (const name of given.keys()) {
    if (known.includes(name)) continue
    throw new Error(
      `workloads of this endpoint have no "${name}"${suggestion(name, known)}; they have ${known.join(', ')}`,
    )
  }
}

const kubernetesClass = 'targets.Kubernetes'

/**
 * The same configuration without clusters, and without targets that can't be created here. Calls to such a target
 * fail with TARGET_UNREACHABLE and the reason.
 */
export function withoutClusters(configuration: Configuration): Configuration {
  const targets = Array.from(configuration.targets, ([name, config]): [string, TargetConfig] => {
    const { target } = config
    const create: typeof target.create = async (host) => {
      if (target.className === kubernetesClass) return absentCluster(name)
      try {
        return await target.create(host)
      } catch (cause) {
        return absentCluster(name, cause)
      }
    }
    return [name, { ...config, target: { ...target, create } }]
  })
  return { ...configuration, targets: new Map(targets) }
}

function absentCluster(name: string, cause?: unknown): KubernetesCluster & AccountTokenVerifier {
  const reason = cause instanceof Error ? `: ${cause.message}` : ''
  const away = async (): Promise<never> => {
    throw new GatewayError('TARGET_UNREACHABLE', `this command does not call the target "${name}"${reason}`, { cause })
  }
  return {
    objects: { get: away, list: away, create: away, replace: away, remove: away, patch: away, servedKind: away },
    verifyAccountToken: away,
    reviewToken: away,
    findUser: away,
    createUser: away,
    syncUser: away,
    deleteUser: away,
  }
}
