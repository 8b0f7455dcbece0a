import sql, { empty, raw } from 'sql-template-tag'
import { appendAudit } from '#audit/store/audit-chain.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import {
  columns,
  deletedAtOnce,
  deleteInParts,
  dynamic,
  inserted,
  ListStatement,
  RowInsert,
  type Statement,
  statement,
} from '#database/statement.ts'
import { assertStorable, isStorable, optionalText, storable } from '#database/text-keys.ts'
import {
  type PlanState,
  type ReconciliationAction,
  type RowState,
  rowStates,
} from '#features/reconciliation/contract/plan-words.ts'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { type ActionCounts, takesAccess } from '#features/reconciliation/plan/limits.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { Incident, RunState } from '#workflows/record/run.ts'
import { deadlineTimer } from '#workflows/steps/run-timers.ts'
import { type NewRun, writeEffects } from '#workflows/store/run-commit.ts'
import { transactionWithWakeUp, type WakeUp } from '#workflows/store/wake-up.ts'
import {
  type ClaimedPlan,
  type Drift,
  noCounts,
  type Plan,
  type PlanApproval,
  type PlanClaim,
  type PlanCounts,
  type PlanRow,
  type ReconciliationReport,
  type RowQuery,
} from './plan-record.ts'
import {
  loginKeyOf,
  planColumns,
  planRowColumns,
  type ReadPlanRow,
  rowKeyOf,
  type StoredPlan,
  type StoredPlanRow,
  toClaimedPlan,
  toPlan,
  toPlanRow,
} from './plan-row.ts'

const maxPage = 500
const maxReconciliations = 1_000

type NewPlan = Pick<Plan, 'id' | 'reconciliation' | 'scheduled' | 'requestedBy' | 'isAutomatic' | 'reason' | 'people'>

/** What a worker found in a part of a comparison. */
interface PartCommit {
  readonly differences: readonly Difference[]
  /** Of all parts so far, this one included. */
  readonly counts: PlanCounts
  readonly resumeAt: string
  /** Of the configuration that found it. */
  readonly definition: string
  readonly leaseMillis: number
}

/** A target, and the names of the reconciliations that change its accounts. */
interface ReconciledTarget {
  readonly target: string
  readonly ofTarget: readonly string[]
}

/** `void`: the claim is, or the row is no longer open. `pending`: see `pendingRun`. */
type RowStart = { readonly kind: 'started' | 'void' } | { readonly kind: 'pending'; readonly run: string }

/** The end of a comparison. */
interface ComparisonEnd {
  /** `applying` if its schedule approves it. */
  readonly state: 'planned' | 'stopped' | 'applying'
  readonly problem?: string | undefined
  readonly approval?: Omit<PlanApproval, 'at'> | undefined
  /** Absent for a plan of changed people, which says nothing about all others. */
  readonly report?: Omit<ReconciliationReport, 'at'> | undefined
  readonly audit: readonly AuditEntry[]
}

/** What counts for the limits of a plan beside its own rows. */
export interface ChangeWindow extends Pick<PlanCounts, 'target'> {
  /** Of the changes, only those that take access away. */
  readonly removals: ActionCounts
}

/** A row whose run has changed its state since. */
export interface ChangedRow extends PlanRow {
  /** Absent if the run is no longer stored. */
  readonly runState?: RunState | undefined
  readonly incident?: Incident | undefined
}

/** What a person does with a plan. */
type PlanChange = 'approve' | 'pause' | 'resume' | 'stop'

interface ChangeRequest {
  readonly approval?: Omit<PlanApproval, 'at'> | undefined
  readonly problem?: string | undefined
  readonly audit: readonly AuditEntry[]
}

interface Retention {
  /** Plans that ended before then are deleted with their rows. */
  readonly plans: Date
  /** Of each reconciliation, so many plans are kept, and those of the last two hours. */
  readonly plansKept: number
  readonly reports: Date
}

/**
 * Plans of reconciliations, with their rows and reports. Only the worker that claimed a plan writes its parts and rows; a
 * change by a person voids the claim. Each write and its audit entries are one transaction.
 */
export class ReconciliationStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
  }

  /**
   * Stores a plan for a worker to compare. If one of the reconciliation is being compared or applied, or one was requested
   * for this time of the schedule, returns that one.
   */
  async request(
    plan: NewPlan,
    audit: readonly AuditEntry[],
  ): Promise<{ readonly plan: Plan; readonly isNew: boolean }> {
    const { id, reconciliation, scheduled, requestedBy, isAutomatic, reason, people } = plan
    assertStorable('name of the reconciliation', reconciliation)
    const row = {
      id,
      reconciliation,
      scheduled: scheduled?.getTime() ?? null,
      requestedBy: storable(requestedBy),
      automatic: isAutomatic ? 1 : 0,
      reason: optionalText(reason),
      people: people === undefined ? null : JSON.stringify(people.map(storable)),
      counts: JSON.stringify(noCounts),
    }
    return await this.#client.transaction(async (tx) => {
      const own = await insertPlan.first(tx, row)
      if (own !== undefined) {
        await appendAudit(tx, audit)
        return { plan: toPlan(own), isNew: true }
      }
      const other = await findActive.first(tx, { reconciliation, scheduled: row.scheduled })
      if (other === undefined) throw new GatewayError('CONFLICT', `the plan ${id} exists`)
      return { plan: toPlan(other), isNew: false }
    })
  }

  /** Leases the plan that is due longest. Concurrent callers never get the same one. */
  async claim(worker: string, leaseMillis: number): Promise<ClaimedPlan | undefined> {
    const row = await this.#client.transaction((tx) => claim.first(tx, { worker, lease: leaseMillis }))
    return row && toClaimedPlan(row)
  }

  /** False when the claim is void. */
  async renew({ id, fence }: PlanClaim, leaseMillis: number): Promise<boolean> {
    return (await this.#client.transaction((tx) => renew.run(tx, { id, fence, lease: leaseMillis }), 'soon')) > 0
  }

  /** Gives the plan back, to be continued then. */
  async release({ id, fence }: PlanClaim, inMillis: number): Promise<void> {
    await this.#client.transaction((tx) => release.run(tx, { id, fence, wait: inMillis }))
  }

  /** Frees the claims of a process that died, where the database has one process only. */
  async recover(): Promise<void> {
    if (this.#client.dialect === 'sqlite') await this.#client.transaction((tx) => expireLeases.run(tx, {}))
  }

  /** Stores the rows and the checkpoint. False, and nothing is written, when the claim is void. */
  addPart({ id, fence }: PlanClaim, part: PartCommit): Promise<boolean> {
    const { differences, leaseMillis, counts, resumeAt, definition } = part
    const first = Object.values(counts.differences).reduce((sum, count) => sum + count, 0) - differences.length
    return this.#client.transaction(async (tx) => {
      const values = { id, fence, counts: JSON.stringify(counts), resumeAt, definition, lease: leaseMillis }
      const moved = await addPart.first(tx, values)
      if (moved === undefined) return false
      const rows = differences.map((difference, i) => toNewRow(id, first + i, difference, moved.updated))
      insertRows.run(tx, rows)
      return true
    })
  }

  /** Stores the report, and earlier plans that wait for approval expire. False, and nothing is written, when the claim is void. */
  endComparison({ id, fence }: PlanClaim, end: ComparisonEnd): Promise<boolean> {
    const { state, problem, approval, report, audit } = end
    return this.#client.transaction(async (tx) => {
      const values = { id, fence, state, problem: optionalText(problem), ...approvalValues(approval) }
      const moved = await endComparison.first(tx, values)
      if (moved === undefined) return false
      if (report !== undefined) {
        await insertReport.run(tx, { ...report, at: moved.updated })
        await supersede.run(tx, { id, reconciliation: report.reconciliation })
      }
      await appendAudit(tx, audit)
      return true
    })
  }

  /** Forgets a plan of changed people that found nothing to change. False when the claim is void. */
  async discard({ id, fence }: PlanClaim): Promise<boolean> {
    return (await this.#client.transaction((tx) => discard.run(tx, { id, fence }))) > 0
  }

  /**
   * What the limits of a plan that no person approves are about: the accounts of the last whole comparison with those that
   * were created since, and how many other accounts plans that were approved within this time take access from.
   */
  async window(reconciliation: string, plan: string, millis: number): Promise<ChangeWindow> {
    const report = await findReports.first(this.#client, { reconciliation, limit: 1 })
    const created = await findCreated.all(this.#client, { reconciliation, plan, since: report?.at ?? 0 })
    const removed = await countRemoved.all(this.#client, { reconciliation, plan, millis })
    return {
      target: created.reduce(
        (sum, { counts }) => sum + (JSON.parse(counts) as PlanCounts).actions.create,
        report?.target ?? 0,
      ),
      removals: Object.fromEntries(removed.map(({ action, count }) => [action, count])),
    }
  }

  /**
   * Ends a plan that can't be continued. Rows whose runs have started are still settled. After a plan of changed people,
   * the feed begins again with a comparison of everyone.
   */
  fail({ id, fence }: PlanClaim, problem: string, audit: readonly AuditEntry[]): Promise<boolean> {
    return this.#client.transaction(async (tx) => {
      if ((await fail.run(tx, { id, fence, problem: storable(problem) })) === 0) return false
      await leaveFeed.run(tx, { id })
      await appendAudit(tx, audit)
      return true
    })
  }

  /** Waits for a system; the plan is continued then. */
  async pauseFor({ id, fence }: PlanClaim, problem: string, inMillis: number): Promise<void> {
    await this.#client.transaction((tx) => pauseFor.run(tx, { id, fence, problem: storable(problem), wait: inMillis }))
  }

  /**
   * The run that another plan of one of these reconciliations has started for the same difference, person or account, and
   * that has not ended. Reconciliations of one target have its accounts in common.
   */
  pendingRun(
    { id }: Pick<Plan, 'id'>,
    reconciliations: readonly string[],
    of: Difference,
  ): Promise<string | undefined> {
    return pendingRun(this.#client, id, reconciliations, of)
  }

  /** In order, without those that are deferred. */
  async openRows(plan: string, limit: number): Promise<readonly PlanRow[]> {
    return (await findOpenRows.all(this.#client, { plan, limit })).map(toPlanRow)
  }

  /**
   * Stores the run and that the row has started it, so that a row never starts two, and neither do plans of several
   * reconciliations of the target for what `pendingRun` compares. Otherwise stores nothing.
   */
  startRow(
    { id, fence }: PlanClaim,
    { number, difference }: Pick<PlanRow, 'number' | 'difference'>,
    run: NewRun,
    { target, ofTarget }: ReconciledTarget,
  ): Promise<RowStart> {
    const { deadline } = run.head
    const effects = { starts: [run], ...(deadline && { timers: [deadlineTimer(run.head.id, deadline)] }) }
    return transactionWithWakeUp<RowStart>(this.#client, this.#wake, async (tx) => {
      // Plans of one target wait for each other here, so that the later one finds the run of the earlier.
      await lockTarget.all(tx, { target })
      const now = await lockApplied(tx, { id, fence })
      if (now === undefined) return { value: { kind: 'void' }, ready: [] }
      const pending = await pendingRun(tx, id, ofTarget, difference)
      if (pending !== undefined) return { value: { kind: 'pending', run: pending }, ready: [] }
      const isStarted = (await startRow.run(tx, { plan: id, number, run: run.head.id, now })) > 0
      if (!isStarted) return { value: { kind: 'void' }, ready: [] }
      return { value: { kind: 'started' }, ready: await writeEffects(tx, effects, now) }
    })
  }

  /** Sets what became of a row. False, and nothing is written, when the claim is void. */
  settleRow(
    { id, fence }: PlanClaim,
    { number, state, reason }: Pick<PlanRow, 'number' | 'state' | 'reason'>,
  ): Promise<boolean> {
    return this.#client.transaction(async (tx) => {
      const now = await lockApplied(tx, { id, fence })
      if (now === undefined) return false
      return (await settleRow.run(tx, { plan: id, number, state, reason: optionalText(reason), now })) > 0
    })
  }

  /**
   * Leaves a row for later, since it fails while others do not. Waits longer each time; returns how often it has failed,
   * and undefined when the claim is void.
   */
  deferRow(
    { id, fence }: PlanClaim,
    { number, reason }: Pick<PlanRow, 'number' | 'reason'>,
    waitMillis: number,
  ): Promise<number | undefined> {
    return this.#client.transaction(async (tx) => {
      const now = await lockApplied(tx, { id, fence })
      if (now === undefined) return undefined
      const values = { plan: id, number, reason: optionalText(reason), now, wait: waitMillis }
      return (await deferRow.first(tx, values))?.attempt
    })
  }

  /** Rows whose run has ended, begun to wait or continued since, in order, without those that are deferred. */
  async changedRows(plan: string, limit: number): Promise<readonly ChangedRow[]> {
    const rows = await findChangedRows.all(this.#client, { plan, limit })
    return rows.map(({ runState, incident, ...row }) => ({
      ...toPlanRow(row),
      ...(runState === null ? {} : { runState }),
      ...(incident === null ? {} : { incident: JSON.parse(incident) as Incident }),
    }))
  }

  /** Every row was handled. With a wait, runs of it still wait, and it is claimed again then. */
  async endApplying(
    { id, fence }: PlanClaim,
    wait: number | undefined,
    audit: readonly AuditEntry[],
  ): Promise<boolean> {
    return await this.#client.transaction(async (tx) => {
      if ((await endApplying.run(tx, { id, fence, wait: wait ?? null })) === 0) return false
      await appendAudit(tx, audit)
      return true
    })
  }

  /** For a person. Throws NOT_FOUND, and CONFLICT for a plan in another state. */
  async change(id: string, change: PlanChange, { approval, problem, audit }: ChangeRequest): Promise<Plan> {
    if (!isStorable(id)) throw new GatewayError('NOT_FOUND', 'no such plan')
    return await this.#client.transaction(async (tx) => {
      const values = { id, problem: optionalText(problem), ...approvalValues(approval) }
      const found = await findPlan.first(tx, { id })
      if (found === undefined) throw refused('NOT_FOUND', `There is no plan ${id}.`)
      if (change === 'approve') await this.#requireFree(tx, found)
      const changed = await changes[change].first(tx, values)
      if (changed === undefined) throw refused('CONFLICT', refusalOf(change, found.state))
      await appendAudit(tx, audit)
      return toPlan(changed)
    })
  }

  async #requireFree(tx: DatabaseTransaction, { id, reconciliation }: StoredPlan): Promise<void> {
    const active = await findActive.first(tx, { reconciliation, scheduled: null })
    if (active === undefined || active.id === id) return
    throw refused(
      'CONFLICT',
      `The plan ${active.id} of ${reconciliation} is ${active.state}. Wait for its end, or stop it.`,
    )
  }

  async get(id: string): Promise<Plan | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findPlan.first(this.#client, { id })
    return row && toPlan(row)
  }

  /** Latest first, at most 500 before the plan with that id. */
  async list(query: {
    readonly reconciliation?: string | undefined
    readonly before?: string | undefined
    readonly limit: number
  }): Promise<readonly Plan[]> {
    const { reconciliation, before } = query
    if ([reconciliation, before].some((text) => text !== undefined && !isStorable(text))) return []
    const text = sql`select ${raw(planColumns)} from reconciliation_plans where 1 = 1
      ${reconciliation === undefined ? empty : sql`and reconciliation = ${reconciliation}`}
      ${before === undefined ? empty : sql`and id < ${before}`} order by id desc limit ${bounded(query.limit)}`
    const { dialect } = this.#client
    return (await this.#client.query(dynamic<StoredPlan>(dialect, text))).map(toPlan)
  }

  /** In the order of the plan. */
  async rows(plan: string, query: RowQuery): Promise<readonly PlanRow[]> {
    const { state, kind, action, login, after } = query
    if (!isStorable(plan)) return []
    const key = loginKeyOf(login)
    const text = sql`select ${raw(planRowColumns)} from reconciliation_rows r where r.plan = ${plan}
      ${after === undefined ? empty : sql`and r.number > ${after}`}
      ${state === undefined ? empty : sql`and r.state = ${state}`}
      ${kind === undefined ? empty : sql`and r.kind = ${kind}`}
      ${action === undefined ? empty : sql`and r.action = ${action}`}
      ${key === null ? empty : sql`and (r.source_key = ${key} or r.target_key = ${key})`}
      order by r.number limit ${bounded(query.limit)}`
    const { dialect } = this.#client
    return (await this.#client.query(dynamic<ReadPlanRow>(dialect, text))).map(toPlanRow)
  }

  /** How many rows are in each state. */
  async progress(plan: string): Promise<Readonly<Record<RowState, number>>> {
    const rows = isStorable(plan) ? await countRows.all(this.#client, { plan }) : []
    const counts = new Map(rows.map(({ state, count }) => [state, count]))
    return Object.fromEntries(rowStates.map((state) => [state, counts.get(state) ?? 0])) as Record<RowState, number>
  }

  /** Of reconciliations with a report, by name. At most 1,000. */
  async drift(): Promise<ReadonlyMap<string, Drift>> {
    const rows = await findDrift.all(this.#client, { limit: maxReconciliations })
    return new Map(
      rows.map(({ differsSince, ...row }) => [
        row.reconciliation,
        { report: toReport(row), ...(differsSince === null ? {} : { differsSince: new Date(differsSince) }) },
      ]),
    )
  }

  /** Latest first, at most 500. */
  async reports(reconciliation: string, limit: number): Promise<readonly ReconciliationReport[]> {
    if (!isStorable(reconciliation)) return []
    return (await findReports.all(this.#client, { reconciliation, limit: bounded(limit) })).map(toReport)
  }

  /** Ends plans that have waited for a person since then: their differences are outdated. Returns how many. */
  async expire(before: Date): Promise<number> {
    return await this.#client.transaction(async (tx) => {
      await leaveFeeds.run(tx, { before: before.getTime() })
      return await expire.run(tx, { before: before.getTime() })
    })
  }

  /** Returns how many plans were deleted. */
  async prune({ plans, plansKept, reports }: Retention): Promise<number> {
    const old = { before: plans.getTime(), kept: plansKept }
    await deleteInParts(this.#client, deleteOldRows, old)
    await deleteInParts(this.#client, deleteOldReports, { before: reports.getTime() })
    return await deleteInParts(this.#client, deleteOldPlans, old)
  }
}

const bounded = (limit: number): number => Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))

const approvalValues = (approval: Omit<PlanApproval, 'at'> | undefined) => ({
  approvedBy: optionalText(approval?.by),
  approvedIdentity: optionalText(approval?.identity),
  approvedReason: optionalText(approval?.reason),
})

function toNewRow(plan: string, number: number, difference: Difference, updated: number): StoredPlanRow {
  const { kind, action, source, target } = difference
  return {
    plan,
    number,
    rowKey: rowKeyOf(difference),
    kind,
    action,
    removes: takesAccess(difference) ? 1 : 0,
    state: action === 'report' ? 'reported' : 'open',
    sourceKey: loginKeyOf(source?.login),
    targetKey: loginKeyOf(target?.login),
    difference: JSON.stringify(difference),
    run: null,
    reason: null,
    attempt: 0,
    due: null,
    updated,
  }
}

const toReport = ({ at, ...report }: ReportRow): ReconciliationReport => ({ ...report, at: new Date(at) })

const refused = (code: 'NOT_FOUND' | 'CONFLICT', publicText: string): GatewayError =>
  new GatewayError(code, publicText, { publicText })

const needed: Readonly<Record<PlanChange, string>> = {
  approve: 'Only a plan that waits for approval can be applied',
  pause: 'Only a plan that is being compared or applied can be paused',
  resume: 'Only a paused plan can be resumed',
  stop: 'The plan has ended',
}
const refusalOf = (change: PlanChange, state: PlanState): string => `${needed[change]}; this one is ${state}.`

/** The database's time, if the claim is valid and the plan may change rows. Renews nothing, but locks the plan. */
const lockApplied = async (tx: DatabaseTransaction, claim: PlanClaim): Promise<number | undefined> =>
  (await touchClaimed.first(tx, { id: claim.id, fence: claim.fence }))?.updated

/** See `ReconciliationStore.pendingRun`. */
async function pendingRun(
  reader: DatabaseReader,
  plan: string,
  reconciliations: readonly string[],
  of: Difference,
): Promise<string | undefined> {
  const { source, target } = of
  const keys = {
    rowKey: rowKeyOf(of),
    sourceKey: loginKeyOf(source?.login),
    targetKey: loginKeyOf(target?.login),
  }
  const [row] = await findPending.all(reader, { plan, ...keys }, reconciliations)
  return row?.run ?? undefined
}

type ReportRow = Omit<ReconciliationReport, 'at'> & { readonly at: number }

type DriftRow = ReportRow & { readonly differsSince: number | null }

type Claimed = { readonly id: string; readonly fence: number }
const claimed = 'id = :id and fence = :fence'
/** The plan whose claim is void from now on. */
const released = 'lease_until = 0, worker = null'

const insertPlan = statement<
  Pick<
    StoredPlan,
    'id' | 'reconciliation' | 'scheduled' | 'requestedBy' | 'automatic' | 'reason' | 'people' | 'counts'
  >,
  StoredPlan
>(
  (on) => `insert into reconciliation_plans (id, reconciliation, state, scheduled, requested_by, automatic, reason,
      people, counts, attempt, fence, lease_until, due, created, updated)
    values (:id, :reconciliation, 'requested', :scheduled, :requestedBy, :automatic, :reason, :people, :counts, 0, 0, 0, ${on.now}, ${on.now},
      ${on.now})
    on conflict do nothing returning ${planColumns}`,
)
const findActive = statement<{ reconciliation: string; scheduled: number | null }, StoredPlan>(
  `select ${planColumns} from reconciliation_plans where reconciliation = :reconciliation
     and (state in ('requested', 'comparing', 'applying', 'paused') or scheduled = :scheduled)
   order by id desc limit 1`,
)
/** The work of a paused plan continues. Plans that have ended are claimed while runs of them wait. */
const claim = statement<{ worker: string; lease: number }, StoredPlan>(
  (on) => `with free as
     (select id from reconciliation_plans where due <= ${on.now} and lease_until <= ${on.now}
      order by due, id limit 1 ${on.forUpdateSkipLocked})
   update reconciliation_plans set worker = :worker, fence = fence + 1, lease_until = ${on.now} + :lease,
     updated = ${on.now},
     state = case when state = 'requested' then 'comparing'
       when state = 'paused' and approved is null then 'comparing'
       when state = 'paused' then 'applying'
       else state end
   where id in (select id from free) returning ${planColumns}`,
)
const renew = statement<Claimed & { readonly lease: number }>(
  (on) => `update reconciliation_plans set lease_until = ${on.now} + :lease where ${claimed}`,
)
const release = statement<Claimed & { readonly wait: number }>(
  (on) => `update reconciliation_plans set due = ${on.now} + :wait, ${released} where ${claimed}`,
)
const expireLeases = statement(`update reconciliation_plans set lease_until = 0 where lease_until > 0`)
const addPart = statement<
  Claimed & Pick<PartCommit, 'resumeAt' | 'definition'> & { readonly counts: string; readonly lease: number },
  { updated: number }
>(
  (on) => `update reconciliation_plans set counts = :counts, resume_at = :resumeAt, definition = :definition,
      attempt = 0, problem = null, lease_until = ${on.now} + :lease, updated = ${on.now}
    where ${claimed} and state = 'comparing' returning updated`,
)
const insertRows = new RowInsert<StoredPlanRow>('reconciliation_rows', [
  'plan',
  'number',
  'rowKey',
  'kind',
  'action',
  'removes',
  'state',
  'sourceKey',
  'targetKey',
  'difference',
  'run',
  'reason',
  'attempt',
  'due',
  'updated',
])
type ApprovalValues = ReturnType<typeof approvalValues>
const endComparison = statement<
  Claimed & ApprovalValues & { readonly state: string; readonly problem: string | null },
  { updated: number }
>(
  (on) => `update reconciliation_plans set state = :state, problem = :problem, resume_at = null, attempt = 0,
      compared = ${on.now}, updated = ${on.now}, ${released},
      ended = case when cast(:state as text) = 'stopped' then ${on.now} end,
      due = case when cast(:state as text) = 'applying' then ${on.now} end,
      approved = case when cast(:state as text) = 'applying' then ${on.now} end,
      approved_by = :approvedBy, approved_identity = :approvedIdentity, approved_reason = :approvedReason
    where ${claimed} and state = 'comparing' returning updated`,
)
const reportProperties = [
  'plan',
  'reconciliation',
  'at',
  'source',
  'target',
  'agree',
  'missing',
  'different',
  'extra',
  'ambiguous',
  'unknown',
] as const
const insertReport = statement<ReportRow>(`insert into reconciliation_reports ${inserted(reportProperties)}`)
const supersede = statement<{ id: string; reconciliation: string }>(
  (on) => `update reconciliation_plans set state = 'expired', problem = 'A newer plan took its place.',
      ended = ${on.now}, updated = ${on.now}
    where reconciliation = :reconciliation and state = 'planned' and id <> :id`,
)
const discard = statement<Claimed>(`delete from reconciliation_plans where ${claimed} and state = 'comparing'`)
const findCreated = statement<{ reconciliation: string; plan: string; since: number }, { counts: string }>(
  `select counts from reconciliation_plans
   where reconciliation = :reconciliation and id <> :plan and compared >= :since and approved is not null`,
)
/** An account that waits in several plans counts once, and not if the plan itself is about it. */
const countRemoved = statement<
  { reconciliation: string; plan: string; millis: number },
  { action: ReconciliationAction; count: number }
>(
  (on) => `select r.action, count(distinct r.row_key) as count
   from reconciliation_plans p join reconciliation_rows r on r.plan = p.id
   where p.reconciliation = :reconciliation and p.id <> :plan and p.approved >= ${on.now} - :millis
     and r.removes = 1
     and (r.state in ('started', 'waiting', 'done', 'failed') or r.state = 'open' and p.state in ('applying', 'paused'))
     and not exists (select 1 from reconciliation_rows o where o.plan = :plan and o.row_key = r.row_key)
   group by r.action`,
)
const fail = statement<Claimed & { readonly problem: string }>(
  (on) => `update reconciliation_plans set state = 'failed', problem = :problem, ended = ${on.now}, updated = ${on.now},
      due = case when approved is null then null else ${on.now} end, ${released}
    where ${claimed}`,
)
const leaveFeed = statement<{ id: string }>(
  `delete from reconciliation_feeds where reconciliation in
     (select reconciliation from reconciliation_plans where id = :id and people is not null)`,
)
const pauseFor = statement<Claimed & { readonly problem: string; readonly wait: number }>(
  (on) => `update reconciliation_plans set problem = :problem, attempt = attempt + 1, due = ${on.now} + :wait,
      updated = ${on.now}, ${released},
      state = case when state in ('comparing', 'applying') then 'paused' else state end
    where ${claimed}`,
)
const findOpenRows = statement<{ plan: string; limit: number }, ReadPlanRow>(
  (on) => `select ${planRowColumns} from reconciliation_rows r
   where r.plan = :plan and r.state = 'open' and (r.due is null or r.due <= ${on.now}) order by r.number limit :limit`,
)
const pendingRows = (condition: string): string =>
  `select r.run from reconciliation_plans p join reconciliation_rows r on r.plan = p.id and ${condition}
   where p.reconciliation in (:list) and p.id <> :plan and r.state in ('started', 'waiting')`
/** Each of the three by its own index. */
const findPending = new ListStatement<
  { plan: string; rowKey: string; sourceKey: string | null; targetKey: string | null },
  string,
  { run: string | null }
>(
  ['r.row_key = :rowKey', 'r.source_key = :sourceKey', 'r.target_key = :targetKey']
    .map(pendingRows)
    .join(' union all '),
)
const touchClaimed = statement<Claimed, { updated: number }>(
  (on) => `update reconciliation_plans set attempt = 0, updated = ${on.now},
      problem = case when state = 'applying' then null else problem end
    where ${claimed} and state in ('applying', 'applied', 'stopped', 'expired', 'failed') returning updated`,
)
/** Distinguishes locks on targets from other advisory locks. */
const targetLock = 61
const lockTarget = statement<{ target: string }, unknown>((on) =>
  on.name === 'postgres' ? `select pg_advisory_xact_lock(hashtextextended(:target, ${targetLock}))` : `select :target`,
)
const startRow = statement<{ plan: string; number: number; run: string; now: number }>(
  `update reconciliation_rows set state = 'started', run = :run, reason = null, attempt = 0, due = null, updated = :now
   where plan = :plan and number = :number and state = 'open'`,
)
const settleRow = statement<{ plan: string; number: number; state: RowState; reason: string | null; now: number }>(
  `update reconciliation_rows set state = :state, reason = :reason, updated = :now
   where plan = :plan and number = :number and state in ('open', 'started', 'waiting')`,
)
const deferRow = statement<
  { plan: string; number: number; reason: string | null; now: number; wait: number },
  { attempt: number }
>(
  `update reconciliation_rows set attempt = attempt + 1, due = :now + (attempt + 1) * cast(:wait as bigint),
     reason = :reason, updated = :now
   where plan = :plan and number = :number and state in ('open', 'started', 'waiting') returning attempt`,
)
const findChangedRows = statement<
  { plan: string; limit: number },
  ReadPlanRow & { readonly runState: RunState | null; readonly incident: string | null }
>(
  (on) => `select ${planRowColumns}, u.state as "runState", u.incident
   from reconciliation_rows r left join runs u on u.id = r.run
   where r.plan = :plan and r.state in ('started', 'waiting') and (r.due is null or r.due <= ${on.now})
     and (u.id is null or u.ended is not null or (u.state in ('waiting', 'incident')) <> (r.state = 'waiting'))
   order by r.number limit :limit`,
)
const endApplying = statement<Claimed & { readonly wait: number | null }>(
  (on) => `update reconciliation_plans set state = case when state = 'applying' then 'applied' else state end,
      ended = coalesce(ended, ${on.now}), due = ${on.now} + cast(:wait as bigint), updated = ${on.now}, ${released}
    where ${claimed} and state in ('applying', 'applied', 'stopped', 'expired', 'failed')`,
)
const findPlan = statement<{ id: string }, StoredPlan>(`select ${planColumns} from reconciliation_plans where id = :id`)
type ChangeValues = { readonly id: string; readonly problem: string | null } & ApprovalValues
const changes: Readonly<Record<PlanChange, Statement<ChangeValues, StoredPlan>>> = {
  approve: statement(
    (on) => `update reconciliation_plans set state = 'applying', approved = ${on.now}, approved_by = :approvedBy,
        approved_identity = :approvedIdentity, approved_reason = :approvedReason, due = ${on.now}, updated = ${on.now}
      where id = :id and state = 'planned' returning ${planColumns}`,
  ),
  pause: statement(
    (on) => `update reconciliation_plans set state = 'paused', problem = :problem, due = null, fence = fence + 1,
        updated = ${on.now}, ${released}
      where id = :id and state in ('requested', 'comparing', 'applying', 'paused') returning ${planColumns}`,
  ),
  resume: statement(
    (on) => `update reconciliation_plans set due = ${on.now}, problem = null, attempt = 0, updated = ${on.now},
        state = case when approved is not null then 'applying' when resume_at is null then 'requested' else 'comparing' end
      where id = :id and state = 'paused' returning ${planColumns}`,
  ),
  // Runs that have started continue, and a worker still settles their rows.
  stop: statement(
    (on) => `update reconciliation_plans set state = 'stopped', problem = :problem, fence = fence + 1,
        due = case when approved is null then null else ${on.now} end, ended = ${on.now}, updated = ${on.now}, ${released}
      where id = :id and state in ('requested', 'comparing', 'planned', 'applying', 'paused') returning ${planColumns}`,
  ),
}
const countRows = statement<{ plan: string }, { state: RowState; count: number }>(
  `select state, count(*) as count from reconciliation_rows where plan = :plan group by state`,
)
/** As the index has it. */
const agrees = 'missing + different + extra + ambiguous + unknown = 0'
/** Reads a few reports of each reconciliation by indexes, however many there are. */
const findDrift = statement<{ limit: number }, DriftRow>(
  `with recursive names (name) as (
     select min(reconciliation) from reconciliation_reports
     union all
     select (select min(n.reconciliation) from reconciliation_reports n where n.reconciliation > names.name)
     from names where names.name is not null)
   select ${columns(reportProperties, 'r')},
     (select min(f.at) from reconciliation_reports f where f.reconciliation = r.reconciliation and f.at > coalesce(
       (select max(a.at) from reconciliation_reports a where a.reconciliation = r.reconciliation and ${agrees}), 0))
       as "differsSince"
   from names join reconciliation_reports r on r.plan = (select m.plan from reconciliation_reports m
     where m.reconciliation = names.name order by m.at desc, m.plan desc limit 1)
   order by r.reconciliation limit :limit`,
)
const findReports = statement<{ reconciliation: string; limit: number }, ReportRow>(
  `select ${columns(reportProperties)} from reconciliation_reports where reconciliation = :reconciliation
   order by at desc, plan desc limit :limit`,
)
const outdated = `state = 'planned' and compared < :before or state = 'paused' and updated < :before`
/** See `fail`. */
const leaveFeeds = statement<{ before: number }>(
  `delete from reconciliation_feeds where reconciliation in
     (select reconciliation from reconciliation_plans where people is not null and (${outdated}))`,
)
const expire = statement<{ before: number }>(
  (on) => `update reconciliation_plans set state = 'expired', problem = 'Its differences are too old. Make a new plan.',
      due = case when approved is null then null else ${on.now} end, fence = fence + 1, ended = ${on.now}, updated = ${on.now}, ${released}
    where ${outdated}`,
)
/** Those that ended within two hours count for the limits of the next ones, and runs that wait are followed. */
const oldPlans = (now: string): string => `select id from
  (select id, ended, due, row_number() over (partition by reconciliation, people is null order by id desc) as place
   from reconciliation_plans) as numbered
  where due is null and (ended < :before or ended < ${now} - 7200000 and place > :kept)
    and not exists (select 1 from reconciliation_rows w join runs u on u.id = w.run
      where w.plan = numbered.id and w.state in ('started', 'waiting') and u.ended is null)`
const deleteOldRows = statement<{ before: number; kept: number }>(
  (on) => `delete from reconciliation_rows where (plan, number) in
     (select plan, number from reconciliation_rows where plan in (${oldPlans(on.now)}) limit ${deletedAtOnce})`,
)
const deleteOldPlans = statement<{ before: number; kept: number }>(
  (on) => `delete from reconciliation_plans where id in
     (select id from (${oldPlans(on.now)}) as old limit ${deletedAtOnce})`,
)
const deleteOldReports = statement<{ before: number }>(
  `delete from reconciliation_reports where plan in
     (select plan from reconciliation_reports where at < :before limit ${deletedAtOnce})`,
)
