import type { AuditEntry } from '#domain/audit.ts'
import { lookupKey, storable } from '#storage/client/text-keys.ts'

/** Rows that one record holds at most. */
const maxRows = 100

export const auditColumns = [
  'id',
  'time',
  'requestor',
  'requestor_key',
  'subject',
  'subject_key',
  'workflow_id',
  'workflow_name',
  'target',
  'request_id',
  'changes',
  'caller',
  'approval',
  'reason',
] as const

type Optional = 'request_id' | 'caller' | 'approval' | 'reason'

/** Audit rows that differ in their change only, kept as one: a user is mostly created with several attributes at once. */
export type RecordColumns = {
  readonly [K in (typeof auditColumns)[number]]: K extends 'time' ? number : K extends Optional ? string | null : string
}

type Change = readonly [
  id: string,
  kind: AuditEntry['kind'],
  action: AuditEntry['action'],
  attribute: string,
  value: string | null,
]

export function toRecords(rows: readonly AuditEntry[]): RecordColumns[] {
  const runs: AuditEntry[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    const [first] = run ?? []
    if (run !== undefined && first !== undefined && run.length < maxRows && sameCall(first, row)) run.push(row)
    else runs.push([row])
  }
  return runs.flatMap((run) => {
    const [first] = run
    return first === undefined ? [] : [toRecord(first, run)]
  })
}

function sameCall(a: AuditEntry, b: AuditEntry): boolean {
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

function toRecord(first: AuditEntry, rows: readonly AuditEntry[]): RecordColumns {
  const requestor = storable(first.requestor)
  const subject = storable(first.subject)
  const changes = rows.map(
    ({ id, kind, action, attribute, value }): Change => [
      id,
      kind,
      action,
      storable(attribute),
      value === undefined ? null : storable(value),
    ],
  )
  return {
    id: first.id,
    time: first.time.getTime(),
    requestor,
    requestor_key: lookupKey(requestor),
    subject,
    subject_key: lookupKey(subject),
    workflow_id: storable(first.workflow.id),
    workflow_name: storable(first.workflow.name),
    target: storable(first.target),
    request_id: optional(first.requestId),
    changes: JSON.stringify(changes),
    caller: optional(first.caller),
    approval: optional(first.approval),
    reason: optional(first.reason),
  }
}

const optional = (text: string | undefined): string | null => (text === undefined ? null : storable(text))

/** In the order in which they were written. */
export function toRows(record: RecordColumns): AuditEntry[] {
  const changes = JSON.parse(record.changes) as Change[]
  return changes.map(([id, kind, action, attribute, value]) => ({
    id,
    time: new Date(record.time),
    requestor: record.requestor,
    subject: record.subject,
    workflow: { id: record.workflow_id, name: record.workflow_name },
    target: record.target,
    kind,
    action,
    attribute,
    ...(value === null ? {} : { value }),
    ...(record.request_id === null ? {} : { requestId: record.request_id }),
    ...(record.caller === null ? {} : { caller: record.caller }),
    ...(record.approval === null ? {} : { approval: record.approval }),
    ...(record.reason === null ? {} : { reason: record.reason }),
  }))
}
