import type { RuleEvaluator } from '#engine/pipeline/rule-evaluator.ts'
import type { TokenIssuing } from '#engine/sts/token-issuing.ts'
import { type Workload, workloadSubject } from '#engine/sts/workload.ts'
import type { Attributes } from '#identity/attributes.ts'
import { asGatewayError } from '#kernel/errors.ts'
import type { StsEndpointConfig } from '#sdk/configuration.ts'
import { workloadAttributes } from '#sdk/service-account.ts'
import type { Explanation } from '#server/explain-request.ts'

/** Whose token is explained: one that is shown, or a workload that is only described. */
export type ExplainedWorkload =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'described'; readonly attributes: Attributes }

/** A described workload has a token that does not run out. */
const far = new Date(8.64e15)

/**
 * What a token endpoint would do for this workload, in words. A shown token is verified and reviewed as the endpoint does
 * it; nothing is signed, audited or counted.
 */
export async function explainToken(
  tokens: Pick<TokenIssuing, 'validate' | 'preview'>,
  evaluator: Pick<RuleEvaluator, 'explain'>,
  { endpoint, rules, at }: StsEndpointConfig,
  explained: ExplainedWorkload,
): Promise<Explanation> {
  const lines = [
    `endpoint     ${endpoint.name} (${at})`,
    `audience     ${endpoint.audience}`,
    `issuer       ${endpoint.issuer}`,
    `accepts      tokens for ${endpoint.incomingAudience} of ${endpoint.clusters.join(', ')}`,
  ]
  const refuse = (step: string, thrown: unknown): Explanation => {
    const error = asGatewayError(thrown)
    lines.push(`${step} ${error.message}`, `decision     refused: ${error.status} ${error.keyword ?? error.code}`)
    return { allowed: false, lines }
  }
  let workload: Workload
  try {
    workload =
      explained.kind === 'described'
        ? described(explained.attributes, endpoint.clusters)
        : await tokens.validate(endpoint.name, explained.token.trim())
  } catch (error) {
    return refuse('token       ', error)
  }
  if (explained.kind === 'token') {
    lines.push(`token        accepted${workload.offline ? ' by its signature alone: the API server is away' : ''}`)
  }
  lines.push(`workload     ${workload.username} of ${workload.cluster}`)
  for (const [name, values] of workload.attributes) lines.push(`             ${name}: ${values.join(', ')}`)
  const verdicts = await evaluator.explain(workloadSubject(workload), rules)
  for (const { rule, passed, reason } of verdicts) {
    lines.push(`rule         ${passed ? 'pass' : 'fail'}  ${rule.scope} ${rule.constraint}: ${reason}`)
  }
  if (!verdicts.some(({ passed }) => passed)) {
    lines.push('decision     refused: 403 access_denied')
    return { allowed: false, lines }
  }
  try {
    const content = await tokens.preview(endpoint.name, workload)
    lines.push(`decision     issued for ${content.ttlSeconds} s with ${endpoint.algorithm}`)
    for (const [name, value] of content.claims) lines.push(`             ${name}: ${JSON.stringify(value)}`)
    return { allowed: true, lines }
  } catch (error) {
    return refuse('claims      ', error)
  }
}

function described(given: Attributes, clusters: readonly string[]): Workload {
  const cluster = given.first('cluster') ?? clusters[0] ?? ''
  const namespace = given.first('namespace') ?? ''
  const account = given.first('saname') ?? ''
  const username = `system:serviceaccount:${namespace}:${account}`
  const attributes = given.clone()
  attributes.set('sub', [username])
  attributes.set('username', [username])
  return {
    cluster,
    namespace,
    account,
    username,
    podUid: given.first('pod-uid'),
    attributes: workloadAttributes(cluster, namespace, account, attributes.claimed()),
    expires: far,
    offline: false,
  }
}
