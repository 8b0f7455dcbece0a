import { appendToChain } from '#audit/store/audit-chain.ts'
import { type DueValues, dueText, dueValues } from '#database/database-time.ts'
import type { DatabaseTransaction } from '#database/sql-client.ts'
import { type DialectText, RowInsert, statement } from '#database/statement.ts'
import { lookupKey, optionalText, storable } from '#database/text-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { When } from '#kernel/time.ts'
import { insertMails } from '#mail/mail-store.ts'
import { endAfterPassword, voidLinks } from '#requests/login/password-change-store.ts'
import type { SessionEnding } from '#requests/sessions/session-store.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { GrantRevocation, NewGrant } from '#sdk/workflow/grant.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { NewApproval } from '#workflows/record/approval.ts'
import {
  type Cancellation,
  hasEnded,
  type Incident,
  type RunClaim,
  type RunState,
  type StepRecord,
} from '#workflows/record/run.ts'
import type { NewTimer, TimerClaim } from '#workflows/timers/timer.ts'
import { deleteTimersOfRun, finishTimers, insertTimers } from '#workflows/timers/timer-store.ts'
import { closeApprovals, insertApproval } from './approval-store.ts'
import { insertGrants, revokeGrants } from './grant-store.ts'
import { answerKey, type IdempotentAnswer } from './idempotency-store.ts'
import { headInsert, headValues, type LockedRun, lockRun, makeReady, type StoredCancellation } from './run-row.ts'
import type { ReadyRuns } from './wake-up.ts'

/** Everything that is needed to continue a run. */
export interface StoredState {
  readonly data: JsonObject
  /** The secrets of it, encrypted; absent if there are none. Ended runs keep none. */
  readonly secret?: string | undefined
}

export interface NewRun extends StoredState {
  readonly head: RunHead
  /** What its caller changes, if the caller may repeat the change before the run is finished. */
  readonly resource?: string
  /** If absent, the run is ready and due at once. */
  readonly state?: FirstState
  /** A target has been changed already. */
  readonly touched?: boolean
}

/** The state in which a run is stored first. */
export type FirstState =
  | { readonly state: 'ready'; readonly due: When }
  /** It had to wait before it was stored. */
  | { readonly state: 'waiting' }
  /**
   * It is being executed within its call, under the claim with fence 1. When its lease expires, workers claim it like any
   * other run. With a worker, no other run of its subject is executed meanwhile, and CONFLICT if one is; without, it
   * delays none.
   */
  | { readonly state: 'running'; readonly leaseMillis: number; readonly worker?: string }
  /** It has ended within its call. */
  | { readonly state: 'completed' }
  | { readonly state: 'failed'; readonly incident: Incident }

/** Everything that can be committed together with a run's state, or without a run. */
export interface RunEffects {
  /** Of the run that is committed or started. */
  readonly steps?: readonly StepRecord[]
  readonly audit?: readonly AuditEntry[]
  readonly timers?: readonly NewTimer[]
  readonly mails?: readonly NewMail[]
  readonly grants?: readonly NewGrant[]
  /** Sessions that end with the step. */
  readonly endings?: readonly SessionEnding[]
  /** Other runs that start. */
  readonly starts?: readonly NewRun[]
  /** The timers that caused this commit. VERSION_MISMATCH when another worker has claimed one of them. */
  readonly doneTimers?: readonly TimerClaim[]
  /** CONFLICT when one of them is no longer active, or not due. */
  readonly revokes?: readonly GrantRevocation[]
  /** The response to the caller of a run that is not stored. */
  readonly answer?: IdempotentAnswer
  /** A run that ended within its call and is deleted. VERSION_MISMATCH when the claim is void. */
  readonly forgets?: RunClaim
}

/** The state of a run after a step. */
export type NextState =
  /** The claim continues with the next step. */
  | { readonly state: 'running'; readonly leaseMillis: number }
  /** To be claimed again: for the next step with `attempt` 0, for the same one with the number of attempts so far. */
  | { readonly state: 'ready'; readonly due: When; readonly attempt: number }
  | { readonly state: 'waiting'; readonly approval?: NewApproval }
  | { readonly state: 'incident' | 'failed'; readonly incident: Incident }
  | { readonly state: 'completed' | 'denied' | 'expired' | 'cancelled' }

/** The end of a step: all its consequences, committed together or not at all. */
export interface StepCommit extends StoredState {
  readonly run: RunClaim
  readonly next: NextState
  readonly touched: boolean
  readonly effects: RunEffects
}

export interface Intervention {
  readonly id: string
  /** The fence of the run as the administrator saw it; VERSION_MISMATCH when the run has changed since. */
  readonly fence: number
  readonly effects: RunEffects
}

export interface CancelRequest extends Intervention {
  readonly cancellation: Cancellation
  /** Only while no target was changed, and no step is running that may change one; CONFLICT otherwise. */
  readonly onlyUntouched: boolean
  /** `expired` if its deadline has passed. */
  readonly outcome: 'cancelled' | 'expired'
}

/** Stores a run and returns the time. Throws CONFLICT when the id exists, BAD_REQUEST for a login it cannot store. */
export async function insertRun(tx: DatabaseTransaction, run: NewRun): Promise<number> {
  return (await insert.first(tx, toNewRow(run)))?.created ?? 0
}

/** The same for several on PostgreSQL, numbered in their order. */
export async function insertRuns(tx: DatabaseTransaction, runs: readonly NewRun[]): Promise<number> {
  return (await insertTogether.first(tx, { runs: JSON.stringify(runs.map(toNewRow)) }))?.created ?? 0
}

function toNewRow({ head, resource, data, secret, state, touched }: NewRun): NewRow {
  const first: FirstState = state ?? { state: 'ready', due: { inMillis: 0 } }
  return {
    ...headValues(head),
    subjectKey: lookupKey(head.subject),
    requesterKey: lookupKey(head.requester),
    state: first.state,
    resource: optionalText(resource),
    data: JSON.stringify(data),
    secret: secret ?? null,
    ...dueValues(first.state === 'ready' ? first.due : { inMillis: 0 }),
    touched: touched === true ? 1 : 0,
    claims: first.state === 'running' ? 1 : 0,
    lease: first.state === 'running' ? first.leaseMillis : null,
    worker: first.state === 'running' ? (first.worker ?? null) : null,
    incident: first.state === 'failed' ? JSON.stringify(first.incident) : null,
    final: hasEnded(first.state) ? 1 : 0,
  }
}

/** Workers can claim it. */
export const isReady = ({ state }: NewRun): boolean => state === undefined || state.state === 'ready'

/**
 * Writes the effects of a commit and returns the runs that it makes ready; `run` is absent where no run is stored. Must
 * follow the lock of the run and the end of its timers. The head of the audit, which others may wait for, comes last.
 */
export async function writeEffects(
  tx: DatabaseTransaction,
  effects: RunEffects,
  now: number,
  run?: string,
): Promise<readonly string[]> {
  const ready: string[] = []
  if (run !== undefined && effects.steps !== undefined) {
    insertSteps.run(
      tx,
      effects.steps.map((step) => toStepRow(run, step)),
    )
  }
  if (effects.forgets !== undefined) await forgetRun(tx, effects.forgets)
  if (effects.revokes !== undefined) await revokeGrants(tx, effects.revokes)
  for (const started of effects.starts ?? []) {
    await insertRun(tx, started)
    if (isReady(started)) ready.push(started.head.id)
  }
  if (effects.timers !== undefined) await insertTimers(tx, effects.timers, now)
  if (effects.grants !== undefined) await insertGrants(tx, effects.grants, now)
  if (effects.mails !== undefined) await insertMails(tx, effects.mails, now)
  if (effects.answer !== undefined) await answerKey(tx, effects.answer)
  const audit = [...(effects.audit ?? [])]
  for (const ending of effects.endings ?? []) {
    await voidLinks(tx, ending.owners)
    audit.push(...(await endAfterPassword(tx, ending)).audit)
  }
  if (audit.length > 0) await appendToChain(tx, audit)
  return ready
}

async function forgetRun(tx: DatabaseTransaction, claim: RunClaim): Promise<void> {
  if ((await deleteClaimed.run(tx, claim)) === 0) throw voidClaim(claim)
}

const voidClaim = ({ id, fence }: RunClaim): GatewayError =>
  new GatewayError('VERSION_MISMATCH', `the claim ${fence} of run ${id} is void`)

/** Writes the run's new state, guarded by its fence, and then everything else. */
export async function commitStep(tx: DatabaseTransaction, step: StepCommit): Promise<ReadyRuns<RunState>> {
  const moved = (await move(tx, step, step.next)) ?? (await moveCancelled(tx, step))
  const { state, now, following } = moved
  const { next, run, effects } = step
  if (state === 'waiting' && next.state === 'waiting' && next.approval !== undefined) {
    await insertApproval(tx, run.id, next.approval, now)
  }
  await finishTimers(tx, effects.doneTimers ?? [])
  if (hasEnded(state) && !deletesTimers(tx, step)) deleteTimersOfRun(tx, run.id)
  const started = await writeEffects(tx, effects, now, run.id)
  const own = state === 'ready' && next.state === 'ready' && isDueNow(next.due) ? [run.id] : []
  return { value: state, ready: [...own, ...following, ...started] }
}

const plainStates: ReadonlySet<RunState> = new Set(['running', 'waiting', 'completed'])
const plainEffects: ReadonlySet<string> = new Set(['steps', 'audit', 'timers', 'grants', 'mails'])

/** Whether `commitTogether` can commit the step with others: it only moves its run and adds rows. */
export const isPlainStep = ({ next, effects }: StepCommit): boolean =>
  plainStates.has(next.state) &&
  Object.entries(effects).every(([name, value]) => value === undefined || plainEffects.has(name))

/**
 * Commits plain steps of different runs on PostgreSQL, with few statements. Undefined, and nothing may be committed, if a
 * claim is void or a run was cancelled.
 */
export async function commitTogether(
  tx: DatabaseTransaction,
  steps: readonly StepCommit[],
): Promise<ReadyRuns<readonly RunState[]> | undefined> {
  const moves = steps.map(({ run: { id, fence }, next, data, secret, touched }) => ({
    id,
    fence,
    state: next.state,
    data: JSON.stringify(data),
    secret: next.state === 'completed' ? null : (secret ?? null),
    touched: touched ? 1 : 0,
    lease: next.state === 'running' ? next.leaseMillis : null,
  }))
  const moved = await moveTogether.all(tx, { moves: JSON.stringify(moves) })
  const now = moved[0]?.updated ?? 0
  if (moved.length !== steps.length) return undefined
  insertSteps.run(
    tx,
    steps.flatMap(({ run: { id }, effects }) => (effects.steps ?? []).map((step) => toStepRow(id, step))),
  )
  for (const { run, next } of steps) {
    if (next.state === 'waiting' && next.approval !== undefined) await insertApproval(tx, run.id, next.approval, now)
  }
  const all = <T>(of: (effects: RunEffects) => readonly T[] | undefined): T[] =>
    steps.flatMap(({ effects }) => of(effects) ?? [])
  await writeEffects(
    tx,
    {
      timers: all(({ timers }) => timers),
      grants: all(({ grants }) => grants),
      mails: all(({ mails }) => mails),
      audit: all(({ audit }) => audit),
    },
    now,
  )
  return {
    value: steps.map(({ next }) => next.state),
    ready: moved.flatMap(({ following }) => following ?? []),
  }
}

const isDueNow = (due: When): boolean => 'inMillis' in due && due.inMillis <= 0

/** The statement that ends the run deletes its timers too, unless one of them must still be found. */
const deletesTimers = ({ dialect }: DatabaseTransaction, { effects }: StepCommit): boolean =>
  dialect === 'postgres' && effects.doneTimers === undefined

interface Moved {
  readonly state: RunState
  readonly now: number
  /** The run of the same subject that can be claimed now. */
  readonly following: readonly string[]
}

/** Undefined when the claim is void, or when the run was cancelled. */
async function move(
  tx: DatabaseTransaction,
  step: StepCommit,
  next: NextState,
  despiteCancel = false,
): Promise<Moved | undefined> {
  const { data, secret, touched } = step
  const { id, fence } = step.run
  const { state } = next
  const final = hasEnded(state)
  const common = {
    id,
    fence,
    data: JSON.stringify(data),
    secret: final ? null : (secret ?? null),
    touched: touched ? 1 : 0,
  }
  if (state === 'running') {
    const row = await keepClaim.first(tx, { ...common, lease: next.leaseMillis })
    return row && { state, now: row.updated, following: [] }
  }
  const row = await endClaim.first(tx, {
    ...common,
    state,
    attempt: state === 'ready' ? next.attempt : 0,
    incident: 'incident' in next ? JSON.stringify(next.incident) : null,
    final: final ? 1 : 0,
    deletesTimers: final && deletesTimers(tx, step) ? 1 : 0,
    despiteCancel: despiteCancel || final ? 1 : 0,
    ...dueValues(state === 'ready' ? next.due : { inMillis: 0 }),
  })
  if (row === undefined) return undefined
  // A run that is ready again is the first of its subject, so no other one can be claimed.
  const following = row.following === null || state === 'ready' ? [] : [row.following]
  return { state, now: row.updated, following }
}

/** A cancelled run ends here, with the effects of its last step. */
async function moveCancelled(tx: DatabaseTransaction, step: StepCommit): Promise<Moved> {
  const { id, fence } = step.run
  const run = await lockRun(tx, id)
  if (run !== undefined && run.state === 'running' && run.fence === fence && run.cancel !== null) {
    const { outcome } = JSON.parse(run.cancel) as StoredCancellation
    const moved = await move(tx, step, { state: outcome }, true)
    if (moved !== undefined) return moved
  }
  throw voidClaim(step.run)
}

/** From `waiting` to `ready`. */
export async function signalRun(
  tx: DatabaseTransaction,
  id: string,
  signal: JsonObject,
  effects: RunEffects,
): Promise<ReadyRuns<boolean>> {
  const run = await lockRun(tx, id)
  if (run === undefined || run.state !== 'waiting') return { value: false, ready: [] }
  await finishTimers(tx, effects.doneTimers ?? [])
  await endWait(tx, run)
  makeReady(tx, id, { signal })
  const started = await writeEffects(tx, effects, run.now, id)
  return { value: true, ready: [id, ...started] }
}

async function endWait(tx: DatabaseTransaction, { id, now }: LockedRun): Promise<void> {
  await closeApprovals(tx, id, now)
  deleteTimersOfRun(tx, id)
}

/** From `incident` to `ready`. */
export async function resumeRun(
  tx: DatabaseTransaction,
  intervention: Intervention,
  data: JsonObject | undefined,
): Promise<ReadyRuns<void>> {
  const { id, state, now } = await lockAsShown(tx, intervention)
  if (state !== 'incident') throw new GatewayError('CONFLICT', `the run ${id} is ${state}`)
  await finishTimers(tx, intervention.effects.doneTimers ?? [])
  makeReady(tx, id, data === undefined ? {} : { data })
  const started = await writeEffects(tx, intervention.effects, now, id)
  return { value: undefined, ready: [id, ...started] }
}

async function lockAsShown(tx: DatabaseTransaction, { id, fence }: Intervention): Promise<LockedRun> {
  const run = await lockRun(tx, id)
  if (run === undefined) throw new GatewayError('NOT_FOUND', `no run ${id}`)
  if (run.fence !== fence) {
    throw new GatewayError('VERSION_MISMATCH', `the run ${id} has fence ${run.fence}, not ${fence}`)
  }
  return run
}

export async function cancelRun(tx: DatabaseTransaction, request: CancelRequest): Promise<ReadyRuns<RunState>> {
  const { effects, onlyUntouched, outcome, cancellation } = request
  const run = await lockAsShown(tx, request)
  const { id, state, now } = run
  if (run.ended !== null) throw new GatewayError('CONFLICT', `the run ${id} is ${state}`)
  if (onlyUntouched && (run.touched !== 0 || state === 'running')) {
    throw new GatewayError('CONFLICT', `the run ${id} has changed a target`, {
      publicText: 'This can no longer be withdrawn.',
    })
  }
  await finishTimers(tx, effects.doneTimers ?? [])
  const cancel = JSON.stringify({ ...cancellation, outcome } satisfies StoredCancellation)
  if (state === 'running') {
    await requestEnd.run(tx, { id, cancel })
    return { value: state, ready: await writeEffects(tx, effects, now, id) }
  }
  const ended = await endUnclaimed.first(tx, { id, state: outcome, cancel })
  await endWait(tx, run)
  const started = await writeEffects(tx, effects, now, id)
  const following = ended === undefined || ended.following === null ? [] : [ended.following]
  return { value: outcome, ready: [...following, ...started] }
}

// States are in the text of the statements, since a partial index serves only a condition that the text contains.

/** The values of a head, and those below. */
interface NewRow extends DueValues {
  readonly state: FirstState['state']
  readonly subjectKey: string
  readonly requesterKey: string
  readonly resource: string | null
  readonly data: string
  readonly secret: string | null
  readonly touched: number
  /** Attempts and claims so far. */
  readonly claims: number
  readonly lease: number | null
  readonly worker: string | null
  readonly incident: string | null
  readonly final: number
}

const endedText = (on: DialectText): string => `case when cast(:final as bigint) = 1 then ${on.now} end`

const insertedColumns = `${headInsert.columns.join(', ')}, state, subject_key, requestor_key, resource, data, secret,
     attempt, fence, worker, lease_until, due, incident, touched, created, updated, ended`

const insertedValues = (on: DialectText): string =>
  `${headInsert.places.join(', ')}, :state, :subjectKey, :requesterKey, :resource, :data, :secret,
     :claims, :claims, :worker, coalesce(${on.now} + cast(:lease as bigint), 0), ${dueText(on)}, :incident, :touched,
     ${on.now}, ${on.now}, ${endedText(on)}`

const insert = statement<NewRow, { created: number }>(
  (on) => `insert into runs (${insertedColumns}) values (${insertedValues(on)}) returning created`,
)

const newNumbers = [...headInsert.times, 'dueAt', 'dueIn', 'touched', 'claims', 'lease', 'final']
const newTexts = [
  ...headInsert.texts,
  ...['state', 'subjectKey', 'requesterKey', 'resource', 'data', 'secret', 'incident', 'worker'],
]

/** The same values, read from a list of `NewRow`. */
const insertTogether = statement<{ runs: string }, { created: number }>(
  (on) => `insert into runs (${insertedColumns})
   select ${insertedValues(on).replaceAll(/:(\w+)/g, 'new."$1"')}
   from rows from (json_to_recordset(cast(:runs as json))
     as (${[...newTexts.map((name) => `"${name}" text`), ...newNumbers.map((name) => `"${name}" bigint`)].join(', ')}))
     with ordinality as new
   order by new.ordinality
   returning created`,
)

interface StepRow {
  readonly run: string
  readonly number: number
  readonly attempt: number
  readonly task: string
  readonly taskType: string
  readonly label: string | null
  readonly started: number
  readonly ended: number
  readonly outcome: string
  readonly error: string | null
}

export const stepColumns = [
  'number',
  'attempt',
  'task',
  'taskType',
  'label',
  'started',
  'ended',
  'outcome',
  'error',
] as const

export type StoredStepRow = Pick<StepRow, (typeof stepColumns)[number]> & { readonly seq: number }

const insertSteps = new RowInsert<StepRow>('steps', ['run', ...stepColumns])

const toStepRow = (run: string, step: StepRecord): StepRow => ({
  run,
  number: step.number,
  attempt: step.attempt,
  task: storable(step.task),
  taskType: storable(step.taskType),
  label: optionalText(step.label),
  started: step.started.getTime(),
  ended: step.ended.getTime(),
  outcome: storable(step.outcome),
  error: optionalText(step.error),
})

const keepClaim = statement<
  RunClaim & { data: string; secret: string | null; touched: number; lease: number },
  { updated: number }
>(
  (on) => `update runs set data = :data, signal = null, secret = :secret, attempt = 1, touched = :touched,
     lease_until = ${on.now} + :lease, updated = ${on.now}
   where id = :id and fence = :fence and state = 'running' and cancel is null
   returning updated`,
)

interface ClaimEnd extends RunClaim, DueValues {
  readonly state: RunState
  readonly data: string
  readonly secret: string | null
  readonly attempt: number
  readonly touched: number
  readonly incident: string | null
  readonly final: number
  /** 1 if the run's timers are deleted with it; only PostgreSQL reads it. */
  readonly deletesTimers: number
  /** 1 if a cancelled run can take this state. */
  readonly despiteCancel: number
}

/** The run of the same subject that is next. */
const following = `(select next.id from runs as next
     where next.subject_key = runs.subject_key and next.state = 'ready' and next.seq <> runs.seq
     order by next.seq limit 1) as following`

/** PostgreSQL also deletes the run's timers, which saves a round trip. */
const endClaim = statement<ClaimEnd, { updated: number; following: string | null }>(
  (on) => `${
    on.name === 'postgres'
      ? 'with ended_timers as (delete from timers where run = :id and cast(:deletesTimers as bigint) = 1)'
      : ''
  }
   update runs set state = :state, data = :data, signal = null, secret = :secret, attempt = :attempt, worker = null,
     lease_until = 0, due = ${dueText(on)}, incident = :incident, touched = :touched, updated = ${on.now},
     ended = ${endedText(on)}
   where id = :id and fence = :fence and state = 'running' and (cancel is null or cast(:despiteCancel as bigint) = 1)
   returning updated, ${following}`,
)

/** `keepClaim` and `endClaim` for many runs, each in another run than the others. */
const moveTogether = statement<{ moves: string }, { updated: number; following: string | null }>(
  (on) => `with moves as
     (select * from json_to_recordset(cast(:moves as json))
       as move(id text, fence bigint, state text, data text, secret text, touched bigint, lease bigint)),
   ended_timers as (delete from timers where run in (select id from moves where state = 'completed'))
   update runs set state = moves.state, data = moves.data, signal = null, secret = moves.secret,
     attempt = case when moves.state = 'running' then 1 else 0 end,
     worker = case when moves.state = 'running' then runs.worker end,
     lease_until = coalesce(${on.now} + moves.lease, 0), touched = moves.touched, updated = ${on.now},
     due = case when moves.state = 'running' then runs.due else ${on.now} end,
     incident = case when moves.state = 'running' then runs.incident end,
     ended = case when moves.state = 'completed' then ${on.now} end
   from moves
   where runs.id = moves.id and runs.fence = moves.fence and runs.state = 'running' and runs.cancel is null
   returning runs.updated, case when moves.state <> 'running' then
     (select next.id from runs as next
      where next.subject_key = runs.subject_key and next.state = 'ready' and next.seq <> runs.seq
      order by next.seq limit 1) end as following`,
)

const endUnclaimed = statement<{ id: string; state: RunState; cancel: string }, { following: string | null }>(
  (on) => `update runs set state = :state, fence = fence + 1, cancel = :cancel, signal = null, secret = null,
     updated = ${on.now}, ended = ${on.now}
   where id = :id returning ${following}`,
)

const requestEnd = statement<{ id: string; cancel: string }>(
  (on) => `update runs set cancel = :cancel, updated = ${on.now} where id = :id and state = 'running'`,
)

/** The run was executed within its call, so it delayed no other. */
const deleteClaimed = statement<RunClaim>(`delete from runs where id = :id and fence = :fence and state = 'running'`)
