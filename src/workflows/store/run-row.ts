import type { DatabaseTransaction } from '#database/sql-client.ts'
import { columns, type DialectText, dateOrNull, statement, withoutNulls } from '#database/statement.ts'
import { isStorable } from '#database/text-keys.ts'
import { type Identity, type RunIdentities, storedIdentity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Cancellation, ClaimedRun, Incident, Run, RunState, RunWithData } from '#workflows/record/run.ts'

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
  readonly resource: string | null
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
  'resource',
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

/** A cancellation, stored until the run ends. */
export interface StoredCancellation extends Cancellation {
  readonly outcome: 'cancelled' | 'expired'
}

export const toRun = (row: RunRow): Run =>
  withoutNulls({
    id: row.id,
    name: row.name,
    definition: row.definition,
    state: row.state,
    subject: row.subject,
    requestor: row.requestor,
    caller: row.caller,
    who: toIdentities(row),
    resource: row.resource,
    reason: row.reason,
    requestId: row.requestId,
    attempt: row.attempt,
    fence: row.fence,
    worker: row.worker,
    leaseUntil: row.worker === null ? null : new Date(row.leaseUntil),
    due: new Date(row.due),
    deadline: dateOrNull(row.deadline),
    accessEnds: dateOrNull(row.accessEnds),
    incident: row.incident === null ? null : (JSON.parse(row.incident) as Incident),
    cancel: row.cancel === null ? null : toCancellation(row.cancel),
    touched: row.touched !== 0,
    created: new Date(row.created),
    updated: new Date(row.updated),
    ended: dateOrNull(row.ended),
  })

export const toIdentities = (row: IdentityColumns): RunIdentities => {
  const identity = (text: string | null): Identity | null => (text === null ? null : storedIdentity(text))
  return withoutNulls({
    requestor: identity(row.requestorIdentity),
    caller: identity(row.callerIdentity),
    subject: identity(row.subjectIdentity),
  })
}

/** Null where the deadline ended the run. */
function toCancellation(text: string): Cancellation | null {
  const { outcome, ...cancellation } = JSON.parse(text) as StoredCancellation
  return outcome === 'cancelled' ? cancellation : null
}

export const toRunWithData = (row: RunDataRow): RunWithData => ({
  ...toRun(row),
  data: JSON.parse(row.data) as JsonObject,
})

export const toClaimedRun = (row: ClaimedRunRow): ClaimedRun => ({
  ...toRunWithData(row),
  ...withoutNulls({
    secret: row.secret,
    signal: row.signal === null ? null : (JSON.parse(row.signal) as JsonObject),
  }),
})

export type LockedRun = RunRow & { readonly now: number }

/**
 * Every transaction that changes a run which is not claimed, or something that belongs to it, locks the run first. So of
 * two concurrent transactions the second sees what the first did.
 */
export async function lockRun(tx: DatabaseTransaction, id: string): Promise<LockedRun | undefined> {
  return isStorable(id) ? await lock.first(tx, { id }) : undefined
}

/** Makes a locked run `ready`, with what it waited for, or with other data. */
export function makeReady(
  tx: DatabaseTransaction,
  id: string,
  { signal, data }: { readonly signal?: JsonObject; readonly data?: JsonObject },
): void {
  const text = (value: JsonObject | undefined) => (value === undefined ? null : JSON.stringify(value))
  setReady.send(tx, { id, signal: text(signal), data: text(data) })
}

/** Reads and locks the run with that id. */
export const lockedRun = (on: DialectText, id: string): string =>
  `select ${runColumns}, ${on.now} as now from runs where id = ${id} ${on.forNoKeyUpdate}`
const lock = statement<{ id: string }, LockedRun>((on) => lockedRun(on, ':id'))
const setReady = statement<{ id: string; signal: string | null; data: string | null }>(
  (on) => `update runs set state = 'ready', fence = fence + 1, attempt = 0, due = ${on.now},
     signal = coalesce(cast(:signal as text), signal), data = coalesce(cast(:data as text), data),
     incident = null, updated = ${on.now}
   where id = :id`,
)
