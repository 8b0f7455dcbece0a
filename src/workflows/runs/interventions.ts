import type { AuditStore } from '#audit/store/audit-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { ownTarget } from '#workflows/approvals/approval-audit.ts'
import { requireUninvolved } from '#workflows/approvals/decision-influence.ts'
import type { AppointedApprover } from '#workflows/record/approval.ts'
import type { Operator } from '#workflows/record/operator.ts'
import type { RunQuery, RunState, StoredRun } from '#workflows/record/run.ts'
import {
  NewerChange,
  type PinnedRun,
  type RunIntervention,
  type RunRetry,
  type RunWithdrawal,
} from '#workflows/record/run-requests.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { pinnedDefinitions, skipTask, withAppointed } from './saved-run.ts'

const changeKinds: ReadonlySet<AuditEntry['kind']> = new Set(['entry', 'attribute', 'group'])

/** Shows stored runs and lets administrators act on them; needs no configuration. Audits every action. */
export class RunInterventions {
  readonly #store: RunStore
  readonly #audit: Pick<AuditStore, 'list'>
  readonly #clock: Clock

  constructor(store: RunStore, audit: Pick<AuditStore, 'list'>, clock: Clock) {
    this.#store = store
    this.#audit = audit
    this.#clock = clock
  }

  async get(id: string): Promise<PinnedRun | undefined> {
    const run = await this.#store.get(id)
    return run && { ...run, definitions: { [run.head.workflow]: run.head.definition, ...pinnedDefinitions(run.data) } }
  }

  /** Those of the runs that are stored, in any order. */
  several(ids: readonly string[]) {
    return this.#store.several(ids)
  }

  /** Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  list(query: RunQuery) {
    return this.#store.list(query)
  }

  /** The run of the same subject that this queued run waits for. */
  ahead(id: string) {
    return this.#store.ahead(id)
  }

  /** The parameters of requests that are texts and no secrets, by run; for labels. */
  parametersOf(runs: readonly string[]) {
    return this.#store.parametersOf(runs)
  }

  /** In order, at most 500 after the one with that id. */
  steps(id: string, after?: number) {
    return this.#store.steps(id, after)
  }

  /**
   * Tries an incident again. Throws NOT_FOUND, ACCESS_DENIED if the operator is requester, caller or subject of the run,
   * CONFLICT when it is not an incident, or not one that needs an approver, VERSION_MISMATCH, and NewerChange.
   */
  async retry({ by, appointed, ...retry }: RunRetry): Promise<void> {
    const run = await this.#findFor(by, retry.id)
    if (appointed !== undefined && run.incident?.code !== 'NO_APPROVERS') {
      throw refused(`the run ${run.head.id} needs no approver`, 'Only an approval without approvers can be given one.')
    }
    await this.tryAgain({ ...retry, by: by.login }, appointed)
  }

  /** Continues an incident after the task that failed. Throws as `retry` does, and CONFLICT unless `maySkip`. */
  async skip({ by, ...skip }: RunIntervention): Promise<void> {
    const { id, fence } = skip
    const run = await this.#findFor(by, id)
    if (run.state !== 'incident') throw new GatewayError('CONFLICT', `the run ${id} is ${run.state}`)
    if (run.incident?.maySkip !== true) {
      const text = run.incident?.maySkip === false ? approvalText : unknownText
      throw refused(`the task of the run ${id} can't be skipped`, text)
    }
    await this.#requireLatest(run)
    const data = skipTask(run.data)
    if (data === undefined) throw new GatewayError('CONFLICT', `the run ${id} has no task left to skip`)
    await this.#store.resume(
      { id, fence, effects: { audit: [this.#row(run, { ...skip, by: by.login }, `skip ${run.incident.task}`)] } },
      data,
    )
  }

  /**
   * Ends a run before its next task; it stays `running` until then. Throws NOT_FOUND, ACCESS_DENIED as `retry` does,
   * CONFLICT when it has ended, VERSION_MISMATCH.
   */
  async cancel({ by, ...cancel }: RunIntervention): Promise<RunState> {
    await this.#findFor(by, cancel.id)
    return await this.end({ ...cancel, by: by.login })
  }

  /** As `cancel`, for the requester, and only while no target was changed; CONFLICT otherwise. */
  withdraw(withdrawal: RunWithdrawal): Promise<RunState> {
    return this.end(withdrawal, true)
  }

  /** A retry that no operator requested, or that was checked before. */
  protected async tryAgain(retry: RunWithdrawal, appointed?: AppointedApprover): Promise<void> {
    const { id, fence } = retry
    const run = await this.#find(id)
    await this.#requireLatest(run)
    const act = appointed === undefined ? 'retry' : `retry with approver ${appointed.approver.login}`
    const effects = { audit: [this.#row(run, retry, act)] }
    await this.#store.resume({ id, fence, effects }, withAppointed(run.data, appointed))
  }

  /** An end that no operator requested, or that was checked before. */
  protected async end({ by, ...request }: RunWithdrawal, onlyUntouched = false): Promise<RunState> {
    const { id, fence, reason } = request
    const run = await this.#find(id)
    const act = run.incident === undefined ? 'cancel' : `cancel ${run.incident.task}`
    return await this.#store.cancel({
      id,
      fence,
      onlyUntouched,
      outcome: 'cancelled',
      cancellation: { by, reason },
      effects: { audit: [{ ...this.#row(run, { ...request, by }, act), action: 'delete' }] },
    })
  }

  /** The rest of a run that failed part way must not undo what was changed since. Throws NewerChange. */
  async #requireLatest({ head: { id, subject }, state, touched, updated }: StoredRun): Promise<void> {
    if (state !== 'incident' || !touched) return
    const { rows } = await this.#audit.list({ subject, from: updated, limit: 500 })
    const newer = rows.find(
      ({ target, kind, workflow }) => workflow.id !== id && target !== ownTarget && changeKinds.has(kind),
    )
    if (newer !== undefined) throw new NewerChange(id, newer)
  }

  async #findFor(operator: Operator, id: string): Promise<StoredRun> {
    const run = await this.#find(id)
    requireUninvolved(run.head, operator)
    return run
  }

  async #find(id: string): Promise<StoredRun> {
    const run = await this.#store.get(id)
    if (run === undefined) throw new GatewayError('NOT_FOUND', `no run ${id}`)
    return run
  }

  #row(run: StoredRun, { by, reason }: RunWithdrawal, value: string): AuditEntry {
    return {
      id: newId(),
      time: this.#clock(),
      requestor: by,
      subject: run.head.subject,
      workflow: { id: run.head.id, name: run.head.workflow },
      target: 'gatehouse',
      kind: 'entry',
      action: 'replace',
      attribute: 'workflow',
      value,
      ...(reason === undefined ? {} : { reason }),
    }
  }
}

const approvalText =
  'An approval can not be skipped, nor a task that contains one or comes before a condition that leads to one. Retry the run, with an approver if it has none, or cancel it.'
const unknownText =
  'This can not be skipped, since it is unknown whether it contains an approval. Retry the run, or cancel it.'

const refused = (detail: string, publicText: string): GatewayError =>
  new GatewayError('CONFLICT', detail, { publicText })
