import type { Run, StoredStep } from '#domain/run.ts'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import type { WorkflowResult } from '#sdk/workflow.ts'

/** 200 where all is done; 202, and where to ask, where something is still to happen. */
export function startAnswer({ id, status, changes }: WorkflowResult, address: string): GatewayResponse {
  if (status === 'completed') return jsonAnswer(200, { workflowId: id, status, changes })
  return jsonAnswer(202, { workflowId: id, status }, { location: `${address}/${id}` })
}

/** What the one who started the run may know. How it failed in detail is for administrators. */
export function statusAnswer(run: Run, steps: readonly StoredStep[]): GatewayResponse {
  const { id, name, state, subject, requestor, reason, created, updated, ended, deadline, incident, cancel } = run
  return jsonAnswer(200, {
    workflowId: id,
    name,
    status: state,
    subject,
    requestor,
    reason,
    created,
    updated,
    ended,
    deadline,
    cancel,
    failure: incident === undefined ? undefined : { task: incident.task, code: incident.code, text: textOf(incident) },
    timeline: steps.map(({ id: at, number, attempt, task, taskType, label, started, ended: end, outcome }) => ({
      id: at,
      number,
      attempt,
      task,
      taskType,
      label,
      started,
      ended: end,
      outcome,
    })),
  })
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
