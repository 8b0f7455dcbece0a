import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { NewApproval } from '#storage/approval-store.ts'
import { readNow } from '#storage/client/database-time.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { isStorable, lookupKey } from '#storage/client/text-keys.ts'
import type { IdempotentCall } from '#storage/idempotency-store.ts'
import { reserveKey } from '#storage/idempotency-store.ts'
import type {
  CancelRequest,
  ClaimedRun,
  Intervention,
  NewRun,
  Run,
  RunClaim,
  RunEffects,
  RunFigures,
  RunPage,
  RunQuery,
  RunState,
  RunStore,
  StartOutcome,
  StepCommit,
  StoredStep,
  WorkflowDefinition,
} from '#storage/run-store.ts'
import { insertApproval } from '#storage/sql/approval-writes.ts'
import { pruneInParts } from '#storage/sql/prune.ts'
import { commitStep } from '#storage/sql/run-commit.ts'
import { insertRun, isReady, writeEffects } from '#storage/sql/run-effects.ts'
import { cancelRun, resumeRun, signalRun } from '#storage/sql/run-interventions.ts'
import { listRuns, runReads } from '#storage/sql/run-reads.ts'
import { toClaimed, toRun, toStep } from '#storage/sql/run-records.ts'
import { runStatements } from '#storage/sql/run-statements.ts'
import { transactionWithWakeUp, type WakeUp, type Woken } from '#storage/sql/wake-up.ts'
import { finishTimers } from '#storage/timer-store.ts'

const claimTries = 4

interface StartOptions {
  readonly effects?: RunEffects
  readonly approval?: NewApproval
  readonly idempotency?: IdempotentCall
}

export class SqlRunStore implements RunStore {
  readonly #client: SqlClient
  readonly #wake: WakeUp | undefined

  constructor(client: SqlClient, wake?: WakeUp) {
    this.#client = client
    this.#wake = wake
  }

  async saveDefinitions(definitions: readonly WorkflowDefinition[]): Promise<void> {
    const { saveDefinition } = runReads(this.#client.dialect)
    await this.#client.transaction(async (tx) => {
      for (const { hash, name, body } of definitions) {
        await tx.run(saveDefinition({ hash, name, body: JSON.stringify(body) }))
      }
    })
  }

  async definition(hash: string): Promise<WorkflowDefinition | undefined> {
    if (!isStorable(hash)) return undefined
    const [row] = await this.#client.query(runReads(this.#client.dialect).definition({ hash }))
    return row && { hash, name: row.name, body: JSON.parse(row.body) as JsonValue }
  }

  async start(run: NewRun, { effects = {}, approval, idempotency }: StartOptions = {}): Promise<StartOutcome> {
    return await transactionWithWakeUp(this.#client, this.#wake, async (tx): Promise<Woken<StartOutcome>> => {
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

  async record(effects: RunEffects): Promise<void> {
    await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
      await finishTimers(tx, effects.doneTimers ?? [])
      const needsTime = [effects.timers, effects.mails, effects.grants].some((each) => each !== undefined)
      const ready = await writeEffects(tx, effects, needsTime ? await readNow(tx) : 0)
      return { value: undefined, ready }
    })
  }

  /** Two workers that take two runs of one subject are told apart by the index on running ones; the second looks again. */
  async claim(worker: string, limit: number, leaseMillis: number): Promise<readonly ClaimedRun[]> {
    const query = runStatements(this.#client.dialect).claim({ worker, limit, lease: leaseMillis })
    for (let tries = 1; ; tries++) {
      try {
        const rows = await this.#client.transaction((tx) => tx.query(query), 'soon')
        return rows.sort((a, b) => a.due - b.due || a.seq - b.seq).map(toClaimed)
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        if (tries === claimTries) return []
      }
    }
  }

  async renew({ id, fence }: RunClaim, leaseMillis: number): Promise<boolean> {
    const query = runStatements(this.#client.dialect).renew({ id, fence, lease: leaseMillis })
    return (await this.#client.transaction((tx) => tx.run(query), 'soon')) > 0
  }

  async release({ id, fence }: RunClaim): Promise<boolean> {
    return await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
      const rows = await tx.query(runStatements(tx.dialect).release({ id, fence }))
      return { value: rows.length > 0, ready: rows.map((row) => row.id) }
    })
  }

  async recover(): Promise<number> {
    if (this.#client.dialect !== 'sqlite') return 0
    return await transactionWithWakeUp(this.#client, this.#wake, async (tx) => {
      const rows = await tx.query(runStatements(tx.dialect).recover({}))
      return { value: rows.length, ready: rows.map((row) => row.id) }
    })
  }

  async commit(step: StepCommit): Promise<RunState> {
    return await transactionWithWakeUp(this.#client, this.#wake, (tx) => commitStep(tx, step))
  }

  async signal(run: string, signal: JsonObject, effects: RunEffects): Promise<boolean> {
    return await transactionWithWakeUp(this.#client, this.#wake, (tx) => signalRun(tx, run, signal, effects))
  }

  async resume(intervention: Intervention, data?: JsonObject): Promise<void> {
    await transactionWithWakeUp(this.#client, this.#wake, (tx) => resumeRun(tx, intervention, data))
  }

  async cancel(request: CancelRequest): Promise<RunState> {
    return await transactionWithWakeUp(this.#client, this.#wake, (tx) => cancelRun(tx, request))
  }

  async get(id: string): Promise<Run | undefined> {
    if (!isStorable(id)) return undefined
    const [row] = await this.#client.query(runReads(this.#client.dialect).get({ id }))
    return row && toRun(row)
  }

  async getWhole(id: string): Promise<ClaimedRun | undefined> {
    if (!isStorable(id)) return undefined
    const [row] = await this.#client.query(runReads(this.#client.dialect).getWhole({ id }))
    return row && toClaimed(row)
  }

  async list(query: RunQuery): Promise<RunPage> {
    return await listRuns(this.#client, query)
  }

  async steps(run: string, after = 0): Promise<readonly StoredStep[]> {
    if (!isStorable(run)) return []
    return (await this.#client.query(runReads(this.#client.dialect).steps({ run, after }))).map(toStep)
  }

  async hasReady(subject: string): Promise<boolean> {
    if (!isStorable(subject)) return false
    const { readyOf } = runReads(this.#client.dialect)
    return (await this.#client.query(readyOf({ subject_key: lookupKey(subject) }))).length > 0
  }

  async figures(): Promise<RunFigures> {
    const rows = await this.#client.query(runReads(this.#client.dialect).figures({}))
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

  prune(before: Date): Promise<number> {
    return pruneInParts(this.#client, runReads(this.#client.dialect).prune({ before: before.getTime() }))
  }

  async pruneDefinitions(before: Date): Promise<number> {
    const query = runReads(this.#client.dialect).pruneDefinitions({ before: before.getTime() })
    return await this.#client.transaction((tx) => tx.run(query))
  }
}
