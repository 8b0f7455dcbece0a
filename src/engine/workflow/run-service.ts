import { RunInterventions } from '#engine/workflow/interventions.ts'
import { isAsynchronous } from '#engine/workflow/request-map.ts'
import type { Runs } from '#engine/workflow/runs.ts'
import { isWithinCall } from '#engine/workflow/within-call-form.ts'
import type { WorkflowServices } from '#engine/workflow/workflow-services.ts'
import { accepted, type Workflows } from '#engine/workflow/workflows.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { CallKey, RunStart } from '#sdk/runs.ts'
import type { RunStatus, WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'
import type { NewRun, StartOutcome } from '#storage/run-store.ts'

/** How long a synchronous call with a key may take before the same call may be made again, since its process died. */
const answerMillis = 2 * 60_000

/** Runs as one configuration sees them. */
export class RunService extends RunInterventions implements Runs {
  readonly #workflows: () => Workflows
  readonly #services: WorkflowServices

  constructor(workflows: () => Workflows, services: WorkflowServices) {
    super(services.runs, services.clock)
    this.#workflows = workflows
    this.#services = services
  }

  run(call: WorkflowCall): Promise<WorkflowResult> {
    return this.#workflows().run(call)
  }

  async prepare(call: WorkflowCall): Promise<NewRun> {
    return await this.#workflows().prepare(call)
  }

  async start(call: WorkflowCall, key?: CallKey): Promise<RunStart> {
    const workflows = this.#workflows()
    if (key === undefined) return { kind: 'started', result: await workflows.run(call) }
    const state = workflows.begin(call)
    if (isAsynchronous(call)) {
      const outcome = await workflows.store(call, state, key)
      return outcome.kind === 'started' ? { kind: 'started', result: accepted(state) } : repeated(outcome)
    }
    const { idempotency } = this.#services
    const reservation = await idempotency.reserve({ ...key, run: state.id }, answerMillis)
    if (reservation.kind !== 'reserved') {
      // A stored run that began by this key has no answer but that it was accepted; a call under way has none at all.
      const run = reservation.kind === 'repeated' ? await this.get(reservation.run) : undefined
      return repeated(reservation, run !== undefined && !isWithinCall(run.data))
    }
    try {
      return { kind: 'started', result: await workflows.runNow(call, state, key) }
    } catch (error) {
      await idempotency.abandon({ scope: key.scope, key: key.key, run: state.id }).catch((err: unknown) => {
        this.#services.log.warn('the key of a failed call is not free yet', { workflowId: state.id, err })
      })
      throw error
    }
  }
}

function repeated(outcome: Exclude<StartOutcome, { kind: 'started' }>, stored = true): RunStart {
  if (outcome.kind === 'other-body') return outcome
  const { run, response } = outcome
  if (response !== undefined) return { kind: 'repeated', result: resultOf(run, response) }
  return stored ? { kind: 'repeated', result: { id: run, status: 'accepted', changes: 0 } } : { kind: 'under-way', run }
}

const statuses: readonly RunStatus[] = ['completed', 'waiting', 'accepted']

function resultOf(id: string, response: JsonObject): WorkflowResult {
  const { status, changes } = isJsonObject(response) ? response : {}
  return {
    id,
    status: statuses.find((known) => known === status) ?? 'accepted',
    changes: typeof changes === 'number' ? changes : 0,
  }
}
