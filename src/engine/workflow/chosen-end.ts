import { GatewayError } from '#kernel/errors.ts'
import { type AccessEndOffer, accessEndKey, chooseAccessEnd, parseAccessEnd } from '#sdk/access-end.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'

/**
 * The call with the end of access as a time, whoever calls: what the workflow offers is the limit. Where it offers no
 * end, the parameter is one like any other. Throws BAD_REQUEST.
 */
export function withChosenEnd(call: WorkflowCall, offer: AccessEndOffer | undefined, now: Date): WorkflowCall {
  if (offer === undefined) return call
  const { params } = call
  const given = Object.hasOwn(params, accessEndKey) ? params[accessEndKey] : undefined
  const chosen = chooseAccessEnd(given ?? '', offer, now)
  if ('refusal' in chosen) {
    const detail = `workflow "${call.name}", ${accessEndKey} "${(given ?? '').slice(0, 100)}": ${chosen.refusal}`
    throw new GatewayError('BAD_REQUEST', detail, { publicText: `${chosen.refusal}.` })
  }
  if (given === undefined) return call
  return { ...call, params: { ...params, [accessEndKey]: chosen.ends?.toISOString() ?? '' } }
}

/** The end of access that a request map has, where that is a time. */
export function chosenEndIn(request: ReadonlyMap<string, unknown>): Date | undefined {
  const given = request.get(accessEndKey)
  return typeof given === 'string' ? parseAccessEnd(given) : undefined
}
