import type { Incident } from '#domain/run.ts'
import { type Intent, intentsFromJson, intentsToJson } from '#engine/workflow/intents.ts'
import { taskOf } from '#engine/workflow/run-failure.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/**
 * What is stored of a run while it is executed within its call: what it is about to change, and nothing that it works
 * on, since nobody goes on with it when the call is lost.
 */
export const lostCallForm = (state: RunProgress, intents: readonly Intent[], incident?: Incident): JsonObject => ({
  withinCall: true,
  task: taskOf(state),
  frames: [],
  steps: state.steps,
  intents: intentsToJson(intents),
  ...(incident === undefined ? {} : { incident: { ...incident } }),
})

/** What is kept of a run that ended within its call: its answer is the caller's, who may ask for it by the key. */
export const endedCallForm: JsonObject = { withinCall: true }

/** It is, or was, executed within its call. */
export const isWithinCall = (data: JsonObject): boolean => data['withinCall'] === true

const processDied = { code: 'CALL_LOST', message: 'the process died while it executed the run within its call' }

export interface LostCall {
  readonly task: string
  readonly intents: Intent[]
  /** Why the call ended. */
  readonly incident: Incident
}

/** Throws WORKFLOW_FAILED for anything that `lostCallForm` did not write. */
export function readLostCall({ task, intents, incident }: JsonObject): LostCall {
  const at = typeof task === 'string' ? task : 'unknown'
  const { code, message } = isJsonObject(incident) ? incident : {}
  const told = typeof code === 'string' && typeof message === 'string'
  return {
    task: at,
    incident: { task: at, ...(told ? { code, message } : processDied) },
    intents: intentsFromJson(Array.isArray(intents) ? (intents as readonly JsonValue[]) : []),
  }
}

/** What remains to be found out. */
export const remainingForm = (data: JsonObject, intents: readonly Intent[]): JsonObject => ({
  ...data,
  intents: intentsToJson(intents),
})
