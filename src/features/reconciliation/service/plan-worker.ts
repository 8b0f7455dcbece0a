import { setTimeout as delay } from 'node:timers/promises'
import {
  type ReconciliationAction,
  type RowState,
  reconciliationActions,
} from '#features/reconciliation/contract/plan-words.ts'
import type { AccountName, ComparisonPart } from '#features/reconciliation/plan/difference.ts'
import type { ActionCounts } from '#features/reconciliation/plan/limits.ts'
import {
  type ClaimedPlan,
  differencesIn,
  type PlanClaim,
  type PlanCounts,
  type PlanRow,
} from '#features/reconciliation/store/plan-record.ts'
import type { ChangedRow, ReconciliationStore } from '#features/reconciliation/store/reconciliation-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { Logger } from '#kernel/logger.ts'
import { shownReason } from '#kernel/secret-values.ts'
import type { WorkflowCall } from '#sdk/workflow/workflow.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { isPassing } from '#workflows/runs/retry-policy.ts'
import type { NewRun } from '#workflows/store/run-commit.ts'
import { reconciliationEntry } from './plans.ts'
import { callOf, changeSince, type PresentDifference } from './row-change.ts'

/** One reconciliation of the running configuration. */
export interface ReconciledSystems {
  /** See `ReconciliationConfig`. */
  readonly definition: string
  /** The name of the target. */
  readonly target: string
  /** The reconciliations of that target, this one included. */
  readonly ofTarget: readonly string[]
  /** See `RowChange`. */
  readonly copiesLogin: boolean
  /** A schedule applies its plans without a person. */
  readonly isAutomatic: boolean
  /** See `compare` of the readers. */
  compare(resumeAt: string | undefined, signal: AbortSignal): AsyncIterable<ComparisonPart>
  /** See `comparePeople`. */
  comparePeople(
    logins: readonly string[],
    resumeAt: string | undefined,
    signal: AbortSignal,
  ): AsyncIterable<ComparisonPart>
  compareOne(
    who: { readonly source?: AccountName | undefined; readonly target?: AccountName | undefined },
    signal: AbortSignal,
  ): Promise<PresentDifference | undefined>
  /** Whether both systems answer for some other account now. */
  answer(signal: AbortSignal): Promise<boolean>
  /** Why the plan must not be applied, as a sentence; undefined if it is within the limits. */
  exceededLimit(counts: PlanCounts): string | undefined
  workflowOf(action: ReconciliationAction): string | undefined
}

/** The reconciliations of one configuration. */
export interface ReconciliationRuntime {
  /** Undefined if there is none of this name. */
  find(name: string): ReconciledSystems | undefined
  /** See `RunService.prepare`. */
  prepare(call: WorkflowCall): Promise<NewRun>
}

interface WorkerParts {
  readonly store: ReconciliationStore
  readonly clock: Clock
  readonly log: Logger
  readonly leaseMillis: number
}

/** When to leave a plan to another worker, or to a newer configuration. */
interface Turn {
  readonly signal: AbortSignal
  /** Asked between parts. */
  isOver(): boolean
}

interface ApplyParts {
  readonly systems: ReconciledSystems
  readonly runtime: ReconciliationRuntime
}

/** More differences than anyone reviews. */
const maxRows = 1_000_000
const rowsAtOnce = 50
const rowsInParallel = 8
/** Runs of a plan that are being executed; those of others must not wait for all of its rows. */
const mostStarted = 100
/** Runs of a plan that wait for approvers or operators. */
const mostWaiting = 1_000
const settledAtOnce = 100
const pollMillis = 250
/** How often runs that wait for a person are looked at. */
const waitingMillis = 10_000
/** After so many rows that failed one after the other, the next will fail too. */
const failuresInARow = 20

/** The limits hold for what plans change within this time together. */
const windowMillis = 60 * 60_000

const firstRetryMillis = 5_000
const longestRetryMillis = 5 * 60_000
/** For systems that do not answer: about a week. */
const mostAttempts = 2_000
/** About half an hour. A comparison of everyone follows, which waits longer, and asks for no one alone. */
const peopleAttempts = 10
/** For other failures that may pass. */
const fewAttempts = 5
/** What a row waits for after its first failure that may pass, while others do not fail; later it waits longer. */
const rowRetryMillis = 20_000
const away: ReadonlySet<ErrorCode> = new Set(['TARGET_UNREACHABLE', 'TARGET_TIMEOUT', 'TOO_MANY_REQUESTS'])

/** Never about one account. */
const isOfAll: ReadonlySet<ErrorCode> = new Set(['TOO_MANY_REQUESTS', 'SHUTTING_DOWN'])

/** The claim is void: a person has changed the plan, or another worker has it. */
class ClaimLost extends Error {}

/** Compares and applies plans that were claimed. */
export class PlanWorker {
  readonly #parts: WorkerParts

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  /** Works on the plan until it ends, waits or the turn is over. Rejects only if the database fails; the lease then expires. */
  async work(plan: ClaimedPlan, runtime: ReconciliationRuntime, turn: Turn): Promise<void> {
    const { store, log } = this.#parts
    const lost = new AbortController()
    const signal = AbortSignal.any([turn.signal, lost.signal])
    const renewal = this.#keepLease(plan, () => lost.abort(new ClaimLost()))
    const own = { signal, isOver: () => signal.aborted || turn.isOver() }
    try {
      const systems = runtime.find(plan.reconciliation)
      if (systems === undefined) await this.#withoutConfiguration(plan)
      else if (isUnderWay(plan) && (plan.definition ?? systems.definition) !== systems.definition) {
        await this.#fail(plan, 'The reconciliation, or a target or workflow of it, was changed. Make a new plan.')
      } else if (plan.state === 'comparing') await this.#compare(plan, systems, own)
      else await this.#apply(plan, { systems, runtime }, own)
    } catch (error) {
      if (error instanceof ClaimLost || lost.signal.aborted) return
      if (turn.signal.aborted) return await store.release(plan, 0)
      log.warn('a reconciliation was interrupted', { plan: plan.id, reconciliation: plan.reconciliation, err: error })
      await this.#interrupt(plan, error)
    } finally {
      clearInterval(renewal)
    }
  }

  #keepLease(plan: PlanClaim, lost: () => void): NodeJS.Timeout {
    const { store, log, leaseMillis } = this.#parts
    const renew = (): void => {
      store.renew(plan, leaseMillis).then(
        (isKept) => (isKept ? undefined : lost()),
        (err: unknown) => log.warn('the lease of a plan was not renewed', { plan: plan.id, err }),
      )
    }
    const timer = setInterval(renew, leaseMillis / 3)
    timer.unref()
    return timer
  }

  /** A plan that has begun, or that knows who has changed, waits for its reconciliation, which may be set aside. */
  async #withoutConfiguration(plan: ClaimedPlan): Promise<void> {
    const problem = `There is no reconciliation "${plan.reconciliation}" in the configuration that is served. Correct the name, or see with "gatehouse check" why it is set aside.`
    const hasBegun = plan.resumeAt !== undefined || plan.approval !== undefined
    if (hasBegun || plan.people !== undefined) await this.#retry(plan, problem, mostAttempts)
    else await this.#fail(plan, problem)
  }

  async #interrupt(plan: ClaimedPlan, error: unknown): Promise<void> {
    const { code } = asGatewayError(error)
    const problem = shownReason(error)
    if (!isPassing(code)) return await this.#fail(plan, problem)
    const most = plan.people !== undefined && plan.state === 'comparing' ? peopleAttempts : mostAttempts
    await this.#retry(plan, problem, away.has(code) ? most : fewAttempts)
  }

  async #retry(plan: ClaimedPlan, problem: string, most: number): Promise<void> {
    const wait = Math.min(longestRetryMillis, firstRetryMillis * 2 ** Math.min(plan.attempt, 30))
    if (plan.attempt >= most) await this.#fail(plan, `${problem} It was tried ${plan.attempt} times.`)
    else await this.#parts.store.pauseFor(plan, problem, wait)
  }

  async #fail(plan: ClaimedPlan, problem: string): Promise<void> {
    const { store, log } = this.#parts
    if (isUnderWay(plan)) {
      await store.fail(plan, problem, [this.#entry(plan, `fail ${plan.id}`, problem)])
      return
    }
    log.warn('what became of runs of a plan is no longer followed', { plan: plan.id, reason: problem })
    await store.endApplying(plan, undefined, [])
  }

  async #compare(plan: ClaimedPlan, systems: ReconciledSystems, turn: Turn): Promise<void> {
    const { store, leaseMillis } = this.#parts
    let { counts } = plan
    const { people, resumeAt: start } = plan
    const { definition } = systems
    const parts =
      people === undefined ? systems.compare(start, turn.signal) : systems.comparePeople(people, start, turn.signal)
    for await (const part of parts) {
      counts = withPart(counts, part)
      if (differencesIn(counts) > maxRows) {
        const text = `More than ${maxRows} accounts differ. Narrow the source or the scope.`
        throw new GatewayError('UNPROCESSABLE', text, { publicText: text })
      }
      const { differences, resumeAt } = part
      if (!(await store.addPart(plan, { differences, counts, resumeAt, definition, leaseMillis })))
        throw new ClaimLost()
      if (turn.isOver()) return await store.release(plan, 0)
    }
    turn.signal.throwIfAborted()
    const ended = { ...plan, counts }
    if (people === undefined) await this.#endComparison(ended, systems)
    else await this.#endChanges(ended, systems)
  }

  async #endComparison(plan: ClaimedPlan, systems: ReconciledSystems): Promise<void> {
    const { store, log } = this.#parts
    const { id, reconciliation, counts } = plan
    const { source, target, agree, differences, actions } = counts
    const report = { plan: id, reconciliation, source, target, agree, ...differences }
    const problem = await this.#exceededLimit(plan, systems)
    const isApplied = problem === undefined && systems.isAutomatic && plan.isAutomatic && changesAny(actions)
    const state = problem === undefined ? (isApplied ? 'applying' : 'planned') : 'stopped'
    const audit =
      problem !== undefined
        ? [this.#entry(plan, `stop ${id}`, problem)]
        : isApplied
          ? [this.#entry(plan, `approve ${id}`, 'its schedule applies plans within the limits')]
          : []
    const approval = isApplied ? { by: 'its schedule' } : undefined
    if (!(await store.endComparison(plan, { state, problem, approval, report, audit }))) throw new ClaimLost()
    log.info('systems compared', { plan: id, reconciliation, state, source, target, agree, ...differences, problem })
  }

  /** Without a change to make, the plan is forgotten: the next comparison of everyone reports what is only reported. */
  async #endChanges(plan: ClaimedPlan, systems: ReconciledSystems): Promise<void> {
    const { store, log } = this.#parts
    const { id, reconciliation, counts } = plan
    if (!changesAny(counts.actions)) {
      if (!(await store.discard(plan))) throw new ClaimLost()
      return
    }
    const problem = await this.#exceededLimit(plan, systems)
    const isApplied = problem === undefined && systems.isAutomatic && plan.isAutomatic
    const state = isApplied ? 'applying' : problem === undefined ? 'planned' : 'stopped'
    const audit =
      problem !== undefined
        ? [this.#entry(plan, `stop ${id}`, problem)]
        : isApplied
          ? [this.#entry(plan, `approve ${id}`, 'changes are applied as they come, within the limits')]
          : []
    const approval = isApplied ? { by: 'its changes' } : undefined
    if (!(await store.endComparison(plan, { state, problem, approval, audit }))) throw new ClaimLost()
    log.info('changed people compared', { plan: id, reconciliation, state, ...counts.differences, problem })
  }

  /** What no person approves counts together with all that was approved within the hour. */
  async #exceededLimit(plan: ClaimedPlan, systems: ReconciledSystems): Promise<string | undefined> {
    const { id, reconciliation, counts, people, isAutomatic } = plan
    if (people === undefined && !(isAutomatic && systems.isAutomatic)) return systems.exceededLimit(counts)
    const { target, removals } = await this.#parts.store.window(reconciliation, id, windowMillis)
    const problem = systems.exceededLimit({
      ...counts,
      target: people === undefined ? counts.target : target,
      actions: addActions(counts.actions, removals),
      removes: counts.removes + (removals.change ?? 0),
    })
    const isAlone = Object.keys(removals).length === 0
    return problem === undefined || isAlone ? problem : `With the other plans of the last hour: ${problem}`
  }

  /** Starts runs for open rows of a plan that is being applied, and settles the rows of every plan with runs. */
  async #apply(plan: ClaimedPlan, parts: ApplyParts, turn: Turn): Promise<void> {
    const { store } = this.#parts
    const counted = { ...(await store.progress(plan.id)) }
    let failures = 0
    const note = (row: PlanRow, state: RowState): void => {
      if (state === row.state) return
      counted[row.state]--
      counted[state]++
      failures = state === 'failed' ? failures + 1 : 0
      if (failures < failuresInARow || !isUnderWay(plan)) return
      const text = `${failures} rows failed one after the other. The rows have the reasons.`
      throw new GatewayError('WORKFLOW_FAILED', text, { publicText: text })
    }
    for (;;) {
      const changed = await store.changedRows(plan.id, settledAtOnce)
      await inParallel(changed, rowsInParallel, async (row) => note(row, await this.#settle(plan, row, parts, turn)))
      const room = Math.min(rowsAtOnce, mostStarted - counted.started, mostWaiting - counted.waiting)
      const rows = plan.state === 'applying' && room > 0 ? await store.openRows(plan.id, room) : []
      await inParallel(rows, rowsInParallel, async (row) => note(row, await this.#start(plan, row, parts, turn)))
      if (turn.isOver()) {
        turn.signal.throwIfAborted()
        return await store.release(plan, 0)
      }
      if (changed.length > 0 || rows.length > 0) continue
      if (counted.started <= 0 || plan.state !== 'applying') break
      await delay(pollMillis, undefined, { signal: turn.signal })
    }
    if (plan.state === 'applying' && counted.open > 0) return await store.release(plan, waitingMillis)
    await this.#endApplying(plan)
  }

  async #endApplying(plan: ClaimedPlan): Promise<void> {
    const { store, log } = this.#parts
    const { done, skipped, failed, waiting, started } = await store.progress(plan.id)
    const outcome = `${done} done, ${skipped} skipped, ${failed} failed, ${waiting} waiting`
    const audit = plan.state === 'applying' ? [this.#entry(plan, `apply ${plan.id}`, outcome)] : []
    const wait = waiting + started > 0 ? waitingMillis : undefined
    if (!(await store.endApplying(plan, wait, audit))) throw new ClaimLost()
    if (plan.state === 'applying') log.info('plan applied', { plan: plan.id, done, skipped, failed, waiting })
  }

  /** Reads the account again and starts the run that changes it, unless something else than planned is there. */
  async #start(plan: ClaimedPlan, row: PlanRow, { systems, runtime }: ApplyParts, { signal }: Turn): Promise<RowState> {
    const { store } = this.#parts
    const { number, difference } = row
    const { action } = difference
    return await this.#orFailed(plan, row, { systems, signal }, async () => {
      const workflow = systems.workflowOf(action)
      if (workflow === undefined) {
        return await this.#set(plan, number, 'failed', `The reconciliation names no workflow for ${action}.`)
      }
      const present = await systems.compareOne(difference, signal)
      const changed = changeSince(difference, present?.difference)
      if (present === undefined || changed !== undefined) return await this.#set(plan, number, 'skipped', changed)
      // Before a run is prepared; another plan may still start one until the row is.
      const pending = await store.pendingRun(plan, systems.ofTarget, difference)
      if (pending !== undefined) return await this.#skipPending(plan, number, pending)
      const { target, copiesLogin } = systems
      const run = await runtime.prepare(callOf({ ...present, plan, workflow, target, copiesLogin }))
      const start = await store.startRow(plan, row, run, systems)
      if (start.kind === 'void') throw new ClaimLost()
      return start.kind === 'pending' ? await this.#skipPending(plan, number, start.run) : start.kind
    })
  }

  #skipPending(plan: PlanClaim, number: number, run: string): Promise<RowState> {
    return this.#set(plan, number, 'skipped', `The run ${run} of an earlier plan has not ended.`)
  }

  /**
   * A failure that may pass interrupts the plan, unless the systems answer for others: then the row is tried again a few
   * times. Any other failure concerns the row.
   */
  async #orFailed(
    plan: PlanClaim,
    { number, state }: PlanRow,
    { systems, signal }: { readonly systems: ReconciledSystems; readonly signal: AbortSignal },
    work: () => Promise<RowState>,
  ): Promise<RowState> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ClaimLost || signal.aborted) throw error
      const { code } = asGatewayError(error)
      const reason = shownReason(error)
      if (!isPassing(code)) return await this.#set(plan, number, 'failed', reason)
      if (isOfAll.has(code) || !(await systems.answer(signal))) throw error
      const attempts = await this.#parts.store.deferRow(plan, { number, reason }, rowRetryMillis)
      if (attempts === undefined) throw new ClaimLost()
      if (attempts < fewAttempts) return state
      return await this.#set(plan, number, 'failed', `${reason} It was tried ${attempts} times.`)
    }
  }

  /** What a run has come to. A completed one counts only if the account agrees now. */
  async #settle(plan: ClaimedPlan, row: ChangedRow, { systems }: ApplyParts, { signal }: Turn): Promise<RowState> {
    const { number, difference, runState, incident, run } = row
    switch (runState) {
      case undefined:
        return await this.#set(plan, number, 'failed', `The run ${run} is no longer stored.`)
      case 'ready':
      case 'running':
        return await this.#set(plan, number, 'started')
      case 'waiting':
        return await this.#set(plan, number, 'waiting', 'The run waits, such as for an approver.')
      case 'incident':
        return await this.#set(plan, number, 'waiting', `The run needs an operator: ${incident?.message ?? ''}`)
      case 'denied':
        return await this.#set(plan, number, 'skipped', 'An approver denied the run.')
      case 'completed':
        return await this.#orFailed(plan, row, { systems, signal }, async () => {
          const present = await systems.compareOne(difference, signal)
          if (present === undefined) return await this.#set(plan, number, 'done')
          const text = `The run completed, but the account still differs: ${present.difference.reason}`
          return await this.#set(plan, number, 'failed', text)
        })
      default:
        return await this.#set(plan, number, 'failed', `The run ended as ${runState}: ${incident?.message ?? ''}`)
    }
  }

  async #set(plan: PlanClaim, number: number, state: RowState, reason?: string): Promise<RowState> {
    if (!(await this.#parts.store.settleRow(plan, { number, state, reason }))) throw new ClaimLost()
    return state
  }

  #entry(plan: ClaimedPlan, value: string, reason: string) {
    const { reconciliation } = plan
    return reconciliationEntry({ reconciliation, by: { login: ownTarget }, reason }, 'plan', value, this.#parts.clock())
  }
}

const changesAny = (actions: PlanCounts['actions']): boolean =>
  Object.entries(actions).some(([action, n]) => action !== 'report' && n > 0)

const addActions = (some: PlanCounts['actions'], more: ActionCounts): PlanCounts['actions'] => {
  const sum = { ...some }
  for (const action of reconciliationActions) sum[action] += more[action] ?? 0
  return sum
}

/** Plans in other states have ended, and only their runs are followed. */
const isUnderWay = ({ state }: ClaimedPlan): boolean => state === 'comparing' || state === 'applying'

/** The counts with those of one more part. */
function withPart(counts: PlanCounts, { counts: part, differences }: ComparisonPart): PlanCounts {
  const kinds = { ...counts.differences }
  const actions = { ...counts.actions }
  for (const { kind, action } of differences) {
    kinds[kind]++
    actions[action]++
  }
  const removing = differences.filter(({ removes }) => removes).length
  return {
    source: counts.source + part.source,
    target: counts.target + part.target,
    agree: counts.agree + part.agree,
    differences: kinds,
    actions,
    removes: counts.removes + removing,
  }
}
