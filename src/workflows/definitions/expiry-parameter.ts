import { GatewayError } from '#kernel/errors.ts'
import { chooseExpiry, type ExpiryOffer, expiryKey, parseExpiry } from '#sdk/workflow/expiry-offer.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { RequestMap } from '#sdk/workflow/workflow-task.ts'
import type { Definition } from './definitions.ts'

/**
 * The call with the expiry as a time, for every caller, within the limit of the workflow. If the workflow offers no
 * expiry, the parameter is passed unchanged. Throws BAD_REQUEST.
 */
export function withExpiry(call: WorkflowCall, offer: ExpiryOffer | undefined, now: Date): WorkflowCall {
  if (offer === undefined) return call
  const { params } = call
  const given = Object.hasOwn(params, expiryKey) ? params[expiryKey] : undefined
  const chosen = chooseExpiry(given ?? '', offer, now)
  if ('refusal' in chosen) {
    const detail = `workflow "${call.head.workflow}", ${expiryKey} "${(given ?? '').slice(0, 100)}": ${chosen.refusal}`
    throw new GatewayError('BAD_REQUEST', detail, { publicText: `${chosen.refusal}.` })
  }
  if (given === undefined) return call
  return { ...call, params: { ...params, [expiryKey]: chosen.ends?.toISOString() ?? '' } }
}

/** For a workflow called by another one, whose run has the expiry, or should have. Throws BAD_REQUEST. */
export function requireExpiry({ name, accessEnds }: Definition, request: RequestMap): void {
  if (accessEnds?.required !== true || expiryIn(request) !== undefined) return
  const detail = `workflow "${name}" was called without ${expiryKey}, which it requires`
  throw new GatewayError('BAD_REQUEST', detail, { publicText: 'End date is required.' })
}

/** The expiry of a request map, if it is a time. */
export function expiryIn(request: ReadonlyMap<string, unknown>): Date | undefined {
  const given = request.get(expiryKey)
  return typeof given === 'string' ? parseExpiry(given) : undefined
}
