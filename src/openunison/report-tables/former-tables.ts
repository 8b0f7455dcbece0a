import type { SqlToken } from '#protocols/sql/sql-tokens.ts'

/** What else a `select` reads that names a former table; it decides which rows the table needs. */
export interface TableUse {
  /** Only rows that belong to a stored request can be in the result. */
  readonly requestsOnly: boolean
  /** Runs that OpenUnison starts at each login are asked for. */
  readonly logins: boolean
}

/** A table of OpenUnison's database. */
interface FormerTable {
  /** What to read instead, for people. */
  readonly instead: string
  /** The columns that we have, in lower case; absent if the table has no counterpart. */
  readonly columns?: readonly string[]
  /** The same rows and columns, from our views, in SQL that SQLite and PostgreSQL understand. */
  readonly select?: (use: TableUse) => string
}

/** The workflow that OpenUnison's portals run at each login, and by which their reports find logins. */
export const loginWorkflow = 'jitdb'

/** The attributes of users that views have, in OpenUnison's spelling, and their columns. */
const attributeColumns = {
  givenname: 'first_name',
  sn: 'last_name',
  displayname: 'display_name',
  mail: 'email',
  uid: 'login',
} as const

export const knownAttributes: readonly string[] = Object.keys(attributeColumns)

/** Several directories may have the login; a user has one value of each attribute. */
const attributesBy = (owner: string): string =>
  Object.entries(attributeColumns)
    .map(
      ([name, column]) =>
        `select lower(login) as ${owner}, '${name}' as name, min(${column}) as value from report_people where ${column} is not null group by lower(login)`,
    )
    .join(' union all ')

const logins = (column: string, view: string, condition = `${column} is not null`): string =>
  `select lower(${column}) as id, lower(${column}) as userkey from ${view} where ${condition}`

const requestUsers = `${logins('subject', 'report_requests')} union ${logins('requestor', 'report_requests')}`
const allUsers = `${requestUsers} union ${logins('subject', 'report_changes')} union ${logins('login', 'report_logins', "outcome = 'login' and login is not null")}`

const requests = `select id, workflow as name, workflow as label, started as startts, ended as completets, lower(subject) as userid, lower(requestor) as requesterid, reason as requestreason from report_requests`
/** A synchronous run is stored only if it has to wait, but its changes are in the audit. */
const otherRuns = `select request as id, min(workflow) as name, min(workflow) as label, min(at) as startts, max(at) as completets, lower(min(subject)) as userid, lower(min(requestor)) as requesterid, min(reason) as requestreason from report_changes where request is not null and not exists (select 1 from report_requests where report_requests.id = report_changes.request) group by request`
const loginRuns = `select '' as id, '${loginWorkflow}' as name, '${loginWorkflow}' as label, at as startts, at as completets, lower(login) as userid, lower(login) as requesterid, '' as requestreason from report_logins where outcome = 'login' and login is not null`

/** By name in lower case. Users, and approvers, are identified by their login in lower case. */
export const formerTables: Readonly<Record<string, FormerTable>> = {
  workflows: {
    instead: 'report_requests',
    columns: ['id', 'name', 'label', 'startts', 'completets', 'userid', 'requesterid', 'requestreason'],
    select: (use) =>
      [requests, ...(use.requestsOnly ? [] : [otherRuns]), ...(use.logins ? [loginRuns] : [])].join(' union all '),
  },
  workflowparameters: { instead: 'report_requests' },
  approvals: {
    instead: 'report_approvals',
    columns: ['id', 'label', 'workflow', 'createts', 'approved', 'approvedts', 'approver', 'reason'],
    select: () =>
      `select id, label, request as workflow, opened as createts, case state when 'approved' then 1 when 'denied' then 0 end as approved, decided as approvedts, lower(decided_by) as approver, comment as reason from report_approvals where state <> 'cancelled'`,
  },
  allowedapprovers: {
    instead: 'report_approvers',
    columns: ['approval', 'approver'],
    select: () => 'select distinct approval, lower(approver) as approver from report_approvers',
  },
  approvers: {
    instead: 'report_people for names, and "decided_by" of report_approvals for who decided',
    columns: ['id', 'userkey'],
    select: () => `${logins('approver', 'report_approvers')} union ${logins('decided_by', 'report_approvals')}`,
  },
  approverattributes: {
    instead: 'report_people',
    columns: ['approverid', 'name', 'value'],
    select: () => attributesBy('approverid'),
  },
  users: {
    instead: 'report_people for names, and "subject" of the other views for logins',
    columns: ['id', 'userkey'],
    select: (use) => (use.requestsOnly ? requestUsers : allUsers),
  },
  userattributes: {
    instead: 'report_people',
    columns: ['userid', 'name', 'value'],
    select: () => attributesBy('userid'),
  },
  groups: { instead: 'report_memberships' },
  usergroups: { instead: 'report_memberships' },
  auditlogs: {
    instead: 'report_changes',
    columns: ['isentry', 'actiontype', 'workflow', 'attribute', 'val', 'userid', 'target', 'approval'],
    select: () =>
      `select case kind when 'entry' then 1 else 0 end as isentry, case action when 'add' then 1 when 'delete' then 2 else 3 end as actiontype, request as workflow, attribute, value as val, lower(subject) as userid, target, approval from report_changes where action in ('add', 'delete', 'replace')`,
  },
  auditlogtype: {
    instead: '"action" of report_changes',
    columns: ['id', 'name'],
    select: () => `select 1 as id, 'Add' as name union all select 2, 'Delete' union all select 3, 'Replace'`,
  },
  targets: {
    instead: '"target" of report_changes',
    columns: ['id', 'name'],
    select: () => 'select distinct target as id, target as name from report_changes where target is not null',
  },
  escalation: { instead: '"escalation" of report_approvals' },
}

export const formerTable = (name: string): FormerTable | undefined => {
  const folded = name.toLowerCase()
  return Object.hasOwn(formerTables, folded) ? formerTables[folded] : undefined
}

/** A former table in a `from`, to be read from our views. */
export interface ReplacedTable {
  /** The place of its name among the tokens. */
  readonly at: number
  readonly name: string
  /** The name that the rest of the statement knows it by; undefined if that is its own. */
  readonly alias: string | undefined
  use: TableUse
}

/** Columns of former tables that views do not have, each with advice. */
export function unknownColumns(tokens: readonly SqlToken[], tables: readonly ReplacedTable[]): string[] {
  const known = new Map<string, string | undefined>()
  for (const { name, alias = name } of tables) {
    const folded = alias.toLowerCase()
    // A name that means several tables is left to the database.
    known.set(folded, known.has(folded) && known.get(folded) !== name ? undefined : name)
  }
  const isName = (token: SqlToken | undefined): token is SqlToken => token?.kind === 'word' || token?.kind === 'name'
  const problems = tokens.flatMap((token, i) => {
    const [dot, column] = [tokens[i + 1], tokens[i + 2]]
    if (!isName(token) || dot?.value !== '.' || dot.kind !== 'sign' || !isName(column)) return []
    const table = known.get(token.value.toLowerCase())
    if (table === undefined || tokens[i - 1]?.value === '.') return []
    const { columns = [], instead = '' } = formerTable(table) ?? {}
    if (columns.includes(column.value.toLowerCase())) return []
    return [`reads "${column.value}" of "${table}", which has no counterpart here: use ${instead}`]
  })
  return [...new Set(problems)]
}

/** For a statement that is not understood: the views for OpenUnison's tables that it seems to read. */
export function viewsInstead(sql: string): string {
  const named = Array.from(
    sql.slice(0, 20_000).matchAll(/\b(?:from|join)\s+[[`"]?(\w{1,40})/gi),
    ([, name = '']) => name,
  )
  const advice = new Map(
    named.flatMap((name) => {
      const instead = formerTable(name)?.instead
      return instead === undefined ? [] : [[name.toLowerCase(), `${name}: use ${instead}`] as const]
    }),
  )
  return advice.size === 0 ? '' : `. For OpenUnison's tables: ${[...advice.values()].join('; ')}`
}
