import type { Definition } from '#engine/workflow/definition.ts'
import type { Pins } from '#engine/workflow/definitions.ts'
import { createRequestMap } from '#engine/workflow/request-map.ts'
import type { RunState } from '#engine/workflow/run-state.ts'
import { rootFrame } from '#engine/workflow/walk.ts'
import { Attributes } from '#identity/attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { WorkflowCall } from '#sdk/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow-task.ts'

/** The run that a call asks for, before its first step. The caller's user stays untouched. Throws BAD_REQUEST. */
export function runOf(call: WorkflowCall, definition: Definition, pins: Pins): RunState {
  if (call.user.userID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for a user without a login')
  if (call.newUserID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for an empty new login')
  const id = newId()
  const request = createRequestMap(call.params)
  request.set('WORKFLOW_ID', id)
  const { caller, reason, requestId } = call
  return {
    id,
    workflow: call.name,
    subject: call.subject ?? call.user.userID,
    requestor: call.requestor,
    ...(caller === undefined ? {} : { caller }),
    ...(reason === undefined ? {} : { reason }),
    ...(requestId === undefined ? {} : { requestId }),
    user: workflowUser(call),
    request,
    frames: [rootFrame(definition)],
    pins,
    steps: 0,
  }
}

function workflowUser(call: WorkflowCall): WorkflowUser {
  const { user, reason, password, newUserID, basedOn } = call
  return {
    userID: user.userID,
    attributes: Attributes.from(user.attributes),
    groups: [...user.groups],
    keepGroups: call.keepGroups ?? false,
    ...(user.id === undefined ? {} : { id: user.id }),
    ...(call.cleared === undefined ? {} : { cleared: call.cleared }),
    ...(newUserID === undefined ? {} : { newUserID }),
    ...(basedOn === undefined ? {} : { basedOn: new Map([[basedOn.target, basedOn]]) }),
    ...(reason === undefined ? {} : { requestReason: reason }),
    ...(password === undefined ? {} : { password }),
  }
}
