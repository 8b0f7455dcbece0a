import sql, { empty, join, raw } from 'sql-template-tag'
import type { NewApproval } from '#domain/approval.ts'
import type { ClaimedRun, RunClaim, RunPage, RunQuery, RunState, RunWithData, StoredStep } from '#domain/run.ts'
import { identitiesOf } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { insertApproval } from '#storage/approval-store.ts'
import { readNow } from '#storage/client/database-time.ts'
import type { SqlClient, SqlTransaction } from '#storage/client/sql-client.ts'
import { columns, deletedAtOnce, deleteInParts, dynamic, statement, withoutNulls } from '#storage/client/statement.ts'
import { isStorable, lookupKey } from '#storage/client/text-keys.ts'
import { type IdempotentCall, type Reservation, reserveKey } from '#storage/idempotency-store.ts'
import {
  type CancelRequest,
  cancelRun,
  commitStep,
  type Intervention,
  insertRun,
  isReady,
  type NewRun,
  type RunEffects,
  resumeRun,
  type StepCommit,
  type StoredStepRow,
  signalRun,
  stepColumns,
  writeEffects,
} from '#storage/runs/run-commit.ts'
import {
  type ClaimedRunRow,
  claimedRunColumns,
  type RunDataRow,
  type RunRow,
  runColumns,
  toClaimedRun,
  toRun,
  toRunWithData,
} from '#storage/runs/run-row.ts'
import { type ReadyRuns, transactionWithWakeUp, type WakeUp } from '#storage/runs/wake-up.ts'
import { finishTimers } from '#storage/timer-store.ts'

const claimTries = 4
const maxPage = 500

export interface WorkflowDefinition {
  readonly hash: string
  readonly name: string
  readonly body: JsonValue
}

/** What is committed together with a new run. */
export interface StartOptions {
  readonly effects?: RunEffects
  readonly approval?: NewApproval
  readonly idempotency?: IdempotentCall
}

/** `other-body` and `repeated` occur only for calls with a key; nothing was started then. */
export type StartOutcome = { readonly kind: 'started' } | Exclude<Reservation, { kind: 'reserved' }>

export interface RunFigures {
  readonly ready: number
  readonly running: number
  readonly waiting: number
  readonly incident: number
  /** For how long the oldest due run has been due. */
  readonly oldestReadyMillis?: number
  readonly oldestIncidentMillis?: number
}

/**
 * Runs of workflows that outlive the call. The only place where a run's state and all effects of a step are
 * committed together. Times are those of the database.
 */
export class RunStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
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
  start(run: NewRun, { effects = {}, approval, idempotency }: StartOptions = {}): Promise<StartOutcome> {
    return this.#transaction(async (tx): Promise<ReadyRuns<StartOutcome>> => {
      if (idempotency !== undefined) {
        const reservation = await reserveKey(tx, idempotency, null)
        if (reservation.kind !== 'reserved') return { value: reservation, ready: [] }
      }
      const now = await insertRun(tx, run)
      if (approval !== undefined) await insertApproval(tx, run.id, approval, now)
      await finishTimers(tx, effects.doneTimers ?? [])
      const others = await writeEffects(tx, effects, now, run.id)
      const own = isReady(run) ? [run.id] : []
      return { value: { kind: 'started' }, ready: [...own, ...others] }
    })
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
   * time, and a ready one only when no earlier one is ready, due or not. Waiting runs and incidents delay no others.
   */
  async claim(worker: string, limit: number, leaseMillis: number): Promise<readonly ClaimedRun[]> {
    for (let tries = 1; ; tries++) {
      try {
        const rows = await this.#client.transaction(
          (tx) => claim.all(tx, { worker, limit, lease: leaseMillis }),
          'soon',
        )
        return rows.sort((a, b) => a.due - b.due || a.seq - b.seq).map(toClaimedRun)
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
   * Returns the new state of the run: `cancelled` or `failed` when it was cancelled meanwhile, and then no approval was
   * opened. Throws VERSION_MISMATCH, and commits nothing, when the claim is void.
   */
  commit(step: StepCommit): Promise<RunState> {
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

  #transaction<T>(work: (tx: SqlTransaction) => Promise<ReadyRuns<T>>): Promise<T> {
    return transactionWithWakeUp(this.#client, this.#wake, work)
  }

  async get(id: string): Promise<RunWithData | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findById.first(this.#client, { id })
    return row && toRunWithData(row)
  }

  /** With all that a claim returns, encrypted secrets included, but without a claim. */
  async getWhole(id: string): Promise<ClaimedRun | undefined> {
    if (!isStorable(id)) return undefined
    const row = await findWhole.first(this.#client, { id })
    return row && toClaimedRun(row)
  }

  /** Throws BAD_REQUEST for an `after` that is not the `next` of a page. */
  async list(query: RunQuery): Promise<RunPage> {
    const { states, name, subject, requestor, requestedBy, about, after } = query
    const limit = Math.max(1, Math.min(Math.trunc(query.limit) || 1, maxPage))
    if (after !== undefined && !/^\d{1,15}$/.test(after)) {
      throw new GatewayError('BAD_REQUEST', `not a page of runs: ${after}`)
    }
    if ([name, subject, requestor].some((text) => text !== undefined && !isStorable(text))) return { runs: [] }
    if (states?.length === 0) return { runs: [] }
    const conditions = [
      states && sql`state in (${join(states)})`,
      name === undefined ? undefined : sql`name = ${name}`,
      subject === undefined ? undefined : sql`subject_key = ${lookupKey(subject)}`,
      requestor === undefined ? undefined : sql`requestor_key = ${lookupKey(requestor)}`,
      requestedBy && sql`requestor_identity in (${join(identitiesOf(requestedBy))})`,
      about && sql`subject_identity in (${join(identitiesOf(about))})`,
      after === undefined ? undefined : sql`seq < ${Number(after)}`,
    ].filter((condition) => condition !== undefined)
    const where = conditions.length === 0 ? empty : sql`where ${join(conditions, ' and ')}`
    const select = sql`select ${raw(runColumns)} from runs ${where} order by seq desc limit ${limit + 1}`
    const rows = await this.#client.query(dynamic<RunRow>(this.#client.dialect, select))
    const last = rows[limit - 1]
    const runs = rows.slice(0, limit).map(toRun)
    return rows.length > limit && last !== undefined ? { runs, next: String(last.seq) } : { runs }
  }

  /** In order, at most 500 after the one with that id. */
  async steps(run: string, after = 0): Promise<readonly StoredStep[]> {
    if (!isStorable(run)) return []
    return (await listSteps.all(this.#client, { run, after })).map(toStep)
  }

  /** Whether a run of the subject is ready, due or not. */
  async hasReady(subject: string): Promise<boolean> {
    if (!isStorable(subject)) return false
    return (await findReady.first(this.#client, { subjectKey: lookupKey(subject) })) !== undefined
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
      ...(ready == null || ready < 0 ? {} : { oldestReadyMillis: ready }),
      ...(incident == null ? {} : { oldestIncidentMillis: incident }),
    }
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
const claim = statement<{ worker: string; lease: number; limit: number }, ClaimedRunRow>(
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
   returning ${claimedRunColumns}`,
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

const findById = statement<{ id: string }, RunDataRow>(`select ${runColumns}, data from runs where id = :id`)
const findWhole = statement<{ id: string }, ClaimedRunRow>(`select ${claimedRunColumns} from runs where id = :id`)
const findReady = statement<{ subjectKey: string }, { seq: number }>(
  `select seq from runs where subject_key = :subjectKey and state = 'ready' limit 1`,
)
const listSteps = statement<{ run: string; after: number }, StoredStepRow>(
  `select seq, ${columns(stepColumns)} from steps where run = :run and seq > :after order by seq limit ${maxPage}`,
)

const open = `('ready', 'running', 'waiting', 'incident')`
/** How many runs are open, and for how long the first one has been due, or an incident. */
const countByState = statement<object, { state: RunState; count: number; age: number | null }>(
  (on) => `select state, count(*) as count, ${on.now} - min(case when state = 'ready' then due else updated end) as age
   from runs where state in ${open} group by state`,
)
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
