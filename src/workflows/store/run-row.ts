import type { DatabaseTransaction } from '#database/sql-client.ts'
import { columnName, columns, type DialectText, dateOrNull, statement, withoutNulls } from '#database/statement.ts'
import { assertStorable, isStorable, optionalText } from '#database/text-keys.ts'
import { type Identity, type RunIdentities, storedIdentity } from '#identity/identity.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import type { Cancellation, Incident, Run, RunState, StoredRun } from '#workflows/record/run.ts'

/**
 * The columns of a run's head. Select, insert and reading are made from this table; `who` has columns of its own, since
 * they are searched.
 */
const headFields = {
  id: ['id', 'text'],
  workflow: ['name', 'text'],
  definition: ['definition', 'text'],
  subject: ['subject', 'text'],
  requester: ['requestor', 'text'],
  caller: ['caller', 'text'],
  reason: ['reason', 'text'],
  requestId: ['request_id', 'text'],
  deadline: ['deadline', 'time'],
  accessEnds: ['access_ends', 'time'],
} as const satisfies Record<Exclude<keyof RunHead, 'who'>, readonly [column: string, kind: 'text' | 'time']>

const headEntries = Object.entries(headFields)

export interface IdentityColumns {
  readonly requestorIdentity: string | null
  readonly callerIdentity: string | null
  readonly subjectIdentity: string | null
}

export const identityColumns = ['requestorIdentity', 'callerIdentity', 'subjectIdentity'] as const

/** For `select` and `returning`; `headOf` reads them from the row. */
export const headColumns = (table?: string): string =>
  [
    ...headEntries.map(([field, [column]]) => `${table === undefined ? '' : `${table}.`}${column} as "head.${field}"`),
    columns(identityColumns, table),
  ].join(', ')

export function headOf(row: IdentityColumns): RunHead {
  const values = row as object as Readonly<Record<string, string | number | null>>
  const read = headEntries.flatMap(([field, [, kind]]) => {
    const value = values[`head.${field}`] ?? null
    return value === null ? [] : [[field, kind === 'time' ? new Date(value) : value]]
  })
  return { ...(Object.fromEntries(read) as Omit<RunHead, 'who'>), who: toIdentities(row) }
}

/** For an insert: the columns, and the names of the values that `headValues` makes. */
export const headInsert = {
  columns: [...headEntries.map(([, [column]]) => column), ...identityColumns.map(columnName)],
  texts: [...headEntries.flatMap(([field, [, kind]]) => (kind === 'text' ? [field] : [])), ...identityColumns],
  times: headEntries.flatMap(([field, [, kind]]) => (kind === 'time' ? [field] : [])),
  places: [...headEntries.map(([field]) => field), ...identityColumns].map((name) => `:${name}`),
}

/** Throws BAD_REQUEST for an id or a login that can't be stored. */
export function headValues(head: RunHead): Readonly<Record<string, string | number | null>> {
  assertStorable('id of the run', head.id)
  assertStorable('login', head.subject)
  assertStorable('requestor', head.requester)
  const { requester, caller, subject } = head.who
  const values = headEntries.map(([field]) => {
    const value = head[field as keyof typeof headFields]
    return [field, value instanceof Date ? value.getTime() : optionalText(value)]
  })
  return {
    ...Object.fromEntries(values),
    requestorIdentity: requester ?? null,
    callerIdentity: caller ?? null,
    subjectIdentity: subject ?? null,
  }
}

/** A run in the database, with the columns of its head. Times are milliseconds since 1970, by the database's clock. */
export interface RunRow extends IdentityColumns {
  /** The order of the runs of a subject. */
  readonly seq: number
  readonly id: string
  readonly state: RunState
  readonly resource: string | null
  readonly attempt: number
  readonly fence: number
  readonly worker: string | null
  readonly leaseUntil: number
  readonly due: number
  readonly incident: string | null
  readonly cancel: string | null
  readonly touched: number
  readonly created: number
  readonly updated: number
  readonly ended: number | null
}

export interface StoredRunRow extends RunRow {
  readonly data: string
  readonly signal?: string | null
  readonly secret?: string | null
}

const status = [
  'seq',
  'id',
  'state',
  'resource',
  'attempt',
  'fence',
  'worker',
  'leaseUntil',
  'due',
  'incident',
  'cancel',
  'touched',
  'created',
  'updated',
  'ended',
] as const

export const runColumns = `${headColumns()}, ${columns(status)}`
export const storedRunColumns = `${runColumns}, data, signal, secret`

/** A cancellation, stored until the run ends. */
export interface StoredCancellation extends Cancellation {
  readonly outcome: 'cancelled' | 'expired'
}

export const toRun = (row: RunRow): Run => ({
  head: headOf(row),
  state: row.state,
  attempt: row.attempt,
  fence: row.fence,
  due: new Date(row.due),
  touched: row.touched !== 0,
  created: new Date(row.created),
  updated: new Date(row.updated),
  ...withoutNulls({
    resource: row.resource,
    worker: row.worker,
    leaseUntil: row.worker === null ? null : new Date(row.leaseUntil),
    incident: row.incident === null ? null : (JSON.parse(row.incident) as Incident),
    cancel: row.cancel === null ? null : toCancellation(row.cancel),
    ended: dateOrNull(row.ended),
  }),
})

export const toIdentities = (row: IdentityColumns): RunIdentities => {
  const identity = (text: string | null): Identity | null => (text === null ? null : storedIdentity(text))
  return withoutNulls({
    requester: identity(row.requestorIdentity),
    caller: identity(row.callerIdentity),
    subject: identity(row.subjectIdentity),
  })
}

/** Null where the deadline ended the run. */
function toCancellation(text: string): Cancellation | null {
  const { outcome, ...cancellation } = JSON.parse(text) as StoredCancellation
  return outcome === 'cancelled' ? cancellation : null
}

export const toStoredRun = (row: StoredRunRow): StoredRun => ({
  ...toRun(row),
  data: JSON.parse(row.data) as JsonObject,
  ...withoutNulls({
    secret: row.secret ?? null,
    signal: row.signal == null ? null : (JSON.parse(row.signal) as JsonObject),
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
