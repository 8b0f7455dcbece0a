import type { Generated } from 'kysely'
import type { ApprovalState } from '#domain/approval.ts'
import type { Grant } from '#domain/grant.ts'
import type { RunState } from '#domain/run.ts'
import type { JobRun } from '#storage/job-run-store.ts'

/** The tables of durable workflows. Times are milliseconds since 1970, by the clock of the database. */
export interface WorkflowSchema {
  definitions: { hash: string; name: string; body: string; created: number }
  runs: RunTable
  steps: StepTable
  approvals: ApprovalTable
  approval_approvers: { approval: string; approver_key: string; approver: string; open: number }
  timers: TimerTable
  mails: MailTable
  grants: GrantTable
  delegations: DelegationTable
  job_runs: JobRunTable
  idempotency: IdempotencyTable
}

interface RunTable {
  seq: Generated<number>
  id: string
  name: string
  definition: string
  state: RunState
  subject: string
  subject_key: string
  requestor: string
  requestor_key: string
  caller: string | null
  requestor_identity: string | null
  caller_identity: string | null
  subject_identity: string | null
  reason: string | null
  request_id: string | null
  data: string
  signal: string | null
  secret: string | null
  attempt: number
  fence: number
  worker: string | null
  lease_until: number
  due: number
  deadline: number | null
  access_ends: number | null
  incident: string | null
  cancel: string | null
  touched: number
  created: number
  updated: number
  ended: number | null
}

interface StepTable {
  seq: Generated<number>
  run: string
  number: number
  attempt: number
  task: string
  task_type: string
  label: string | null
  started: number
  ended: number
  outcome: string
  error: string | null
}

interface ApprovalTable {
  id: string
  run: string
  step: number
  label: string
  state: ApprovalState
  opened: number
  decided: number | null
  decided_by: string | null
  decided_identity: string | null
  on_behalf_of: string | null
  comment: string | null
  allow_self: number
  rules: string
  data: string
  access_ends: number | null
  new_account: number
  escalation: number
  version: number
}

interface TimerTable {
  id: string
  kind: string
  due: number
  run: string | null
  approval: string | null
  data: string
  fence: number
  lease_until: number
}

interface MailTable {
  id: string
  run: string | null
  step: number | null
  recipient: string
  subject: string
  body: string
  html: string | null
  notifier: string | null
  state: 'queued' | 'sent' | 'failed'
  /** When the hand-over of this attempt began; a queued mail that has one and is nobody's is of unknown fate. */
  handed_over: number | null
  attempt: number
  due: number
  fence: number
  lease_until: number
  error: string | null
  updated: number
}

interface GrantTable {
  id: string
  target: string
  subject: string
  subject_key: string
  kind: Grant['kind']
  name: string
  name_key: string
  granted: number
  expires: number
  run: string | null
  state: Grant['state']
}

interface DelegationTable {
  id: string
  login: string
  login_key: string
  deputy: string
  deputy_key: string
  starts: number
  ends: number
}

interface JobRunTable {
  name: string
  due: number
  state: JobRun['state']
  worker: string
  fence: number
  lease_until: number
  started: number
  ended: number | null
  error: string | null
}

interface IdempotencyTable {
  scope: string
  key: string
  body_hash: string
  run: string
  response: string | null
  lease_until: number | null
  created: number
}
