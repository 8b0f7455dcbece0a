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

/** The replacements of OpenUnison's tables, by table in lower case. */
const formerTables: Readonly<Record<string, string>> = {
  workflows: 'report_requests',
  workflowparameters: 'report_requests',
  approvals: 'report_approvals',
  allowedapprovers: 'report_approvers',
  approvers: 'report_people for names, and "decided_by" of report_approvals for who decided',
  approverattributes: 'report_people',
  users: 'report_people for names, and "subject" of the other views for logins',
  userattributes: 'report_people',
  groups: 'report_memberships',
  usergroups: 'report_memberships',
  auditlogs: 'report_changes',
  auditlogtype: '"action" of report_changes',
  targets: '"target" of report_changes',
  escalation: '"escalation" of report_approvals',
}

/** What to read instead of a table that reports can't see; undefined if there is nothing similar. */
export const viewInsteadOf = (table: string): string | undefined => {
  const name = table.toLowerCase()
  if (Object.hasOwn(formerTables, name)) return formerTables[name]
  return Object.hasOwn(reportViews, `report_${name}`) ? `report_${name}` : undefined
}
