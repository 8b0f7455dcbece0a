import { ownTarget } from '#engine/approvals/approval-audit.ts'
import { newMails } from '#engine/mail/mail-outbox.ts'
import { newAccountIn } from '#engine/workflow/saved-run.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { NewMail } from '#storage/mail-store.ts'
import type { ClaimedRun, RunEffects } from '#storage/run-store.ts'

/** A run that may only create accounts met one that it did not create. Neither a retry nor an administrator can fix that. */
export const isAccountExists = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && error.code === 'ACCOUNT_EXISTS'

/** What is committed with the end of such a run: the mail to the person who registered, those to approvers, and the audit. */
export function refusalEffects(
  { id, name, subject, requestor, caller, requestId, data }: ClaimedRun,
  { code, publicText }: GatewayError,
  informed: readonly NewMail[],
  time: Date,
): Required<Pick<RunEffects, 'mails' | 'audit'>> {
  const refusal = newAccountIn(data).newAccount?.refusal
  return {
    mails: [...(refusal === undefined ? [] : newMails(id, 0, [refusal], 'account-exists')), ...informed],
    audit: [
      {
        id: newId(),
        time,
        requestor,
        ...(caller === undefined ? {} : { caller }),
        subject,
        workflow: { id, name },
        target: ownTarget,
        kind: 'entry',
        action: 'delete',
        attribute: 'registration',
        value: code,
        reason: publicText,
        ...(requestId === undefined ? {} : { requestId }),
      },
    ],
  }
}
