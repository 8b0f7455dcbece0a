import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import type { Incident, StoredRun } from '#workflows/record/run.ts'
import { type PlannedChange, plannedToJson, savedChanges } from '#workflows/steps/planned-changes.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { taskOf } from '#workflows/steps/walk.ts'
import type { NewRun, StoredState } from '#workflows/store/run-commit.ts'
import { checkSize, readSaved, restoreRun, type SavedRun, saveRun } from './saved-run.ts'

/** Encrypts a secret again only if it has changed. */
export class RunSealer {
  readonly #box: SecretBox
  readonly #run: string
  #last: { readonly text: string; readonly sealed: string } | undefined

  constructor(box: SecretBox, run: string) {
    this.#box = box
    this.#run = run
  }

  /** Throws WORKFLOW_FAILED if the run is too large to be stored. */
  async form(saved: SavedRun): Promise<StoredState> {
    checkSize(saved)
    const { data, secret } = saved
    if (secret === undefined) return { data }
    const text = JSON.stringify(secret)
    if (this.#last?.text !== text) this.#last = { text, sealed: await this.#box.seal(secret, this.#run) }
    return { data, secret: this.#last.sealed }
  }

  async open(sealed: string | undefined): Promise<JsonObject | undefined> {
    if (sealed === undefined) return undefined
    const secret = await this.#box.open(sealed, this.#run)
    this.#last = { text: JSON.stringify(secret), sealed }
    return secret
  }
}

/** The run in its current state. Throws WORKFLOW_FAILED if it can't be stored. */
export async function newRunOf(state: RunProgress, box: SecretBox): Promise<NewRun> {
  const { head } = state
  return { head, ...(await new RunSealer(box, head.id).form(saveRun(state))) }
}

/** A stored run, without the result of its wait. Throws WORKFLOW_FAILED for one that cannot be read. */
export async function restoreStoredRun({ head, data, secret }: StoredRun, sealer: RunSealer): Promise<RunProgress> {
  return restoreRun(head, { data, secret: await sealer.open(secret) })
}

/**
 * The stored form of a run while it is executed within its call: only its planned changes, since no worker
 * continues it if the call is lost.
 */
export const lostCallForm = (
  state: RunProgress,
  plannedChanges: readonly PlannedChange[],
  incident?: Incident,
): JsonObject => ({
  withinCall: true,
  task: taskOf(state),
  frames: [],
  steps: state.steps,
  plannedChanges: plannedToJson(plannedChanges),
  ...(incident === undefined ? {} : { incident: { ...incident } }),
})

/** The stored form of a run that ended within its call; the caller may read its response by the key. */
export const endedCallForm: JsonObject = { withinCall: true }

/** It is, or was, executed within its call. */
export const isWithinCall = (data: JsonObject): boolean => data['withinCall'] === true

/** Its call was lost, and it can't be continued, since only its planned changes are stored. */
export const isLostCall = (data: JsonObject): boolean => isWithinCall(data) && data['user'] === undefined

const processDied = { code: 'CALL_LOST', message: 'the process died while it executed the run within its call' }

interface LostCall {
  readonly task: string
  readonly plannedChanges: PlannedChange[]
  /** Why the call ended. */
  readonly incident: Incident
}

/** Throws WORKFLOW_FAILED for anything that `lostCallForm` did not write. */
export function readLostCall({ task, plannedChanges, incident }: JsonObject): LostCall {
  const at = typeof task === 'string' ? task : 'unknown'
  const { code, message } = isJsonObject(incident) ? incident : {}
  const isKnown = typeof code === 'string' && typeof message === 'string'
  return {
    task: at,
    incident: { task: at, ...(isKnown ? { code, message } : processDied) },
    plannedChanges: readSaved(savedChanges, plannedChanges ?? [], 'planned changes'),
  }
}

/** What still has to be found out. */
export const remainingForm = (data: JsonObject, plannedChanges: readonly PlannedChange[]): JsonObject => ({
  ...data,
  plannedChanges: plannedToJson(plannedChanges),
})
