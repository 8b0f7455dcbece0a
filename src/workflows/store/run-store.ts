import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import { readNow } from '#database/database-time.ts'
import type { DatabaseTransaction, SqlClient } from '#database/sql-client.ts'
import {
  columns,
  deletedAtOnce,
  deleteInParts,
  dynamic,
  ListStatement,
  statement,
  withoutNulls,
} from '#database/statement.ts'
import { isStorable, lookupKey } from '#database/text-keys.ts'
import { type Identity, identitiesOf, storedIdentity } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import type { NewApproval } from '#workflows/record/approval.ts'
import {
  type Run,
  type RunChange,
  type RunChangePage,
  type RunClaim,
  type RunPage,
  type RunQuery,
  type RunState,
  runStates,
  type StoredRun,
  type StoredStep,
} from '#workflows/record/run.ts'
import { finishTimers, insertTimers } from '#workflows/timers/timer-store.ts'
import { insertApproval } from './approval-store.ts'
import { CommitBatches } from './commit-batches.ts'
import { type IdempotentCall, type Reservation, reserveKey, reserveKeys } from './idempotency-store.ts'
import {
  type CancelRequest,
  cancelRun,
  commitStep,
  commitTogether,
  type Intervention,
  insertRun,
  insertRuns,
  isPlainStep,
  isReady,
  type NewRun,
  type RunEffects,
  resumeRun,
  type StepCommit,
  type StoredStepRow,
  signalRun,
  stepColumns,
  writeEffects,
} from './run-commit.ts'
import {
  type IdentityColumns,
  identityColumns,
  type RunRow,
  runColumns,
  type StoredRunRow,
  storedRunColumns,
  toIdentities,
  toRun,
  toStoredRun,
} from './run-row.ts'
import { type ReadyRuns, transactionWithWakeUp, type WakeUp } from './wake-up.ts'

const claimTries = 4
const maxPage = 500
/** Runs whose data is read at once; it may be large. */
const wholeAtOnce = 50
/** Rows of a list of changes; a run has one for each of its approvers. */
const maxChangeRows = 10_000

interface WorkflowDefinition {
  readonly hash: string
  readonly name: string
  readonly body: JsonValue
}

/** What is committed together with a new run. */
interface StartOptions {
  readonly effects?: RunEffects
  readonly approval?: NewApproval
  readonly idempotency?: IdempotentCall | undefined
}

interface Start extends StartOptions {
  readonly run: NewRun
}

/** `other-body` and `repeated` occur only for calls with a key; nothing was started then. */
export type StartOutcome = { readonly kind: 'started' } | Exclude<Reservation, { kind: 'reserved' }>

interface EndedQuery {
  readonly since: Date
  readonly until: Date
  /** The `next` of the previous page. */
  readonly after?: string
  /** At most 500. */
  readonly limit: number
}

/**
 * The condition on rows of `runs`: a change that failed part way, and waits for its next attempt, is tried again now or needs
 * an administrator. The first attempt has not failed yet: it has attempt and fence 1.
 */
export const isUnfinished = `touched = 1 and (state = 'incident'
  or state = 'ready' and (resource is not null or attempt > 0)
  or state = 'running' and (resource is not null and fence > 1 or attempt > 1))`

export interface RunFigures {
  readonly ready: number
  readonly running: number
  readonly waiting: number
  readonly incident: number
  /** Those of them that failed part way. */
  readonly unfinished: number
  /** For how long the oldest due run has been due. */
  readonly oldestReadyMillis?: number
  readonly oldestIncidentMillis?: number
}

interface OpenRuns {
  readonly name: string
  readonly state: RunState
  readonly count: number
}

/**
 * Runs of workflows that outlive the call. The only place where a run's state and all effects of a step are
 * committed together. Times are those of the database.
 */
export class RunStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined
  /** On SQLite all transactions share commits. */
  readonly #steps: CommitBatches<StepCommit, RunState> | undefined
  readonly #starts: CommitBatches<Start, StartOutcome> | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
    if (client.dialect !== 'postgres') return
    this.#steps = new CommitBatches(client, wake, { atOnce: 2, together: commitTogether, alone: commitStep })
    this.#starts = new CommitBatches(client, wake, { atOnce: 1, together: startTogether, alone: startRun })
  }

  /** Known definitions stay unchanged, and count as used. */
  async saveDefinitions(definitions: readonly WorkflowDefinition[]): Promise<void> {
    await this.#client.transaction(async (tx) => {
      for (const { hash, name, body } of definitions) {
        await saveDefinition.run(tx, { hash, name, body: JSON.stringify(body) })
      }
    })
  }

  async definition(hash: string): Promise<WorkflowDefinition | undefined> {
    if (!isStorable(hash)) return undefined
    const row = await findDefinition.first(this.#client, { hash })
    return row && { hash, name: row.name, body: JSON.parse(row.body) as JsonValue }
  }

  /** Durable when it settles. Throws CONFLICT when the id exists. */
  start(run: NewRun, options: StartOptions = {}): Promise<StartOutcome> {
    const start = { run, ...options }
    if (this.#starts !== undefined && isPlainStart(start)) return this.#starts.commit(start)
    return this.#transaction((tx) => startRun(tx, start))
  }

  /** Commits the effects of a run that is not stored, a timer or a job. Steps in them are ignored. */
  async record(effects: RunEffects): Promise<void> {
    await this.#transaction(async (tx) => {
      await finishTimers(tx, effects.doneTimers ?? [])
      const needsTime = [effects.timers, effects.mails, effects.grants].some((each) => each !== undefined)
      const ready = await writeEffects(tx, effects, needsTime ? await readNow(tx) : 0)
      return { value: undefined, ready }
    })
  }

  /**
   * Claims runs that are ready and due, and those whose lease has expired. Of one subject only one run is claimed at a
   * time, and a ready one only when no earlier one is ready, due or not. Waiting runs and incidents delay no others. A crash of
   * the database must not undo a claim: its fence would be given to another worker while the first one goes on.
   */
  async claim(worker: string, limit: number, leaseMillis: number): Promise<readonly StoredRun[]> {
    for (let tries = 1; ; tries++) {
      try {
        const rows = await this.#client.transaction((tx) => claim.all(tx, { worker, limit, lease: leaseMillis }))
        return rows.sort((a, b) => a.due - b.due || a.seq - b.seq).map(toStoredRun)
      } catch (error) {
        // Another worker claimed a run of the same subject: the index of running ones allows one. Look again.
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        if (tries === claimTries) return []
      }
    }
  }

  /** False when the claim is void, or the run was cancelled. */
  async renew({ id, fence }: RunClaim, leaseMillis: number): Promise<boolean> {
    return (await this.#client.transaction((tx) => renew.run(tx, { id, fence, lease: leaseMillis }), 'soon')) > 0
  }

  /** Gives back a run without any change. False when the claim is void. */
  release({ id, fence }: RunClaim): Promise<boolean> {
    return this.#transaction(async (tx) => {
      const rows = await release.all(tx, { id, fence })
      return { value: rows.length > 0, ready: rows.map((row) => row.id) }
    })
  }

  /** Frees the claims of a process that died, where the database has one process only; returns how many. */
  async recover(): Promise<number> {
    if (this.#client.dialect !== 'sqlite') return 0
    return await this.#transaction(async (tx) => {
      const rows = await expireLeases.all(tx, {})
      return { value: rows.length, ready: rows.map((row) => row.id) }
    })
  }

  /**
   * Returns the new state of the run: `cancelled` or `expired` when it was ended meanwhile, and then no approval was
   * opened. Throws VERSION_MISMATCH, and commits nothing, when the claim is void.
   */
  commit(step: StepCommit): Promise<RunState> {
    if (this.#steps !== undefined && isPlainStep(step)) return this.#steps.commit(step)
    return this.#transaction((tx) => commitStep(tx, step))
  }

  /** From `waiting` to `ready`, with the result of the wait. False, and nothing happens, when the run does not wait. */
  signal(run: string, signal: JsonObject, effects: RunEffects): Promise<boolean> {
    return this.#transaction((tx) => signalRun(tx, run, signal, effects))
  }

  /**
   * From `incident` to `ready`: unchanged, to try again, or with other data, to continue after the failed step.
   * Throws NOT_FOUND, CONFLICT if it is not an incident, VERSION_MISMATCH.
   */
  resume(intervention: Intervention, data?: JsonObject): Promise<void> {
    return this.#transaction((tx) => resumeRun(tx, intervention, data))
  }

  /**
   * Ends a run, with its approvals and timers, before its next step. A running one stays `running` until its commit, and
   * ends with that. Throws NOT_FOUND, CONFLICT when it has ended, VERSION_MISMATCH.
   */
  cancel(request: CancelRequest): Promise<RunState> {
    return this.#transaction((tx) => cancelRun(tx, request))
  }

  #transaction<T>(work: (tx: DatabaseTransaction) => Promise<ReadyRuns<T>>): Promise<T> {
    return transactionWithWakeUp(this.#client, this.#wake, work)
  }

  async get(id: string): Promise<StoredRun | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findById.first(this.#client, { id })
    return row && toStoredRun(row)
  }

  /** Those of the runs that are stored, in any order. */
  async several(ids: readonly string[]): Promise<readonly Run[]> {
    return (await findSeveral.all(this.#client, {}, [...new Set(ids)].filter(isStorable))).map(toRun)
  }

  /** The run of the same subject that workers execute before this one, if this one is ready. */
  async ahead(id: string): Promise<Run | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findAhead.first(this.#client, { id })
    return row && toRun(row)
  }

  /** The time of the database, where changes are to be read from. */
  async now(): Promise<Date> {
    return new Date(await readNow(this.#client))
  }

  /** The runs that changed at that time or later, at most `limit`. */
  async changes(since: Date, limit: number): Promise<RunChangePage> {
    const most = Math.min(limit, maxPage)
    const rows = await listChanges.all(this.#client, { since: since.getTime(), limit: most })
    const byRun = Map.groupBy(rows, ({ id }) => id)
    const changes = Array.from(byRun, ([id, [run, ...others]]): RunChange => {
      if (run === undefined) throw new Error('a group has rows')
      const approvers = [run, ...others].flatMap(({ approver }) =>
        approver === null ? [] : [storedIdentity(approver)],
      )
      const users = Object.values<Identity | undefined>({ ...toIdentities(run) }).filter((one) => one !== undefined)
      return { id, state: run.state, updated: new Date(run.updated), users, approvers }
    })
    return { changes, isComplete: changes.length < most && rows.length < maxChangeRows }
  }

  /** With all that a claim returns, encrypted secrets included, but without a claim. */
  async getWhole(id: string): Promise<StoredRun | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findWhole.first(this.#client, { id })
    return row && toStoredRun(row)
  }

  /** Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  async list(query: RunQuery): Promise<RunPage> {
    const { name, subject, requester, target, after } = query
    const limit = Math.max(1, Math.min(Math.trunc(query.limit) || 1, maxPage))
    if (after !== undefined && !/^\d{1,15}$/.test(after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of runs: ${after}`)
    }
    if ([name, subject, requester, target].some((text) => text !== undefined && !isStorable(text))) return { runs: [] }
    if (query.states?.length === 0) return { runs: [] }
    const { dialect } = this.#client
    const rows = await this.#client.query(dynamic<RunRow>(dialect, listText(query, limit + 1, dialect)))
    const last = rows[limit - 1]
    const runs = rows.slice(0, limit).map(toRun)
    return rows.length > limit && last !== undefined ? { runs, next: String(last.seq) } : { runs }
  }

  /** Runs that ended in that time, the latest first. Throws BAD_REQUEST for an `after` that is not a `next`. */
  async listEnded({ since, until, after, limit }: EndedQuery): Promise<RunPage> {
    const [, ended, seq] = /^(\d{1,15})-(\d{1,15})$/.exec(after ?? `${until.getTime()}-0`) ?? []
    if (ended === undefined) throw new GatewayError('BAD_REQUEST', `not a page of ended runs: ${after}`)
    const most = Math.max(1, Math.min(Math.trunc(limit) || 1, maxPage))
    const rows = await listEnded.all(this.#client, {
      since: since.getTime(),
      ended: Math.min(until.getTime(), Number(ended)),
      seq: Number(seq),
      limit: most + 1,
    })
    const last = rows[most - 1]
    const runs = rows.slice(0, most).map(toRun)
    return rows.length > most && last !== undefined ? { runs, next: `${last.ended}-${last.seq}` } : { runs }
  }

  /** In order, at most 500 after the one with that id. */
  async steps(run: string, after = 0): Promise<readonly StoredStep[]> {
    if (!isStorable(run)) return []
    return (await listSteps.all(this.#client, { run, after })).map(toStep)
  }

  /** The parameters of requests that are texts, without secrets, by run. */
  async parametersOf(runs: readonly string[]): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
    const { dialect } = this.#client
    const found = new Map<string, ReadonlyMap<string, string>>()
    const ids = runs.filter(isStorable)
    for (let start = 0; start < ids.length; start += wholeAtOnce) {
      const some = ids.slice(start, start + wholeAtOnce)
      // Read here, since PostgreSQL can't read JSON with every character that a text may have.
      const text = sql`select id, data from runs where id in (${join(some)})`
      for (const { id, data } of await this.#client.query(dynamic<{ id: string; data: string }>(dialect, text))) {
        const { request = [] } = JSON.parse(data) as { readonly request?: readonly (readonly [string, JsonValue])[] }
        found.set(id, new Map(request.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []))))
      }
    }
    return found
  }

  /** Whether a run of the subject is ready, due or not. */
  async hasReady(subject: string): Promise<boolean> {
    if (!isStorable(subject)) return false
    return (await findReady.first(this.#client, { subjectKey: lookupKey(subject) })) !== undefined
  }

  /**
   * Runs that come before a change of the resource or of one of the subjects, earliest first, at most 20: those that are ready or
   * being executed, and unfinished changes that need an administrator.
   */
  async unfinished(subjects: readonly string[], resource: string): Promise<readonly Run[]> {
    const [subjectKey, otherKey = subjectKey] = subjects.filter(isStorable).map(lookupKey)
    if (!isStorable(resource)) return []
    const keys = { subjectKey: subjectKey ?? '', otherKey: otherKey ?? '' }
    return (await findUnfinished.all(this.#client, { ...keys, resource })).map(toRun)
  }

  /** Whether any change of a resource is unfinished or being executed. */
  async hasUnfinished(): Promise<boolean> {
    return (await findAnyUnfinished.first(this.#client, {})) !== undefined
  }

  /** Whether a run of the resource has not ended, also one that waits. */
  async hasOpen(resource: string): Promise<boolean> {
    return isStorable(resource) && (await findOpen.first(this.#client, { resource })) !== undefined
  }

  /** Whether a run of the requester for the resource completed in that time; the next call no longer finds it. */
  async takeFinished(resource: string, requester: string, withinMillis: number): Promise<boolean> {
    if (!isStorable(resource) || !isStorable(requester)) return false
    const keys = { resource, requesterKey: lookupKey(requester), within: withinMillis }
    return (await this.#client.transaction((tx) => takeFinished.run(tx, keys))) > 0
  }

  /** As `takeFinished`, and changes nothing. */
  async hasFinished(resource: string, requester: string, withinMillis: number): Promise<boolean> {
    if (!isStorable(resource) || !isStorable(requester)) return false
    const keys = { resource, requesterKey: lookupKey(requester), within: withinMillis }
    return (await findFinished.first(this.#client, keys)) !== undefined
  }

  /** Makes a ready run due at once. Nothing happens if it has changed meanwhile. */
  async hurry({ id, fence }: RunClaim): Promise<void> {
    await this.#transaction(async (tx) => {
      const rows = await hurry.all(tx, { id, fence })
      return { value: undefined, ready: rows.map((row) => row.id) }
    })
  }

  async figures(): Promise<RunFigures> {
    const rows = await countByState.all(this.#client, {})
    const of = (state: RunState) => rows.find((row) => row.state === state)
    const count = (state: RunState): number => of(state)?.count ?? 0
    const [ready, incident] = [of('ready')?.age, of('incident')?.age]
    return {
      ready: count('ready'),
      running: count('running'),
      waiting: count('waiting'),
      incident: count('incident'),
      unfinished: rows.reduce((sum, { unfinished }) => sum + unfinished, 0),
      ...(ready == null || ready < 0 ? {} : { oldestReadyMillis: ready }),
      ...(incident == null ? {} : { oldestIncidentMillis: incident }),
    }
  }

  /** How many open runs these workflows have, by state. */
  async openByWorkflow(names: readonly string[]): Promise<readonly OpenRuns[]> {
    return await countOpenByName.all(this.#client, {}, names.filter(isStorable))
  }

  /** How many incidents there are at each target. */
  async incidentsByTarget(): Promise<ReadonlyMap<string, number>> {
    const rows = await countIncidents.all(this.#client, {})
    return new Map(rows.map(({ target, count }) => [target, count]))
  }

  /** Deletes runs that ended before then, with their steps and approvals; returns how many. */
  prune(before: Date): Promise<number> {
    return deleteInParts(this.#client, deleteEnded, { before: before.getTime() })
  }

  /** Deletes definitions that were not used since then and that no open run is pinned to; returns how many. */
  async pruneDefinitions(before: Date): Promise<number> {
    return await this.#client.transaction((tx) => deleteDefinitions.run(tx, { before: before.getTime() }))
  }
}

async function startRun(
  tx: DatabaseTransaction,
  { run, effects = {}, approval, idempotency }: Start,
): Promise<ReadyRuns<StartOutcome>> {
  if (idempotency !== undefined) {
    const reservation = await reserveKey(tx, idempotency, null)
    if (reservation.kind !== 'reserved') return { value: reservation, ready: [] }
  }
  const now = await insertRun(tx, run)
  if (approval !== undefined) await insertApproval(tx, run.head.id, approval, now)
  await finishTimers(tx, effects.doneTimers ?? [])
  const others = await writeEffects(tx, effects, now, run.head.id)
  return { value: { kind: 'started' }, ready: [...readyRuns([run]), ...others] }
}

const readyRuns = (runs: readonly NewRun[]): readonly string[] => runs.filter(isReady).map(({ head: { id } }) => id)

/** Whether `startTogether` can store the run with others: its only effects are timers. */
const isPlainStart = ({ effects = {}, approval }: Start): boolean =>
  approval === undefined && Object.entries(effects).every(([name, value]) => value === undefined || name === 'timers')

async function startTogether(
  tx: DatabaseTransaction,
  starts: readonly Start[],
): Promise<ReadyRuns<readonly StartOutcome[]> | undefined> {
  const calls = starts.flatMap(({ idempotency }) => idempotency ?? [])
  if (!(await reserveKeys(tx, calls))) return undefined
  const runs = starts.map(({ run }) => run)
  const now = await insertRuns(tx, runs)
  const timers = starts.flatMap(({ effects }) => effects?.timers ?? [])
  await insertTimers(tx, timers, now)
  return { value: starts.map(() => ({ kind: 'started' })), ready: readyRuns(runs) }
}

const toStep = ({ seq, started, ended, ...row }: StoredStepRow): StoredStep => ({
  id: seq,
  ...withoutNulls(row),
  started: new Date(started),
  ended: new Date(ended),
})

// States are in the text of the statements, since a partial index serves only a condition that the text contains.

/**
 * Of a subject only the first ready run, and none while a worker executes one. A run with an expired lease is the running
 * one, so it comes first; but a run that was executed within its call may not be the only running one.
 */
const claim = statement<{ worker: string; lease: number; limit: number }, StoredRunRow>(
  (on) => `with lost as
     (select lost.seq from runs as lost
      where lost.state = 'running' and lost.lease_until <= ${on.now}
        and not exists (select other.seq from runs as other
          where other.subject_key = lost.subject_key and other.state = 'running' and other.worker is not null
            and other.seq <> lost.seq)
      order by lost.lease_until limit :limit ${on.forUpdateSkipLocked}),
   fresh as
     (select run.seq from runs as run
      where run.state = 'ready' and run.due <= ${on.now}
        and not exists (select earlier.seq from runs as earlier
          where earlier.subject_key = run.subject_key and earlier.state = 'ready' and earlier.seq < run.seq)
        and not exists (select other.seq from runs as other
          where other.subject_key = run.subject_key and other.state = 'running' and other.worker is not null)
      order by run.due, run.seq limit :limit ${on.forUpdateSkipLocked})
   update runs set state = 'running', fence = fence + 1, attempt = attempt + 1, worker = :worker,
     lease_until = ${on.now} + :lease, updated = ${on.now}
   where seq in (select seq from (select seq from lost union all select seq from fresh) as due limit :limit)
   returning ${storedRunColumns}`,
)
const renew = statement<RunClaim & { lease: number }>(
  (on) => `update runs set lease_until = ${on.now} + :lease
   where id = :id and fence = :fence and state = 'running' and cancel is null`,
)
const release = statement<RunClaim, { id: string }>(
  (on) => `update runs set state = 'ready', attempt = attempt - 1, worker = null, lease_until = 0, updated = ${on.now}
   where id = :id and fence = :fence and state = 'running' returning id`,
)
const expireLeases = statement<object, { id: string }>(
  `update runs set lease_until = 0 where state = 'running' returning id`,
)

const findById = statement<{ id: string }, StoredRunRow>(`select ${runColumns}, data from runs where id = :id`)
const findSeveral = new ListStatement<object, string, RunRow>(`select ${runColumns} from runs where id in (:list)`)
const findWhole = statement<{ id: string }, StoredRunRow>(`select ${storedRunColumns} from runs where id = :id`)
interface ChangeRow extends IdentityColumns {
  readonly id: string
  readonly state: RunState
  readonly updated: number
  readonly approver: string | null
}

/** A row for each approver of a run, and at least one for each run. */
const listChanges = statement<{ since: number; limit: number }, ChangeRow>(
  `select run.id, run.state, run.updated, run."requestorIdentity", run."callerIdentity", run."subjectIdentity",
     who.approver_key as approver
   from (select id, state, updated, seq, ${columns(identityColumns)}
     from runs where updated >= :since order by updated, seq limit :limit) as run
   left join approvals on approvals.run = run.id
   left join approval_approvers as who on who.approval = approvals.id
   order by run.updated, run.seq limit ${maxChangeRows}`,
)

/** Workers execute the running one and earlier ready ones first, as `claim` says. */
const findAhead = statement<{ id: string }, RunRow>(
  `select ${runColumns} from runs where seq =
     (select min(first.seq) from runs as run join runs as first on first.subject_key = run.subject_key
      where run.id = :id and run.state = 'ready' and first.seq <> run.seq
        and (first.state = 'running' and first.worker is not null or first.state = 'ready' and first.seq < run.seq))`,
)
const findReady = statement<{ subjectKey: string }, { seq: number }>(
  `select seq from runs where subject_key = :subjectKey and state = 'ready' limit 1`,
)
const ofSubjects = 'subject_key in (:subjectKey, :otherKey)'
const findUnfinished = statement<{ subjectKey: string; otherKey: string; resource: string }, RunRow>(
  `select ${runColumns} from runs where seq in (
     select seq from runs where ${ofSubjects} and state = 'ready'
     union select seq from runs where ${ofSubjects} and state = 'running' and worker is not null
     union select seq from runs where ${ofSubjects} and resource is not null and ended is null and state <> 'waiting'
     union select seq from runs where resource = :resource and resource is not null and ended is null and state <> 'waiting')
   order by seq limit 20`,
)
const findAnyUnfinished = statement<object, { seq: number }>(
  `select seq from runs where resource is not null and ended is null and state <> 'waiting' limit 1`,
)
const findOpen = statement<{ resource: string }, { seq: number }>(
  `select seq from runs where resource = :resource and resource is not null and ended is null limit 1`,
)
interface FinishedKeys {
  readonly resource: string
  readonly requesterKey: string
  readonly within: number
}
const areFinished = (now: string): string =>
  `requestor_key = :requesterKey and resource = :resource and state = 'completed' and ended > ${now} - cast(:within as bigint)`
const takeFinished = statement<FinishedKeys>((on) => `update runs set resource = null where ${areFinished(on.now)}`)
const findFinished = statement<FinishedKeys, { id: string }>(
  (on) => `select id from runs where ${areFinished(on.now)} limit 1`,
)
const hurry = statement<RunClaim, { id: string }>(
  (on) => `update runs set due = ${on.now}, updated = ${on.now}
   where id = :id and fence = :fence and state = 'ready' returning id`,
)
/** Before the run that ended then and has that number. */
const listEnded = statement<{ since: number; ended: number; seq: number; limit: number }, RunRow>(
  `select ${runColumns} from runs
   where ended is not null and ended >= :since and ended <= :ended and (ended < :ended or seq < :seq)
   order by ended desc, seq desc limit :limit`,
)
const listSteps = statement<{ run: string; after: number }, StoredStepRow>(
  `select seq, ${columns(stepColumns)} from steps where run = :run and seq > :after order by seq limit ${maxPage}`,
)

/** Runs are numbered in the order of their creation, except for those that began within this time of each other. */
const disorderMillis = 3_600_000

/**
 * Latest first. Each state is a range of an index in the order of the page, so the cost of a page doesn't grow with the
 * number of runs. A period is turned into a range of numbers, which every index has.
 */
function listText(query: RunQuery, limit: number, dialect: SqlDialect): Sql {
  const { name, subject, requester, requestedBy, about, from, until, changedSince, target, unfinished, after } = query
  const possible =
    target !== undefined
      ? (['incident'] as const)
      : unfinished
        ? (['ready', 'running', 'incident'] as const)
        : undefined
  const states = query.states ?? possible ?? (name === undefined ? undefined : runStates)
  const targetOf =
    dialect === 'sqlite' ? sql`json_extract(incident, '$.target')` : sql`cast(incident as json) ->> 'target'`
  const conditions = [
    name === undefined ? undefined : sql`name = ${name}`,
    subject === undefined ? undefined : sql`subject_key = ${lookupKey(subject)}`,
    requester === undefined ? undefined : sql`requestor_key = ${lookupKey(requester)}`,
    requestedBy && sql`requestor_identity in (${join(identitiesOf(requestedBy))})`,
    about && sql`subject_identity in (${join(identitiesOf(about))})`,
    target === undefined ? undefined : sql`incident is not null and ${targetOf} = ${target}`,
    from &&
      sql`created >= ${from.getTime()} and seq > coalesce((select seq from runs
        where created < ${from.getTime() - disorderMillis} order by created desc limit 1), 0)`,
    until &&
      sql`created < ${until.getTime()} and seq < coalesce((select seq from runs
        where created >= ${until.getTime() + disorderMillis} order by created limit 1), ${Number.MAX_SAFE_INTEGER})`,
    unfinished === undefined ? undefined : sql`${raw(unfinished ? isUnfinished : `not (${isUnfinished})`)}`,
    changedSince && sql`updated >= ${changedSince.getTime()}`,
    after === undefined ? undefined : sql`seq < ${Number(after)}`,
  ].filter((condition) => condition !== undefined)
  const select = (more: readonly Sql[]): Sql => {
    const all = [...more, ...conditions]
    const where = all.length === 0 ? empty : sql`where ${join(all, ' and ')}`
    return sql`select ${raw(runColumns)} from runs ${where} order by seq desc limit ${limit}`
  }
  if (states === undefined) return select([])
  const ofStates = states.map((state, i) => sql`select * from (${select([sql`state = ${state}`])}) as ${raw(`of${i}`)}`)
  return sql`${join(ofStates, ' union all ')} order by seq desc limit ${limit}`
}

const open = `('ready', 'running', 'waiting', 'incident')`
/** How many runs are open, and for how long the first one has been due, or an incident. */
const countByState = statement<object, { state: RunState; count: number; unfinished: number; age: number | null }>(
  (on) => `select state, count(*) as count, sum(case when ${isUnfinished} then 1 else 0 end) as unfinished,
     ${on.now} - min(case when state = 'ready' then due else updated end) as age
   from runs where state in ${open} group by state`,
)
const countOpenByName = new ListStatement<object, string, OpenRuns>(
  `select name, state, count(*) as count from runs where name in (:list) and state in ${open} group by name, state`,
)
const countIncidents = statement<object, { target: string; count: number }>((on) => {
  const target = on.name === 'sqlite' ? `json_extract(incident, '$.target')` : `cast(incident as json) ->> 'target'`
  return `select ${target} as target, count(*) as count from runs
   where state = 'incident' and ${target} is not null group by ${target}`
})
/** Deletes their steps and approvals too. */
const deleteEnded = statement<{ before: number }>(
  `delete from runs where seq in
     (select seq from runs where ended is not null and ended < :before limit ${deletedAtOnce})`,
)

const saveDefinition = statement<{ hash: string; name: string; body: string }>(
  (on) => `insert into definitions (hash, name, body, created) values (:hash, :name, :body, ${on.now})
   on conflict (hash) do update set created = ${on.now}`,
)
const findDefinition = statement<{ hash: string }, { name: string; body: string }>(
  `select name, body from definitions where hash = :hash`,
)
/** The data of a run names the definitions it is pinned to: pairs of name and hash. */
const deleteDefinitions = statement<{ before: number }>((on) => {
  const pinned =
    on.name === 'sqlite'
      ? `select json_extract(pin.value, '$[1]') from runs, json_each(runs.data, '$.pins') as pin`
      : `select pin.value ->> 1 from runs, jsonb_array_elements(cast(data as jsonb) -> 'pins') as pin(value)`
  return `delete from definitions where created < :before
     and hash not in (select definition from runs where state in ${open})
     and hash not in (${pinned} where state in ${open})`
})
