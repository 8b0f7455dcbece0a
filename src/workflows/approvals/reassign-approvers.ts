import type { AuditStore } from '#audit/store/audit-store.ts'
import { isDeactivated } from '#identity/attributes.ts'
import { loginIdentity, type UserRef } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import type { MailStore } from '#mail/mail-store.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { ApproverMail } from '#sdk/workflow/approval-request.ts'
import type { Approval } from '#workflows/record/approval.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { ClaimedTimer } from '#workflows/timers/timer.ts'
import type { TimerOutcome } from '#workflows/timers/timer-loop.ts'
import { approvalRow, gatewayActor, loginsText } from './approval-audit.ts'
import { type ApproverMessage, approverMails } from './approver-mail.ts'
import type { Approver, ApproverFinder } from './approvers.ts'
import { type ApprovalPlan, readPlan, storePlan } from './approvers.ts'
import { findApprovers, type OpeningParts } from './open-approval.ts'

interface EscalatingParts extends OpeningParts {
  readonly approvals: ApprovalStore
  readonly audit: Pick<AuditStore, 'append'>
  readonly log: Logger
}

/** How soon a timer is retried after a concurrent change of the same approval. */
const againMillis = 1_000

/**
 * Assigns an undecided approval to the approvers of its next escalation. Late or reordered timers never move an
 * approval back. A decided approval stays unchanged.
 */
export async function escalate(timer: ClaimedTimer, parts: EscalatingParts): Promise<TimerOutcome> {
  const approval = timer.approval === undefined ? undefined : await parts.approvals.get(timer.approval)
  const { escalation: step } = timer.data
  if (approval?.state !== 'open' || typeof step !== 'number' || step <= approval.escalation) return 'done'
  const plan = readPlan(approval.rules)
  const next = plan.escalations[step - 1]
  if (next?.onlyIf !== undefined && !(await applies(next.onlyIf, approval, parts))) {
    await note(approval, `escalation ${step} was not called for`, parts)
    return 'done'
  }
  const rules = [next?.approvers, plan.failure].filter((some) => some !== undefined)
  const found = await firstFound(rules, approval, plan, parts)
  if (found === undefined) {
    parts.log.error('escalation failed: no approver found', { approval: approval.id, label: approval.label, step })
    await note(approval, `escalation ${step} found no approver`, parts)
    return 'done'
  }
  const { assigned: _, ...others } = plan
  return await reassign(approval, { ...others, approvers: found.rules }, found.approvers, step, timer, parts)
}

async function applies(
  rule: Rule,
  { run: { subject, who } }: Approval,
  { authority, finder }: EscalatingParts,
): Promise<boolean> {
  return await authority.passes(
    [rule],
    await finder.entriesOf({ login: subject, identity: who.subject ?? loginIdentity(subject) }),
  )
}

async function firstFound(
  choices: readonly (readonly Rule[])[],
  { id, allowSelf }: Approval,
  plan: ApprovalPlan,
  { finder, log }: EscalatingParts,
): Promise<{ readonly rules: readonly Rule[]; readonly approvers: readonly Approver[] } | undefined> {
  for (const rules of choices) {
    try {
      const approvers = await findApprovers(rules, { ...plan, allowSelf }, finder)
      if (approvers.length > 0) return { rules, approvers }
    } catch (err) {
      if (!(err instanceof GatewayError) || err.code !== 'NO_APPROVERS') throw err
      log.error('too many were found to escalate to', { approval: id, err })
    }
  }
  return undefined
}

async function reassign(
  approval: Approval,
  plan: ApprovalPlan,
  approvers: readonly Approver[],
  escalation: number,
  timer: ClaimedTimer,
  parts: EscalatingParts,
): Promise<TimerOutcome> {
  const { id, run, step, version, label } = approval
  const { mail } = plan
  const occasion = `${id} ${escalation}`
  const about = {
    subject: 'mail.approval',
    label,
    run,
    parties: plan,
    step,
    occasion,
    approval: { id, version: version + 1 },
  } as const
  const logins = approvers.map(({ login }) => login)
  try {
    await parts.approvals.reassign({
      approval: id,
      version,
      approvers: approvers.map(({ login, identity }) => ({ login, identity })),
      rules: storePlan(plan),
      escalation,
      audit: [approvalRow(approval, gatewayActor, parts.clock(), `escalated to ${loginsText(logins)}`)],
      mails: mail === undefined ? [] : await approverMails(approvers, mail, about, parts),
      timers: [],
      timer,
    })
    return 'ended'
  } catch (error) {
    const code = error instanceof GatewayError ? error.code : undefined
    // Decided, or its run ended: the timer was deleted with it. Changed in another way: look again later.
    if (code === 'CONFLICT' || code === 'NOT_FOUND') return 'done'
    if (code === 'VERSION_MISMATCH') return { again: { inMillis: againMillis } }
    throw error
  }
}

const note = (approval: Approval, text: string, { audit, clock }: EscalatingParts): Promise<void> =>
  audit.append([approvalRow(approval, gatewayActor, clock(), text)])

export interface ReminderRequest {
  /** Approvals that have been open for at least this long. */
  readonly openForMillis: number
  /** Identifies the reminder, such as the job's due time. No user gets a second reminder with the same key. */
  readonly key: string
  /** `%L` is the label, `%D` the number of days since it was opened. Absent: in the language of each approver. */
  readonly message?: string
  /** The attribute with approvers' addresses, for approvals that name none. */
  readonly mailAttribute?: string
  /** The maximum number of approvals, oldest first; 10,000 if absent. */
  readonly limit?: number
  /** Stops between two approvals. */
  readonly signal?: AbortSignal
}

interface RemindingParts extends OpeningParts {
  readonly approvals: ApprovalStore
  readonly mails: Pick<MailStore, 'add'>
  readonly log: Logger
}

const page = 100
const defaultLimit = 10_000
const dayMillis = 24 * 60 * 60 * 1000

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
  const approvers =
    plan.assigned === undefined
      ? await findApprovers(plan.approvers, { ...plan, allowSelf: approval.allowSelf }, parts.finder)
      : await assignedApprovers(approval, parts.finder)
  if (approvers.length === 0) {
    parts.log.error('an open approval has no approvers left', { approval: id, label: approval.label })
    return false
  }
  const logins = approvers.map(({ login }) => login)
  const changed = !sameUsers(approvers, approval.approvers)
  const address = plan.mail?.address ?? request.mailAttribute
  const version = approval.version + (changed ? 1 : 0)
  const about = {
    subject: 'mail.reminder',
    label: approval.label,
    run: approval.run,
    step: approval.step,
    occasion: `${id} reminder ${request.key}`,
    approval: { id, version },
    parties: plan,
  } as const
  const message = { text: reminderText(approval, request, parts.clock()), ...waysOf(plan.mail) }
  const mails = address === undefined ? [] : await approverMails(approvers, { ...message, address }, about, parts)
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
      audit: [approvalRow(approval, gatewayActor, parts.clock(), `now with ${loginsText(logins)}`)],
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

/** The users whom it was given to, as far as they are active. */
async function assignedApprovers({ approvers }: Approval, finder: ApproverFinder): Promise<readonly Approver[]> {
  const found = await Promise.all(
    approvers.map(async (ref) => (await finder.entriesOf(ref)).map((entry) => ({ ...ref, entry }))),
  )
  return found.flat().filter(({ entry }) => !isDeactivated(entry.attributes))
}

/** How the approval sends its messages. */
const waysOf = (mail: Partial<ApproverMail> = {}): Pick<ApproverMail, 'notifier' | 'channel' | 'required'> => ({
  ...(mail.notifier === undefined ? {} : { notifier: mail.notifier }),
  ...(mail.channel === undefined ? {} : { channel: mail.channel }),
  ...(mail.required === undefined ? {} : { required: mail.required }),
})

function reminderText({ label, opened }: Approval, { message }: ReminderRequest, now: Date): ApproverMessage['text'] {
  const days = Math.max(0, Math.floor((now.getTime() - opened.getTime()) / dayMillis))
  if (message === undefined) {
    return ({ language, texts }) => {
      const time = new Intl.NumberFormat(language, { style: 'unit', unit: 'day', unitDisplay: 'long' }).format(days)
      return texts('mail.reminderText', { label, time })
    }
  }
  const values: Readonly<Record<string, string>> = { L: label, D: String(days) }
  return message.replace(/%([LD])/g, (_, name: string) => values[name] ?? '')
}

function sameUsers(one: readonly UserRef[], two: readonly UserRef[]): boolean {
  const keys = (users: readonly UserRef[]) => new Set(users.map(({ identity }) => identity))
  const [a, b] = [keys(one), keys(two)]
  return a.size === b.size && [...a].every((key) => b.has(key))
}
