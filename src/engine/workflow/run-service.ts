import { setTimeout as delay } from 'node:timers/promises'
import { RunInterventions } from '#engine/workflow/interventions.ts'
import { isAsynchronous } from '#engine/workflow/run-call.ts'
import type { RunProgress } from '#engine/workflow/run-progress.ts'
import { isWithinCall } from '#engine/workflow/stored-form.ts'
import type { WorkflowServices } from '#engine/workflow/workflow-services.ts'
import { accepted, type Workflows } from '#engine/workflow/workflows.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { RateLimit } from '#kernel/rate-limit.ts'
import type { CallKey, RefusedCall, RunAccess, RunStart } from '#sdk/workflow/runs.ts'
import type { RunStatus, WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import type { NewRun } from '#storage/runs/run-commit.ts'
import type { StartOutcome } from '#storage/runs/run-store.ts'

/** How long a synchronous call with a key may take before the same call may be repeated, since its process died. */
const answerMillis = 2 * 60_000
/** How long a call waits for stored runs of its subject before it is stored behind them, or refused for now. */
const behindMillis = 2_000

/** Audit entries about refused calls, per caller; further refusals are only logged. */
const refusals = { burst: 50, perMinute: 30 }
const longest = 200

/** Runs, for the other parts of the engine. */
export interface Runs extends RunAccess {
  /** Stores or executes the run, as the call says. */
  run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult>
  /**
   * A run for the caller's transaction to store, as `RunEffects.starts`. Its definition has been saved. Throws
   * NOT_SUPPORTED for an unknown workflow.
   */
  prepare(call: WorkflowCall): Promise<NewRun>
}

/** Runs of one configuration. */
export class RunService extends RunInterventions implements Runs {
  readonly #workflows: () => Workflows
  readonly #services: WorkflowServices
  readonly #refusals: RateLimit

  constructor(workflows: () => Workflows, services: WorkflowServices) {
    super(services.runs, services.clock)
    this.#workflows = workflows
    this.#services = services
    this.#refusals = new RateLimit(10_000, services.clock)
  }

  async run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult> {
    const workflows = this.#workflows()
    if (isAsynchronous(call)) return await workflows.run(call)
    const state = workflows.begin(call)
    if (await this.#isBehind(state)) throw stillUnderWay(state)
    started?.(state.id)
    return await workflows.runNow(call, state)
  }

  async prepare(call: WorkflowCall): Promise<NewRun> {
    return await this.#workflows().prepare(call)
  }

  async start(call: WorkflowCall, key?: CallKey): Promise<RunStart> {
    const workflows = this.#workflows()
    const state = workflows.begin(call)
    if (isAsynchronous(call) || (call.kept === true && (await this.#isBehind(state)))) {
      const outcome = await workflows.store(call, state, key)
      if (outcome.kind === 'started') return { kind: 'started', result: accepted(state) }
      return repeated(outcome, await this.#isStored(outcome))
    }
    if (key === undefined) return { kind: 'started', result: await workflows.runNow(call, state) }
    const { idempotency } = this.#services
    const reservation = await idempotency.reserve({ ...key, run: state.id }, answerMillis)
    if (reservation.kind !== 'reserved') return repeated(reservation, await this.#isStored(reservation))
    try {
      return { kind: 'started', result: await workflows.runNow(call, state, key) }
    } catch (error) {
      await idempotency.abandon({ scope: key.scope, key: key.key, run: state.id }).catch((err: unknown) => {
        this.#services.log.warn('the key of a failed call is not free yet', { workflowId: state.id, err })
      })
      throw error
    }
  }

  async refuse({ name, caller, subject, requestId, refused }: RefusedCall): Promise<void> {
    const { audit, clock, log } = this.#services
    const rows = refused
      .filter(() => this.#refusals.take(caller, refusals) === undefined)
      .map(({ kind, attribute, value }) => ({
        id: newId(),
        time: clock(),
        requestor: caller,
        subject,
        workflow: { id: '', name },
        target: 'gatehouse',
        kind,
        action: 'refuse' as const,
        attribute,
        value: value.slice(0, longest).toWellFormed(),
        requestId,
      }))
    if (rows.length === 0) return
    await audit.append(rows).catch((err: unknown) => {
      log.warn('a refused call is in the log only', { caller, subject, workflow: name, requestId, err })
    })
  }

  /**
   * Earlier accepted runs come first, even while they wait for a retry: otherwise they could restore an account
   * that this call deletes.
   */
  async #isBehind({ subject }: RunProgress): Promise<boolean> {
    const end = performance.now() + behindMillis
    for (let pause = 10; await this.#services.runs.hasReady(subject); pause = Math.min(pause * 2, 200)) {
      if (performance.now() > end) return true
      await delay(pause)
    }
    return false
  }

  /** A stored run of this key has no response except that it was accepted; a running call has none at all. */
  async #isStored(outcome: Repeated): Promise<boolean> {
    const run = outcome.kind === 'repeated' ? await this.get(outcome.run) : undefined
    return run !== undefined && !isWithinCall(run.data)
  }
}

/** For callers who can't read the run later, so that it must not be stored. */
const stillUnderWay = ({ subject }: RunProgress): GatewayError =>
  new GatewayError('TARGET_UNREACHABLE', `an earlier run for "${subject}" is still to be carried out`, {
    publicText: 'An earlier change of the same user is still to be carried out. Try again.',
    retryAfter: 5,
  })

type Repeated = Exclude<StartOutcome, { kind: 'started' }>

function repeated(outcome: Repeated, stored: boolean): RunStart {
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
