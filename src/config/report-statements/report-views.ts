import { formerTable } from '#openunison/report-tables/former-tables.ts'

/** All views that a report can read, with their columns in order; the migrations create them. */
export const reportViews: Readonly<Record<string, readonly string[]>> = {
  report_requests: [
    'id',
    'workflow',
    'state',
    'subject',
    'requestor',
    'caller',
    'reason',
    'started',
    'updated',
    'ended',
    'deadline',
  ],
  report_steps: ['request', 'number', 'attempt', 'type', 'label', 'outcome', 'started', 'ended'],
  report_approvals: [
    'id',
    'request',
    'label',
    'state',
    'decided_by',
    'on_behalf_of',
    'comment',
    'escalation',
    'opened',
    'decided',
    'workflow',
    'subject',
    'requestor',
    'reason',
    'requested',
  ],
  report_approvers: ['approval', 'approver'],
  report_changes: [
    'record',
    'number',
    'request',
    'workflow',
    'target',
    'subject',
    'requestor',
    'caller',
    'approval',
    'reason',
    'kind',
    'action',
    'attribute',
    'value',
    'at',
  ],
  report_logins: ['login', 'chain', 'application', 'outcome', 'details', 'at'],
  report_tokens: ['subject', 'endpoint', 'outcome', 'details', 'at'],
  report_grants: ['id', 'target', 'subject', 'kind', 'name', 'state', 'request', 'granted', 'expires'],
  report_delegations: ['login', 'deputy', 'starts', 'ends'],
  report_people: ['directory', 'login', 'first_name', 'last_name', 'display_name', 'email', 'created', 'modified'],
  report_memberships: ['directory', 'group_name', 'login'],
}

/** What to read instead of a table that reports can't see; undefined if there is nothing similar. */
export const viewInsteadOf = (table: string): string | undefined => {
  const view = `report_${table.toLowerCase()}`
  return formerTable(table)?.instead ?? (Object.hasOwn(reportViews, view) ? view : undefined)
}
