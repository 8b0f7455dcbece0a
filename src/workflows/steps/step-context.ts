import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { LogFields, Logger } from '#kernel/logger.ts'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'
import type { RequestMap, StepEffects, TaskContext } from '#sdk/workflow/workflow-task.ts'
import { auditedRun } from '#workflows/record/run-audit.ts'
import { accountOrigin } from './account-origin.ts'
import { type AuditPlace, AuditTrail } from './audit-trail.ts'
import { currentUser, type RunProgress } from './run-progress.ts'
import { type Position, positionText } from './walk.ts'

interface RunServices {
  readonly log: Logger
  readonly clock: Clock
  readonly trail: AuditTrail
  readonly effects: StepEffects
  /** What earlier attempts did, for runs that may only create accounts. */
  readonly audit?: Pick<AuditStore, 'list'>
  /** Called before the step calls a target. */
  readonly onTarget?: (target: string) => void
  /** The target's changes and their audit are one commit, so planned changes need not be stored. */
  readonly auditsWithin?: (target: string) => boolean
  /** Called with the planned changes if they must be stored before the target is called. */
  readonly planChanges?: (place: AuditPlace, changes: readonly TargetChange[]) => Promise<void>
  /** Aborted when the worker loses its claim or the step takes too long. */
  readonly abort?: AbortSignal
}

/**
 * The context of one step. Plain objects without getters: they are created for every step, and targets may copy
 * them.
 */
export function stepContext(state: RunProgress, position: Position, services: RunServices): TaskContext {
  const { head, request, bound } = state
  const user = currentUser(state)
  const workflow = { id: head.id, name: head.workflow }
  const log = new StepLogger(services.log, workflow, position)
  const place = (target: string): AuditPlace => ({ time: services.clock(), subject: user.userID, target })
  const { planChanges } = services
  const forTarget = (target: string): TargetRequest => {
    services.onTarget?.(target)
    return targetRequest(target)
  }
  const targetRequest = (target: string): TargetRequest => ({
    workflow,
    idempotencyKey: `${head.id}/${state.steps}`,
    requestor: head.requester,
    params: requestObject(request),
    log,
    audit: (change) => services.trail.add(place(target), change),
    auditWithin: (transaction, changes) => services.trail.appendWithin(transaction, place(target), changes),
    ...(planChanges === undefined || services.auditsWithin?.(target) === true
      ? {}
      : { planChanges: (changes) => planChanges(place(target), changes) }),
    signal: services.abort,
    newAccount: state.newAccount === undefined ? undefined : accountOrigin(state, target, services.audit),
  })
  const { signal } = state
  const { effects } = services
  return {
    user,
    request,
    run: head,
    bound,
    log,
    effects,
    forTarget,
    signal,
  }
}

/** Without a prototype, so that no key can reach JavaScript's own properties. */
export function requestObject(request: RequestMap): Readonly<Record<string, unknown>> {
  const object: Record<string, unknown> = Object.create(null)
  for (const [key, value] of request) object[key] = value
  return object
}

/** Adds the step and the run to every line; formatted only if there is a line. */
class StepLogger implements Logger {
  readonly #base: Logger
  readonly #workflow: { readonly id: string; readonly name: string }
  readonly #position: Position

  constructor(base: Logger, workflow: { readonly id: string; readonly name: string }, position: Position) {
    this.#base = base
    this.#workflow = workflow
    this.#position = position
  }

  debug(message: string, fields?: LogFields): void {
    this.#base.debug(message, this.#tagged(fields))
  }

  info(message: string, fields?: LogFields): void {
    this.#base.info(message, this.#tagged(fields))
  }

  warn(message: string, fields?: LogFields): void {
    this.#base.warn(message, this.#tagged(fields))
  }

  error(message: string, fields?: LogFields): void {
    this.#base.error(message, this.#tagged(fields))
  }

  with(fields: LogFields): Logger {
    return new StepLogger(this.#base.with(fields), this.#workflow, this.#position)
  }

  #tagged(fields?: LogFields): LogFields {
    return {
      ...fields,
      workflowId: this.#workflow.id,
      workflow: this.#workflow.name,
      task: positionText(this.#position),
      taskType: this.#position.step.taskType,
    }
  }
}

/** A trail for the run's further changes. */
export const auditTrail = ({ head, approval }: RunProgress, audit: Pick<AuditStore, 'appendWithin'>): AuditTrail =>
  new AuditTrail({ ...auditedRun(head), approval, reason: head.reason }, audit)
