import type { Definition } from '#engine/workflow/definition.ts'
import { GatewayError } from '#kernel/errors.ts'
import { type AccessEndOffer, accessEndKey, chooseAccessEnd, parseAccessEnd } from '#sdk/workflow/access-end.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { RequestMap } from '#sdk/workflow/workflow-task.ts'

/**
 * The call with the expiry as a time, for every caller, within the limit of the workflow. If the workflow offers no
 * expiry, the parameter is passed unchanged. Throws BAD_REQUEST.
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

/** For a workflow called by another one, whose run has the expiry, or should have. Throws BAD_REQUEST. */
export function requireChosenEnd({ name, accessEnds }: Definition, request: RequestMap): void {
  if (accessEnds?.required !== true || chosenEndIn(request) !== undefined) return
  const detail = `workflow "${name}" was called without ${accessEndKey}, which it requires`
  throw new GatewayError('BAD_REQUEST', detail, { publicText: 'End date is required.' })
}

/** The expiry of a request map, if it is a time. */
export function chosenEndIn(request: ReadonlyMap<string, unknown>): Date | undefined {
  const given = request.get(accessEndKey)
  return typeof given === 'string' ? parseAccessEnd(given) : undefined
}
