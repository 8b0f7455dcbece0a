import type { AuditEntry } from '#domain/audit.ts'
import type { NewMail } from '#domain/mail.ts'
import type { ClaimedRun } from '#domain/run.ts'
import { ownTarget } from '#engine/approvals/approval-audit.ts'
import { newMails } from '#engine/mail/mail-outbox.ts'
import { newAccountIn } from '#engine/workflow/saved-run.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { AnotherSubject } from '#sdk/workflow/runs.ts'
import type { RunEffects } from '#storage/runs/run-commit.ts'

/** A run that may only create accounts met one that it did not create. Neither a retry nor an administrator can fix that. */
export const isAccountExists = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && error.code === 'ACCOUNT_EXISTS'

/** What is committed with the end of such a run: the mail to the person who registered, those to approvers, and the audit. */
export function refusalEffects(
  run: ClaimedRun,
  { code, publicText }: GatewayError,
  informed: readonly NewMail[],
  time: Date,
): Required<Pick<RunEffects, 'mails' | 'audit'>> {
  const refusal = newAccountIn(run.data).newAccount?.refusal
  const what = { action: 'delete', attribute: 'registration', value: code, reason: publicText } as const
  return {
    mails: [...(refusal === undefined ? [] : newMails(run.id, 0, [refusal], 'account-exists')), ...informed],
    audit: [rowOf(run, what, time)],
  }
}

const longest = 200

/** What is committed with the incident of a bound run that a task gave another user. */
export function anotherSubjectEffects(
  run: ClaimedRun,
  { value, publicText }: AnotherSubject,
  time: Date,
): Required<Pick<RunEffects, 'audit'>> {
  const shown = value.slice(0, longest).toWellFormed()
  const what = { action: 'refuse', attribute: 'subject', value: shown, reason: publicText } as const
  return { audit: [rowOf(run, what, time)] }
}

const rowOf = (
  { id, name, subject, requestor, caller, requestId }: ClaimedRun,
  what: Pick<AuditEntry, 'action' | 'attribute' | 'value' | 'reason'>,
  time: Date,
): AuditEntry => ({
  id: newId(),
  time,
  requestor,
  ...(caller === undefined ? {} : { caller }),
  subject,
  workflow: { id, name },
  target: ownTarget,
  kind: 'entry',
  ...what,
  ...(requestId === undefined ? {} : { requestId }),
})
