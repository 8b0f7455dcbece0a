import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { AuditEntry } from '#domain/audit.ts'
import type { SqlTransaction } from '#storage/client/sql-client.ts'
import { isStorable } from '#storage/client/text-keys.ts'
import type { RecordColumns } from '#storage/sql/audit-records.ts'
import { perDialect } from '#storage/sql/per-dialect.ts'
import { fixed, fixedInserts, fixedLists } from '#storage/sql/queries.ts'

/**
 * Most issuances of a day differ from one another in little. Their subject and the beginning of their reason, which names
 * pod, key and rule, are stored once a day as a context; the row refers to it and leaves out what follows from it. The view
 * `audit_rows` puts it together again. Hashes are over the whole row, so a changed context is found like any other change.
 */
export type AuditContext = {
  readonly id: string
  readonly day: number
  readonly subject: string
  readonly shared: string
}

/** A record as it is stored. */
export type StoredRecord = RecordColumns & { readonly context: string | null }

const dayMillis = 24 * 3600_000
/** Clocks differ, and a row is on its way for a moment. */
const spareDays = 2

/** 66 bits, for some hundred thousand contexts of a day. Two with the same id can be found with some effort. */
const idLength = 11
/** With its mark as long as fits into eight bytes of an index of PostgreSQL. */
const compactKeyLength = 6

const dayOf = (millis: number): number => Math.floor(millis / dayMillis)

/** The words of the index `audit_tokens`, which serves only the same ones. */
export const isToken = {
  sqlite: sql<boolean>`json_extract(changes, '$[0][1]') = 'token'`,
  postgres: sql<boolean>`changes::jsonb -> 0 ->> 1 = 'token'`,
}

const statements = perDialect((dialect) => ({
  insert: fixedInserts<AuditContext>(dialect, ['id', 'day', 'subject', 'shared'], (db, rows) =>
    db
      .insertInto('audit_contexts')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing()),
  ),
  read: fixedLists<object, string, AuditContext>(dialect, (db, _, ids) =>
    db.selectFrom('audit_contexts').select(['id', 'day', 'subject', 'shared']).where('id', 'in', ids),
  ),
  oldest: fixed<object, { time: number }>(dialect, (db) =>
    db
      .selectFrom('audit')
      .select('time')
      .where(isToken[dialect])
      .where('context', 'is not', null)
      .orderBy('time')
      .limit(1),
  ),
  remove: fixed<{ before: number }, unknown>(dialect, (db, at) =>
    db.deleteFrom('audit_contexts').where('day', '<', at('before')),
  ),
}))

/** By what rows of a subject are found where they are compact. Others may have the same, if rarely. */
export const compactKey = (subjectKey: string): string =>
  `#${hash('sha256', subjectKey, 'base64url').slice(0, compactKeyLength)}`

/** The context of a row that can be stored compactly; undefined for every other row. */
export function contextOf(row: AuditEntry): AuditContext | undefined {
  const { recurring = 0, reason = '' } = row
  if (recurring <= 0 || recurring > reason.length || !isCompactable(row)) return undefined
  const day = dayOf(row.time.getTime())
  const shared = reason.slice(0, recurring)
  const { subject } = row
  const id = hash('sha256', JSON.stringify([day, subject, shared]), 'base64url').slice(0, idLength)
  return { id, day, subject, shared }
}

/** Whether its other columns follow from id and subject, as `audit_rows` has it. */
function isCompactable({ id, kind, action, attribute, value, requestId, workflow, ...row }: AuditEntry): boolean {
  return (
    kind === 'token' &&
    action === 'issue' &&
    attribute === 'jti' &&
    [value, requestId, workflow.id].every((each) => each === id) &&
    row.requestor === row.subject &&
    row.caller === undefined &&
    row.approval === undefined &&
    isStorable(row.subject) &&
    /^[\w-]+$/.test(id)
  )
}

/** The record of one row, as it is stored: whole, unless the row has a context and its columns follow from each other. */
export function storedRecord(record: RecordColumns, context: AuditContext | undefined): StoredRecord {
  const reason = record.reason ?? ''
  const isTheSame = record.subject === context?.subject && record.subject_key === record.subject
  if (context === undefined || !isTheSame || !reason.startsWith(context.shared)) return { ...record, context: null }
  return {
    ...record,
    requestor: '',
    requestor_key: '',
    subject: '',
    subject_key: compactKey(record.subject_key),
    workflow_id: '',
    request_id: null,
    changes: '[[0,"token","issue"]]',
    reason: reason.slice(context.shared.length),
    context: context.id,
  }
}

/**
 * The ids of those that are stored now. Not of one whose id another context has: its rows would be shown with the other
 * subject. Writes in an order that all writers share, so that none waits for one that waits for it.
 */
export async function insertContexts(tx: SqlTransaction, contexts: readonly AuditContext[]): Promise<Set<string>> {
  const sorted = contexts.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  const { insert, read } = statements(tx.dialect)
  for (const query of insert(sorted)) await tx.run(query)
  const wanted = new Map(sorted.map((context) => [context.id, context]))
  const stored = new Set<string>()
  for (const query of read({}, [...wanted.keys()])) {
    for (const found of await tx.query(query)) if (isSame(found, wanted.get(found.id))) stored.add(found.id)
  }
  return stored
}

export const isSame = (a: AuditContext, b: AuditContext | undefined): boolean =>
  a.day === b?.day && a.subject === b.subject && a.shared === b.shared

/** Removes the contexts of days of which no compact row is left. Writers use those of the present day only. */
export async function pruneContexts(tx: SqlTransaction, now: Date): Promise<void> {
  const { oldest, remove } = statements(tx.dialect)
  const [row] = await tx.query(oldest({}))
  const latest = dayOf(now.getTime()) - spareDays
  await tx.run(remove({ before: row === undefined ? latest : Math.min(dayOf(row.time), latest) }))
}
