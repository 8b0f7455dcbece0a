import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { positionText } from '#engine/workflow/walk.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'

/** The position of the run, for people. */
export function taskOf(state: RunProgress): string {
  const frame = state.frames.at(-1)
  return frame === undefined ? 'end' : positionText({ frame, index: frame.next })
}

/** A target's own error keeps its code; any other becomes WORKFLOW_FAILED with the original as its cause. */
export function failureOf(state: RunProgress, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const text = `workflow "${state.workflow}", task ${taskOf(state)}: ${messageOf(error)}`
  return new GatewayError('WORKFLOW_FAILED', text, { cause: error })
}

export function logFailure(log: Logger, state: RunProgress, failure: GatewayError): void {
  const fields = { workflowId: state.id, workflow: state.workflow, task: taskOf(state), code: failure.code }
  if (failure.isRefusal) log.info('workflow refused', { ...fields, reason: failure.message })
  else log.error('workflow failed', { ...fields, err: failure })
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
