import { runStatus } from '#contract/schemas/call-workflow.ts'
import { wireForm } from '#contract/wire.ts'
import type { Run, StoredStep } from '#domain/run.ts'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { WorkflowResult } from '#sdk/workflow.ts'

/** 200 where all is done; 202, and where to ask, where something is still to happen. */
export function startAnswer({ id, status, changes }: WorkflowResult, address: string): GatewayResponse {
  if (status === 'completed') return jsonAnswer(200, { workflowId: id, status, changes })
  return jsonAnswer(202, { workflowId: id, status }, { location: `${address}/${id}` })
}

/** What the caller who started the run may know. Details of a failure are for administrators. */
export function statusAnswer(run: Run, steps: readonly StoredStep[]): GatewayResponse {
  const { id, state, incident } = run
  const failure = incident && { task: incident.task, code: incident.code, text: textOf(incident) }
  const timeline = steps.map((step) => wireForm(runStatus.shape.timeline.element, step))
  const status = { ...run, workflowId: id, status: state, timeline, ...(failure === undefined ? {} : { failure }) }
  return jsonAnswer(200, wireForm(runStatus, status))
}

const textOf = ({ code }: { readonly code: string }): string =>
  (Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : errorCodes.WORKFLOW_FAILED).text

export const jsonAnswer = (
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): GatewayResponse => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  body: JSON.stringify(body),
})
