import type { SqlDialect } from '#protocols/sql/sql-database.ts'

/** How many rows of each kind a database gets. */
export interface RowCounts {
  readonly users: number
  readonly groups: number
  readonly runs: number
  readonly audit: number
  readonly journal: number
}

/** The rows of a table are spread evenly over this time, up to now. No gateway prunes them. */
const span = 10 * 86_400_000
const since = Date.now() - span
/** No gateway appends to this chain of the audit. */
const chain = 4_000

/** The tables that get rows. */
const filled = [
  ...['collections', 'collection_sizes', 'entries', 'attributes', 'runs'],
  ...['approvals', 'approval_approvers', 'audit', 'journal'],
]

/** When the row with this number of so many was written. */
export const timeOf = (n: number, count: number): Date => new Date(since + n * stepOf(count))
const stepOf = (count: number): number => Math.floor(span / Math.max(count, 1))
/** Every tenth run is of one workflow. */
export const busyWorkflow = 'busy'
export const workflowOf = (n: number): string => (n % 10 === 1 ? busyWorkflow : `flow-${n % 50}`)
export const userOf = (n: number): string => `user${number(n)}`
const number = (n: number): string => String(10_000_000 + n).slice(1)

/**
 * Statements that fill a database that a gateway with the directory `people` has opened. Of ten runs three wait for an
 * approval, of a hundred one is an incident at the target `people`, and the others have ended. Every user is the subject
 * of audit entries and runs, and a thousand users are requesters.
 */
export function manyRows(dialect: SqlDialect, { users, groups, runs, audit, journal }: RowCounts): string[] {
  const series = (count: number): string =>
    `with recursive series(i) as (select 1 union all select i + 1 from series where i < ${count})`
  const padded = (value: string): string => `substr(cast(10000000 + ${value} as text), 2)`
  const id = (kind: string, value: string): string => `'${kind}' || ${padded(value)} || '-0000-7000-8000-000000000000'`
  const collection = (kind: string): string =>
    `(select pk from collections where directory = 'people' and kind = '${kind}')`
  const entries = (kind: string, prefix: string, count: number, attributes: string): string =>
    `${series(count)} insert into entries (collection, id, name, key, version, created, modified, attributes)
     select ${collection(kind)}, ${id(prefix[0] ?? '', 'i')}, '${prefix}' || ${padded('i')}, '${prefix}' || ${padded('i')},
       1, ${time(count)}, ${time(count)}, ${attributes} from series`
  const values = (name: string, value: string): string =>
    `insert into attributes (entry, name_key, position, collection, name, value, value_key)
     select e.pk, '${name.toLowerCase()}', 0, e.collection, '${name}', ${value}, lower(${value}) from entries as e
     where e.collection = ${collection('users')} and substr(e.id, 1, 1) = 'u'`
  const mail = `'user' || ${padded('i')} || '@example.com'`
  const displayName = `'Person ' || ${padded('i')}`
  const size = (kind: string, count: number): string =>
    `update collection_sizes set size = size + ${count} where collection = ${collection(kind)} and slot =
       (select min(slot) from collection_sizes where collection = ${collection(kind)})`
  const time = (count: number): string => `${since} + i * ${stepOf(count)}`
  const state = `case when i % 100 = 5 then 'incident' when i % 10 < 3 then 'waiting' when i % 10 = 4 then 'denied'
    else 'completed' end`
  const isOpen = 'i % 10 < 3 or i % 100 = 5'
  const subject = `'user' || ${padded(`(1 + i % ${users})`)}`
  const requestor = `'user' || ${padded('(1 + i % 1000)')}`
  const workflow = `case when i % 10 = 1 then '${busyWorkflow}' else 'flow-' || cast(i % 50 as text) end`
  const identity = (login: string): string => `'former:' || ${login}`
  const ofWaiting = (count: number): string => `${series(count)}, waiting as (select i from series where i % 10 < 3)`
  return [
    entries('users', 'user', users, `'[["displayName",["' || ${displayName} || '"]],["mail",["' || ${mail} || '"]]]'`),
    values('displayName', `'Person ' || substr(e.name, 5)`),
    values('mail', `e.name || '@example.com'`),
    size('users', users),
    entries('groups', 'group', groups, `'[]'`),
    size('groups', groups),
    `${series(runs)} insert into runs (id, name, definition, state, subject, subject_key, subject_identity, requestor,
       requestor_key, requestor_identity, data, attempt, fence, lease_until, due, incident, touched, created, updated, ended)
     select ${id('0', 'i')}, ${workflow}, 'definition', ${state}, ${subject}, ${subject}, ${identity(subject)}, ${requestor},
       ${requestor}, ${identity(requestor)}, '{}', 1, 1, 0, 0,
       case when i % 100 = 5 then '{"task":"w:0","code":"TARGET_UNREACHABLE","message":"away","target":"people"}' end,
       0, ${time(runs)}, ${time(runs)}, case when ${isOpen} then null else ${time(runs)} end from series`,
    `${ofWaiting(runs)} insert into approvals (id, run, step, label, state, opened, allow_self, rules, data, escalation, version)
     select ${id('a', 'i')}, ${id('0', 'i')}, 1, 'Approve', 'open', ${time(runs)}, 0, '[]', '{}', 0, 1 from waiting`,
    `${ofWaiting(runs)} insert into approval_approvers (approval, approver_key, approver, open)
     select ${id('a', 'i')}, case when i % 1000 = 0 then 'former:boss' else ${identity(requestor)} end,
       case when i % 1000 = 0 then 'boss' else ${requestor} end, 1 from waiting`,
    `${series(audit)} insert into audit (id, time, requestor, requestor_key, subject, subject_key, workflow_id, workflow_name,
       target, request_id, changes, chain, chain_seq, hash)
     select ${id('c', 'i')}, ${time(audit)}, ${requestor}, ${requestor}, ${subject}, ${subject}, ${id('0', `(1 + i % ${runs})`)},
       ${workflow}, case when i % 10000 = 0 then 'rare' else 'people' end, ${id('d', 'i')},
       '[["' || ${id('c', 'i')} || '","attribute","replace","mail","' || ${mail} || '"]]', ${chain}, i, '' from series`,
    `${series(journal)} insert into journal (journal, time, request_id, caller, method, path, status, millis, details)
     select 'scim', ${time(journal)}, ${id('d', 'i')}, 'okta', 'GET', '/Users', case when i % 100 = 0 then 404 else 200 end, 3, '{}'
     from series`,
    ...(dialect === 'postgres' ? [`analyze ${filled.join(', ')}`] : []),
  ]
}
