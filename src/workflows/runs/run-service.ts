import { setTimeout as delay } from 'node:timers/promises'
import { type ErrorCode, errorCodes, GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { Preview } from '#sdk/workflow/preview.ts'
import type {
  CallKey,
  RunStart,
  RunStatus,
  UnfinishedChange,
  WorkflowCall,
  WorkflowResult,
} from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { hasEnded, type Run } from '#workflows/record/run.ts'
import {
  type EarlierChanges,
  NewerChange,
  type RefusedCall,
  type SettledChanges,
  stillUnderWay,
  UnfinishedRun,
} from '#workflows/record/run-requests.ts'
import type { StepFailure } from '#workflows/steps/execute-steps.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import type { WorkflowServices } from '#workflows/steps/workflow-services.ts'
import type { NewRun } from '#workflows/store/run-commit.ts'
import type { StartOutcome } from '#workflows/store/run-store.ts'
import { RunInterventions } from './interventions.ts'
import { previewRun } from './previews.ts'
import { isPassing } from './retry-policy.ts'
import { isWithinCall, RunSealer, restoreStoredRun } from './saved-run.ts'
import { StoredCall } from './stored-call.ts'
import { accepted, isAsynchronous, type Workflows } from './workflows.ts'

/** How long a synchronous call with a key may take before the same call may be repeated, since its process died. */
const answerMillis = 2 * 60_000
/** How long a call waits for stored runs of its subject before it is stored behind them, or refused for now. */
const behindMillis = 2_000
/** How long the client of a change that was finished without it may repeat the change. */
const finishedMillis = 24 * 3600_000
/** How long a change waits for unfinished ones, which are tried again first. */
const settleMillis = 8_000

/** Audit entries about refused calls, per caller; further refusals are only logged. */
const refusals = { burst: 50, perMinute: 30 }
const longest = 200

const valueRefused = { publicText: 'A target refused a value.' }

/** Starts runs of one configuration, and shows all runs of the installation. The caller has checked the user's permission. */
export class RunService extends RunInterventions {
  readonly #workflows: () => Workflows
  readonly #services: WorkflowServices

  constructor(workflows: () => Workflows, services: WorkflowServices) {
    super(services.runs, services.audit, services.clock)
    this.#workflows = workflows
    this.#services = services
  }

  /**
   * Stores or executes the run, as the call says. A synchronous call resolves when the last task ended, and rejects if one
   * failed. Rejects with NOT_SUPPORTED for an unknown workflow. `started` gets the id of a synchronous run before its first
   * task, so that a failed run can be named too.
   */
  async run(call: WorkflowCall, started?: (id: string) => void): Promise<WorkflowResult> {
    const workflows = this.#workflows()
    if (isAsynchronous(call)) return await workflows.run(call)
    const state = workflows.begin(call)
    // Its caller can't read the run later, so it must not be stored.
    if (await this.#isBehind(state)) throw stillUnderWay(state.head.subject)
    started?.(state.head.id)
    try {
      const result = await this.#runNow(workflows, call, state)
      await this.#endReplaced(call)
      return result
    } catch (error) {
      if (error instanceof UnfinishedRun) await this.#endReplaced(call)
      throw stillUnfinished(call, error)
    }
  }

  /**
   * What the run of the call would do. It is not started, and nothing is changed or stored. Throws what a step before the
   * first wait would be refused with, as far as the targets show it.
   */
  async preview(call: WorkflowCall): Promise<Preview> {
    const workflows = this.#workflows()
    const state = workflows.begin(call)
    if (await this.#isBehind(state)) throw stillUnderWay(state.head.subject)
    const failures: StepFailure[] = []
    await previewRun(state, workflows, { onFailure: (failure) => failures.push(failure) })
    const [failure] = failures
    if (failure !== undefined) throw failure.error
    return await previewRun(workflows.begin(call), workflows)
  }

  /** Whether `settle` would try earlier runs again, or wait for them. */
  async hasEarlier({ subjects, resource }: Omit<EarlierChanges, 'requester'>): Promise<boolean> {
    return (await this.#services.runs.unfinished(subjects, resource)).length > 0
  }

  /**
   * Waits for runs that come before another change of the subjects or of the resource. Unfinished changes are tried again
   * at once. Throws TARGET_UNREACHABLE with Retry-After if they are not finished in time.
   */
  async settle({ subjects, resource, requester }: EarlierChanges): Promise<SettledChanges> {
    const { runs } = this.#services
    const end = performance.now() + settleMillis
    const seen = new Map<string, Run>()
    const outdated = new Set<string>()
    for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
      const found = await runs.unfinished(subjects, resource)
      // Each of them is tried again once: by then the target may accept it.
      const isRefused = (run: Run): boolean =>
        run.state === 'incident' &&
        (outdated.has(run.head.id) || (!isPassing(run.incident?.code) && hasFailedAgain(seen.get(run.head.id), run)))
      const open = found.filter((run) => !isRefused(run))
      if (open.length === 0) {
        const isGone = ({ head: { id } }: Run): boolean => !found.some((run) => run.head.id === id)
        const mine = [...seen.values()].filter(
          (run) => run.head.requester === requester && hasFailed(run) && isGone(run),
        )
        return {
          finished: await this.#taken(mine),
          refused: await Promise.all(found.map((run) => this.#refusedChange(run))),
        }
      }
      const isStuck = open.some((run) => hasFailedAgain(seen.get(run.head.id), run))
      if (isStuck || performance.now() > end) throw stillUnderWay(subjects[0] ?? resource)
      for (const run of open.filter(({ head: { id } }) => !seen.has(id))) {
        seen.set(run.head.id, run)
        if (await this.#isOutdated(run, requester)) outdated.add(run.head.id)
      }
      await delay(pause)
    }
  }

  /** A run that renames its user or group can't be replaced: later runs no longer know the former name. */
  async #refusedChange({ head: { id, requester }, fence, resource = '' }: Run): Promise<UnfinishedChange> {
    const { runs, secrets } = this.#services
    const known = { id, fence, resource, requester }
    const stored = await runs.getWhole(id)
    const state = stored && (await restoreStoredRun(stored, new RunSealer(secrets, id)).catch(() => undefined))
    // What can't be read can't be replaced.
    if (state === undefined) return known
    const { user, request } = state
    const newGroup = request.get('newgroupname')
    const isRename = user.newUserID !== undefined || (newGroup !== undefined && newGroup !== request.get('groupname'))
    if (isRename) return known
    const written = [...user.attributes.names(), ...(user.cleared ?? [])]
    return { ...known, written, setsPassword: user.password === undefined ? undefined : true }
  }

  #runNow(workflows: Workflows, call: WorkflowCall, state: RunProgress, key?: CallKey): Promise<WorkflowResult> {
    const { resource, basedOn } = call
    const isBasedOnRead = basedOn !== undefined
    return workflows.runNow(call, state, {
      key,
      stored: (parts) => new StoredCall(state, { ...parts, workflows, resource, isBasedOnRead }).run(),
    })
  }

  /** The resources of those that completed; a cancelled run leaves its change unfinished. */
  async #taken(ended: readonly Run[]): Promise<string[]> {
    const resources = new Set(ended.flatMap(({ resource }) => resource ?? []))
    const taken: string[] = []
    for (const resource of resources) {
      if (await this.takeFinished(resource, ended[0]?.head.requester ?? '')) taken.push(resource)
    }
    return taken
  }

  /** Whether there are changes that `settle` waits for. */
  hasUnfinished(): Promise<boolean> {
    return this.#services.runs.hasUnfinished()
  }

  /** Whether the run has not ended or, without its id, one of the resource. */
  async isOpen({ run, resource }: { readonly run: string | undefined; readonly resource: string }): Promise<boolean> {
    const { runs } = this.#services
    if (run === undefined) return await runs.hasOpen(resource)
    const found = await runs.get(run)
    return found !== undefined && !hasEnded(found.state)
  }

  /**
   * Whether a worker has finished a change of the resource after the requester got an error for it. True once only, and
   * for a day.
   */
  takeFinished(resource: string, requester: string): Promise<boolean> {
    return this.#services.runs.takeFinished(resource, requester, finishedMillis)
  }

  /** As `takeFinished`, without ending that it is true. */
  hasFinished(resource: string, requester: string): Promise<boolean> {
    return this.#services.runs.hasFinished(resource, requester, finishedMillis)
  }

  /** Tries the run again at once, unless a newer change would be undone. */
  async #isOutdated(run: Run, by: string): Promise<boolean> {
    const { id } = run.head
    const { fence, state, resource } = run
    if (resource === undefined) return false
    try {
      if (state === 'ready') await this.#services.runs.hurry({ id, fence })
      if (state === 'incident') await this.tryAgain({ id, fence, by, reason: 'The change was requested again.' })
    } catch (error) {
      if (error instanceof NewerChange) return true
      // It has changed meanwhile.
      if (!(error instanceof GatewayError) || !error.isRefusal) throw error
    }
    return false
  }

  /**
   * The end of the unfinished run of an equal earlier call, which is tried again first, so that repeated calls are one
   * run. Undefined if there is none, or if it would undo a newer change; then this call replaces it.
   */
  async #repeatedCall(
    call: WorkflowCall,
  ): Promise<{ result?: WorkflowResult; replaces?: readonly UnfinishedChange[] }> {
    const { requester } = call.head
    const { resource } = call
    const { runs } = this.#services
    const found = resource === undefined ? [] : await runs.unfinished([], resource)
    const first = found.find(hasFailed)
    if (first === undefined) return {}
    const { id } = first.head
    const { fence } = first
    if (await this.#isOutdated(first, requester)) return { replaces: [{ id, fence, resource: '', requester }] }
    const end = performance.now() + settleMillis
    for (let pause = 10; ; pause = Math.min(pause * 2, 200)) {
      await delay(pause)
      const run = await runs.get(id)
      const isOpen = run !== undefined && !hasEnded(run.state) && run.state !== 'waiting'
      if (!isOpen || hasFailedAgain(first, run) || performance.now() > end)
        return { result: await this.#answerOf(id, run) }
    }
  }

  /** What a stored run answers to its synchronous call. Throws UnfinishedRun while it has not ended, and its failure. */
  async #answerOf(id: string, run: Run | undefined): Promise<WorkflowResult> {
    const { state, incident } = run ?? {}
    const code = Object.keys(errorCodes).find((one): one is ErrorCode => one === incident?.code) ?? 'WORKFLOW_FAILED'
    const cause = incident && new GatewayError(code, incident.message, code === 'BAD_REQUEST' ? valueRefused : {})
    switch (state) {
      case 'completed':
      case 'denied': {
        const { rows } = await this.#services.audit.list({ workflowId: id, limit: 500 })
        return { id, status: 'completed', changes: rows.filter(({ target }) => target !== ownTarget).length }
      }
      case 'waiting':
        return { id, status: 'waiting', changes: 0 }
      case 'ready':
      case 'running':
      case 'incident':
        throw new UnfinishedRun(id, { state: 'equal', isRetried: state !== 'incident', ...(cause && { cause }) })
      case 'failed':
        if (cause !== undefined) throw cause
        break
      default:
    }
    const text = `The run ${id} of this call has ended as ${state ?? 'deleted'}.`
    throw new GatewayError('CONFLICT', text, { publicText: text })
  }

  async #endReplaced({ head: { requester: by }, replaces = [] }: WorkflowCall): Promise<void> {
    for (const run of replaces) {
      await this.end({ ...run, by, reason: 'A later change replaced it.' }).catch((err: unknown) => {
        this.#services.log.warn('a replaced run has not ended', { workflowId: run.id, err })
      })
    }
  }

  /**
   * A run for the caller's transaction to store, as `RunEffects.starts`. Its definition has been saved. Throws
   * NOT_SUPPORTED for an unknown workflow.
   */
  async prepare(call: WorkflowCall): Promise<NewRun> {
    return await this.#workflows().prepare(call)
  }

  /** As `run`, but once only for a key. If it throws, the key is free again. */
  async start(call: WorkflowCall, key?: CallKey): Promise<RunStart> {
    const workflows = this.#workflows()
    const state = workflows.begin(call)
    if (!isAsynchronous(call) && key === undefined) {
      const { result, replaces = [] } = await this.#repeatedCall(call)
      if (result !== undefined) return { kind: 'repeated', result }
      if (replaces.length > 0) return { kind: 'started', result: await this.run({ ...call, replaces }) }
    }
    if (isAsynchronous(call) || (call.kept === true && (await this.#isBehind(state)))) {
      const outcome = await workflows.store(state, key)
      if (outcome.kind === 'started') return { kind: 'started', result: accepted(state.head.id) }
      return await this.#repeated(outcome, !isAsynchronous(call))
    }
    if (key === undefined) return { kind: 'started', result: await this.#runNow(workflows, call, state) }
    const { idempotency } = this.#services
    const reservation = await idempotency.reserve({ ...key, run: state.head.id }, answerMillis)
    if (reservation.kind !== 'reserved') return await this.#repeated(reservation, true)
    try {
      return { kind: 'started', result: await this.#runNow(workflows, call, state, key) }
    } catch (error) {
      // The key stays with the stored run, which answers a repeated call.
      if (error instanceof UnfinishedRun) throw error
      await idempotency.abandon({ scope: key.scope, key: key.key, run: state.head.id }).catch((err: unknown) => {
        this.#services.log.warn('the key of a failed call is not free yet', { workflowId: state.head.id, err })
      })
      throw error
    }
  }

  /** Whether a call had this key before. */
  async wasCalled(key: CallKey): Promise<boolean> {
    return (await this.#services.idempotency.find(key)) !== undefined
  }

  /**
   * Writes the refusal into the audit, at a bounded rate per caller. Never rejects, since the call is refused
   * anyway.
   */
  async refuse({ name, caller, subject, requestId, refused }: RefusedCall): Promise<void> {
    const { audit, rateLimits, clock, log } = this.#services
    const rows = refused.slice(0, refusals.burst).map(({ kind, attribute, value }) => ({
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
    try {
      const wait = await rateLimits.take('refused calls of one caller', caller, refusals, rows.length)
      if (wait === undefined) await audit.append(rows)
    } catch (err) {
      log.warn('a refused call is in the log only', { caller, subject, workflow: name, requestId, err })
    }
  }

  /**
   * Earlier accepted runs come first, even while they wait for a retry: otherwise they could restore an account
   * that this call deletes.
   */
  async #isBehind({ head: { subject } }: RunProgress): Promise<boolean> {
    const end = performance.now() + behindMillis
    for (let pause = 10; await this.#services.runs.hasReady(subject); pause = Math.min(pause * 2, 200)) {
      if (performance.now() > end) return true
      await delay(pause)
    }
    return false
  }

  /** A stored run of this key has no response except that it was accepted; a running call has none at all. */
  async #repeated(outcome: Repeated, isSynchronous: boolean): Promise<RunStart> {
    if (outcome.kind === 'other-body') return outcome
    const { run: id, response } = outcome
    if (response !== undefined) return { kind: 'repeated', result: resultOf(id, response) }
    const run = await this.#services.runs.get(id)
    if (run === undefined || isWithinCall(run.data)) return { kind: 'under-way', run: id }
    // A run without a resource was stored behind another one, and its call was answered so. Any other can still fail,
    // so that a caller who waits for its end gets no promise before.
    const hasAnswer = (run.state === 'incident' && run.touched) || run.resource !== undefined
    const result = isSynchronous && hasAnswer ? await this.#answerOf(id, run) : accepted(id)
    return { kind: 'repeated', result }
  }
}

/**
 * The answer of one of several systems must not look like the end of a change that another of them has made before. The
 * caller can act on the others itself: correct a value, read again, or wait.
 */
function stillUnfinished({ replaces = [] }: WorkflowCall, error: unknown): unknown {
  const [earlier] = replaces
  if (earlier === undefined || error instanceof UnfinishedRun || !(error instanceof GatewayError)) return error
  if (error.code === 'BAD_REQUEST' || isPassing(error.code)) return error
  return new UnfinishedRun(earlier.id, { state: 'earlier', isRetried: false, cause: error })
}

/** Whether the run is more than a call that is still being executed for the first time. */
const hasFailed = ({ state, fence }: Run): boolean => state !== 'running' || fence > 1

/** Whether a run that was tried again has been claimed since and failed. Each claim and each retry of an incident has a new fence. */
function hasFailedAgain(before: Run | undefined, { state, fence }: Run): boolean {
  if (before === undefined || state === 'running') return false
  return fence > before.fence + (before.state === 'incident' ? 1 : 0)
}

type Repeated = Exclude<StartOutcome, { kind: 'started' }>

const statuses: readonly RunStatus[] = ['completed', 'waiting', 'accepted']

function resultOf(id: string, response: JsonObject): WorkflowResult {
  const { status, changes } = isJsonObject(response) ? response : {}
  return {
    id,
    status: statuses.find((known) => known === status) ?? 'accepted',
    changes: typeof changes === 'number' ? changes : 0,
  }
}
