import type { Cancellation, ClaimedRun, Incident, Run, RunState, RunWithData } from '#domain/run.ts'
import { type RunIdentities, storedIdentity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { columns, statement } from '#storage/client/statement.ts'
import { isStorable } from '#storage/client/text-keys.ts'

/** A run in the database. Times are milliseconds since 1970, by the database's clock. */
export interface RunRow extends IdentityColumns {
  /** The order of the runs of a subject. */
  readonly seq: number
  readonly id: string
  readonly name: string
  readonly definition: string
  readonly state: RunState
  readonly subject: string
  readonly requestor: string
  readonly caller: string | null
  readonly reason: string | null
  readonly requestId: string | null
  readonly attempt: number
  readonly fence: number
  readonly worker: string | null
  readonly leaseUntil: number
  readonly due: number
  readonly deadline: number | null
  readonly accessEnds: number | null
  readonly incident: string | null
  readonly cancel: string | null
  readonly touched: number
  readonly created: number
  readonly updated: number
  readonly ended: number | null
}

export interface IdentityColumns {
  readonly requestorIdentity: string | null
  readonly callerIdentity: string | null
  readonly subjectIdentity: string | null
}

export const identityColumns = ['requestorIdentity', 'callerIdentity', 'subjectIdentity'] as const

export interface RunDataRow extends RunRow {
  readonly data: string
}

export interface ClaimedRunRow extends RunDataRow {
  readonly signal: string | null
  readonly secret: string | null
}

const summary = [
  'seq',
  'id',
  'name',
  'definition',
  'state',
  'subject',
  'requestor',
  'caller',
  ...identityColumns,
  'reason',
  'requestId',
  'attempt',
  'fence',
  'worker',
  'leaseUntil',
  'due',
  'deadline',
  'accessEnds',
  'incident',
  'cancel',
  'touched',
  'created',
  'updated',
  'ended',
] as const

export const runColumns = columns(summary)
export const claimedRunColumns = columns([...summary, 'data', 'signal', 'secret'])

/** A cancellation as it is stored until the run ends. */
export interface StoredCancellation extends Cancellation {
  readonly outcome: 'cancelled' | 'failed'
}

export const toRun = (row: RunRow): Run => ({
  id: row.id,
  name: row.name,
  definition: row.definition,
  state: row.state,
  subject: row.subject,
  requestor: row.requestor,
  who: toIdentities(row),
  attempt: row.attempt,
  fence: row.fence,
  due: new Date(row.due),
  touched: row.touched !== 0,
  created: new Date(row.created),
  updated: new Date(row.updated),
  ...(row.caller === null ? {} : { caller: row.caller }),
  ...(row.reason === null ? {} : { reason: row.reason }),
  ...(row.requestId === null ? {} : { requestId: row.requestId }),
  ...(row.worker === null ? {} : { worker: row.worker, leaseUntil: new Date(row.leaseUntil) }),
  ...(row.deadline === null ? {} : { deadline: new Date(row.deadline) }),
  ...(row.accessEnds === null ? {} : { accessEnds: new Date(row.accessEnds) }),
  ...(row.incident === null ? {} : { incident: JSON.parse(row.incident) as Incident }),
  ...(row.cancel === null ? {} : { cancel: toCancellation(row.cancel) }),
  ...(row.ended === null ? {} : { ended: new Date(row.ended) }),
})

export const toIdentities = (row: IdentityColumns): RunIdentities => ({
  ...(row.requestorIdentity === null ? {} : { requestor: storedIdentity(row.requestorIdentity) }),
  ...(row.callerIdentity === null ? {} : { caller: storedIdentity(row.callerIdentity) }),
  ...(row.subjectIdentity === null ? {} : { subject: storedIdentity(row.subjectIdentity) }),
})

function toCancellation(text: string): Cancellation {
  const { by, reason } = JSON.parse(text) as StoredCancellation
  return { by, ...(reason === undefined ? {} : { reason }) }
}

export const toRunWithData = (row: RunDataRow): RunWithData => ({
  ...toRun(row),
  data: JSON.parse(row.data) as JsonObject,
})

export const toClaimedRun = (row: ClaimedRunRow): ClaimedRun => ({
  ...toRunWithData(row),
  ...(row.secret === null ? {} : { secret: row.secret }),
  ...(row.signal === null ? {} : { signal: JSON.parse(row.signal) as JsonObject }),
})

export type LockedRun = RunRow & { readonly now: number }

/**
 * Every transaction that changes a run which is not claimed, or something that belongs to it, locks the run first. So of
 * two concurrent transactions the second sees what the first did.
 */
export async function lockRun(tx: SqlTransaction, id: string): Promise<LockedRun | undefined> {
  return isStorable(id) ? await lock.first(tx, { id }) : undefined
}

/** Makes a locked run `ready`, with what it waited for, or with other data. */
export async function makeReady(
  tx: SqlTransaction,
  id: string,
  { signal, data }: { readonly signal?: JsonObject; readonly data?: JsonObject },
): Promise<void> {
  const text = (value: JsonObject | undefined) => (value === undefined ? null : JSON.stringify(value))
  await setReady.run(tx, { id, signal: text(signal), data: text(data) })
}

const lock = statement<{ id: string }, LockedRun>(
  (on) => `select ${runColumns}, ${on.now} as now from runs where id = :id ${on.forNoKeyUpdate}`,
)
const setReady = statement<{ id: string; signal: string | null; data: string | null }>(
  (on) => `update runs set state = 'ready', fence = fence + 1, attempt = 0, due = ${on.now},
     signal = coalesce(cast(:signal as text), signal), data = coalesce(cast(:data as text), data),
     incident = null, updated = ${on.now}
   where id = :id`,
)
