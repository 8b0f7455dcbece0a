import { hash } from 'node:crypto'
import type { DatabaseTransaction } from '#database/sql-client.ts'
import { type DialectText, ListStatement, RowInsert, statement } from '#database/statement.ts'
import { isStorable, lookupKey, storable } from '#database/text-keys.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'

/** The maximum number of entries in one record. */
const maxEntries = 100

export const recordProperties = [
  'id',
  'time',
  'requestor',
  'requestorKey',
  'subject',
  'subjectKey',
  'workflowId',
  'workflowName',
  'target',
  'requestId',
  'changes',
  'caller',
  'approval',
  'reason',
] as const

type Optional = 'requestId' | 'caller' | 'approval' | 'reason'

/**
 * Entries that differ only in their change, stored as one: a user is mostly created with several attributes at
 * once.
 */
export type AuditRecordRow = {
  readonly [K in (typeof recordProperties)[number]]: K extends 'time'
    ? number
    : K extends Optional
      ? string | null
      : string
}

/** An element of `changes`. */
type Change = readonly [
  id: string,
  kind: AuditEntry['kind'],
  action: AuditEntry['action'],
  attribute: string,
  value: string | null,
]

export function toRecords(entries: readonly AuditEntry[]): AuditRecordRow[] {
  const groups: [AuditEntry, ...AuditEntry[]][] = []
  for (const entry of entries) {
    const group = groups.at(-1)
    if (group !== undefined && group.length < maxEntries && isSameCall(group[0], entry)) group.push(entry)
    else groups.push([entry])
  }
  return groups.map(toRecord)
}

function isSameCall(a: AuditEntry, b: AuditEntry): boolean {
  return (
    a.time.getTime() === b.time.getTime() &&
    a.requestor === b.requestor &&
    a.subject === b.subject &&
    a.workflow.id === b.workflow.id &&
    a.workflow.name === b.workflow.name &&
    a.target === b.target &&
    a.requestId === b.requestId &&
    a.caller === b.caller &&
    a.approval === b.approval &&
    a.reason === b.reason
  )
}

function toRecord(entries: readonly [AuditEntry, ...AuditEntry[]]): AuditRecordRow {
  const [first] = entries
  const requestor = storable(first.requestor)
  const subject = storable(first.subject)
  const changes = entries.map(
    ({ id, kind, action, attribute, value }): Change => [id, kind, action, storable(attribute), optional(value)],
  )
  return {
    id: first.id,
    time: first.time.getTime(),
    requestor,
    requestorKey: lookupKey(requestor),
    subject,
    subjectKey: lookupKey(subject),
    workflowId: storable(first.workflow.id),
    workflowName: storable(first.workflow.name),
    target: storable(first.target),
    requestId: optional(first.requestId),
    changes: JSON.stringify(changes),
    caller: optional(first.caller),
    approval: optional(first.approval),
    reason: optional(first.reason),
  }
}

const optional = (text: string | undefined): string | null => (text === undefined ? null : storable(text))

/** In the order in which they were written. */
export function toEntries(record: AuditRecordRow): AuditEntry[] {
  const changes = JSON.parse(record.changes) as Change[]
  return changes.map(([id, kind, action, attribute, value]) => ({
    id,
    time: new Date(record.time),
    requestor: record.requestor,
    subject: record.subject,
    workflow: { id: record.workflowId, name: record.workflowName },
    target: record.target,
    kind,
    action,
    attribute,
    ...(value === null ? {} : { value }),
    ...(record.requestId === null ? {} : { requestId: record.requestId }),
    ...(record.caller === null ? {} : { caller: record.caller }),
    ...(record.approval === null ? {} : { approval: record.approval }),
    ...(record.reason === null ? {} : { reason: record.reason }),
  }))
}

/**
 * Most issuances of a day differ little. Their subject and the start of their reason, which names pod, key and
 * rule, are stored once a day as a context; the record refers to it and leaves out what follows from it. The view
 * `audit_rows` has all records in full. Hashes are over full records, so a changed context is detected like any
 * other change.
 */
export interface AuditContext {
  readonly id: string
  readonly day: number
  readonly subject: string
  readonly shared: string
}

/** A stored record: with a context it is compact. */
export type StoredRecord = AuditRecordRow & { readonly context: string | null }

const dayMillis = 24 * 3600_000
/** Clocks differ, and an entry takes time to be written. */
const spareDays = 2

/** 66 bits, for some hundred thousand contexts of a day. Two with the same id can be found with some effort. */
const idLength = 11
/** As long as fits with its mark into eight bytes of a PostgreSQL index. */
const compactKeyLength = 6

const dayOf = (millis: number): number => Math.floor(millis / dayMillis)

/** The subject key of compact records of a subject. Rarely, other subjects have the same. */
export const compactKey = (subjectKey: string): string =>
  `#${hash('sha256', subjectKey, 'base64url').slice(0, compactKeyLength)}`

/** The context of an entry that can be stored compactly; undefined for every other entry. */
export function contextOf(entry: AuditEntry): AuditContext | undefined {
  const { recurring = 0, reason = '' } = entry
  if (recurring <= 0 || recurring > reason.length || !isCompactable(entry)) return undefined
  const day = dayOf(entry.time.getTime())
  const shared = reason.slice(0, recurring)
  const { subject } = entry
  const id = hash('sha256', JSON.stringify([day, subject, shared]), 'base64url').slice(0, idLength)
  return { id, day, subject, shared }
}

/** Whether its other columns follow from id and subject, as `audit_rows` computes them. */
function isCompactable({ id, kind, action, attribute, value, requestId, workflow, ...entry }: AuditEntry): boolean {
  return (
    kind === 'token' &&
    action === 'issue' &&
    attribute === 'jti' &&
    [value, requestId, workflow.id].every((each) => each === id) &&
    entry.requestor === entry.subject &&
    entry.caller === undefined &&
    entry.approval === undefined &&
    isStorable(entry.subject) &&
    /^[\w-]+$/.test(id)
  )
}

/** The stored record of one entry: whole, unless its columns follow from each other and the context. */
export function storedRecord(record: AuditRecordRow, context: AuditContext | undefined): StoredRecord {
  const reason = record.reason ?? ''
  const follows = record.subject === context?.subject && record.subjectKey === record.subject
  if (context === undefined || !follows || !reason.startsWith(context.shared)) return { ...record, context: null }
  return {
    ...record,
    requestor: '',
    requestorKey: '',
    subject: '',
    subjectKey: compactKey(record.subjectKey),
    workflowId: '',
    requestId: null,
    changes: '[[0,"token","issue"]]',
    reason: reason.slice(context.shared.length),
    context: context.id,
  }
}

/**
 * Returns the ids of the contexts that are now stored, without ids that another context has: their records would be
 * shown with the other subject. Writes in an order that all writers share, so that no two wait for each other.
 */
export async function insertContexts(tx: DatabaseTransaction, contexts: readonly AuditContext[]): Promise<Set<string>> {
  const sorted = contexts.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  insertMissing.run(tx, sorted)
  const wanted = new Map(sorted.map((context) => [context.id, context]))
  const found = await findContexts.all(tx, {}, [...wanted.keys()])
  return new Set(found.filter((context) => isSame(context, wanted.get(context.id))).map(({ id }) => id))
}

export const isSame = (a: AuditContext, b: AuditContext | undefined): boolean =>
  a.day === b?.day && a.subject === b.subject && a.shared === b.shared

/** Removes the contexts of days without compact records. Writers use only those of the current day. */
export async function pruneContexts(tx: DatabaseTransaction, now: Date): Promise<void> {
  const oldest = await findOldestCompact.first(tx, {})
  const latest = dayOf(now.getTime()) - spareDays
  await deleteContexts.run(tx, { before: oldest === undefined ? latest : Math.min(dayOf(oldest.time), latest) })
}

const insertMissing = new RowInsert<AuditContext>(
  'audit_contexts',
  ['id', 'day', 'subject', 'shared'],
  'on conflict do nothing',
)
const findContexts = new ListStatement<object, string, AuditContext>(
  `select id, day, subject, shared from audit_contexts where id in (:list)`,
)
/** The text of the index `audit_tokens`, which serves only this text. */
export const isToken = ({ name }: DialectText): string =>
  name === 'sqlite' ? `json_extract(changes, '$[0][1]') = 'token'` : `changes::jsonb -> 0 ->> 1 = 'token'`
const findOldestCompact = statement<object, { time: number }>(
  (on) => `select time from audit where ${isToken(on)} and context is not null order by time limit 1`,
)
const deleteContexts = statement<{ before: number }>(`delete from audit_contexts where day < :before`)
