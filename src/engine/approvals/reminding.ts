import type { Approval } from '#domain/approval.ts'
import { approvalRow, byItself, loginsText } from '#engine/approvals/approval-audit.ts'
import type { ReminderRequest } from '#engine/approvals/approval-desk.ts'
import { readPlan } from '#engine/approvals/approval-plan.ts'
import { approverMails, withCaller } from '#engine/approvals/approver-mail.ts'
import { findApprovers, type OpeningParts } from '#engine/approvals/opening.ts'
import type { UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { MailText } from '#sdk/notifier/mail.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'
import type { MailStore } from '#storage/mail-store.ts'

export interface RemindingParts extends OpeningParts {
  readonly approvals: Pick<ApprovalStore, 'get' | 'listOpen' | 'reassign'>
  readonly mails: Pick<MailStore, 'add'>
  readonly log: Logger
}

const page = 100
const defaultLimit = 10_000
const dayMillis = 24 * 60 * 60 * 1000
const defaultMessage = 'The request "%L" has been waiting for your decision for %D days.'

/** Oldest first, so that none is skipped forever. A failure of one does not stop the others. */
export async function remind(request: ReminderRequest, parts: RemindingParts): Promise<number> {
  const { openForMillis, limit = defaultLimit, signal } = request
  const openedBefore = new Date(parts.clock().getTime() - openForMillis)
  let seen = 0
  let reminded = 0
  let after: string | undefined
  while (seen < limit && !isAborted(signal)) {
    const { approvals, next } = await parts.approvals.listOpen(openedBefore, {
      limit: Math.min(page, limit - seen),
      ...(after === undefined ? {} : { after }),
    })
    for (const { id } of approvals) {
      if (isAborted(signal)) return reminded
      seen++
      try {
        if (await remindOf(id, request, parts)) reminded++
      } catch (err) {
        parts.log.warn('approvers could not be reminded', { approval: id, err })
      }
    }
    if (next === undefined) break
    after = next
  }
  return reminded
}

const isAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted === true

/** False if it is no longer open, or has no one to notify. */
async function remindOf(id: string, request: ReminderRequest, parts: RemindingParts): Promise<boolean> {
  const approval = await parts.approvals.get(id)
  if (approval?.state !== 'open') return false
  const plan = readPlan(approval.rules)
  const { involved } = plan
  const approvers = await findApprovers(plan.approvers, approval.allowSelf ? undefined : involved, parts.finder)
  if (approvers.length === 0) {
    parts.log.error('an open approval has no approvers left', { approval: id, label: approval.label })
    return false
  }
  const logins = approvers.map(({ login }) => login)
  const changed = !sameUsers(approvers, approval.approvers)
  const address = plan.mail?.address ?? request.mailAttribute
  const version = approval.version + (changed ? 1 : 0)
  const about = {
    run: approval.run,
    step: approval.step,
    occasion: `${id} reminder ${request.key}`,
    approval: { id, version },
    involved,
  }
  const text = withCaller({ ...reminderText(approval, request, parts.clock()), ...pick(plan.mail) }, approval)
  const mails = address === undefined ? [] : await approverMails(approvers, { ...text, address }, about, parts)
  if (!changed) {
    if (mails.length > 0) await parts.mails.add(mails)
    return mails.length > 0
  }
  try {
    await parts.approvals.reassign({
      approval: id,
      version: approval.version,
      approvers: approvers.map(({ login, identity }) => ({ login, identity })),
      rules: approval.rules,
      escalation: approval.escalation,
      audit: [approvalRow(approval, byItself, parts.clock(), `now with ${loginsText(logins)}`)],
      mails,
      timers: [],
    })
  } catch (error) {
    // Decided or reassigned just now: those approvers have their mail.
    if (error instanceof GatewayError && (error.code === 'CONFLICT' || error.code === 'VERSION_MISMATCH')) return false
    throw error
  }
  return mails.length > 0
}

const pick = (mail: MailText | undefined): Pick<MailText, 'notifier'> =>
  mail?.notifier === undefined ? {} : { notifier: mail.notifier }

function reminderText({ label, opened }: Approval, { message = defaultMessage }: ReminderRequest, now: Date): MailText {
  const days = Math.max(0, Math.floor((now.getTime() - opened.getTime()) / dayMillis))
  const values: Readonly<Record<string, string>> = { L: label, D: String(days) }
  return {
    subject: `Reminder: ${label}`.replace(/\p{Cc}+/gu, ' ').slice(0, 200),
    text: message.replace(/%([LD])/g, (_, name: string) => values[name] ?? ''),
  }
}

function sameUsers(one: readonly UserRef[], two: readonly UserRef[]): boolean {
  const keys = (users: readonly UserRef[]) => new Set(users.map(({ identity }) => identity))
  const [a, b] = [keys(one), keys(two)]
  return a.size === b.size && [...a].every((key) => b.has(key))
}
