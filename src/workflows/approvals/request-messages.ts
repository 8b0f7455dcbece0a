import { loginIdentity, type UserRef } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { type PortalLinks, withLinks } from '#mail/mail-links.ts'
import { newMails } from '#mail/mail-outbox.ts'
import { readerOf } from '#mail/mail-reader.ts'
import { isMailAddress } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Approval, NewRequestMessage } from '#workflows/record/approval.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import { type Actor, approvalRow } from './approval-audit.ts'
import type { ApproverFinder } from './approvers.ts'
import { readPlan } from './approvers.ts'

interface MessageParts {
  readonly approvals: ApprovalStore
  readonly finder: ApproverFinder
  readonly clock: Clock
  /** Pages of the portal. */
  readonly pages?: PortalLinks | undefined
  /** Without it, everyone is mailed. */
  readonly choices?: MailChoices
}

interface Said {
  readonly by: UserRef
  readonly text: string
  readonly actor: Actor
}

/** An approver asks the requester, who gets a mail. Throws CONFLICT if the approval is not open. */
export async function askRequester(approval: Approval, { by, text, actor }: Said, parts: MessageParts): Promise<void> {
  const { requester, who } = approval.run
  const message: NewRequestMessage = { id: newId(), kind: 'question', by, text }
  await parts.approvals.addMessage({
    approval: approval.id,
    message,
    audit: [approvalRow(approval, actor, parts.clock(), 'asked the requester')],
    mails: await mailsTo(
      { login: requester, identity: who.requester ?? loginIdentity(requester) },
      message,
      approval,
      parts,
    ),
  })
}

/**
 * The requester answers, and the user who asked last gets a mail. Throws CONFLICT if there is no question, or no approval
 * of the run is open.
 */
export async function answerApprover(run: string, { by, text, actor }: Said, parts: MessageParts): Promise<void> {
  const open = (await parts.approvals.listOfRun(run)).find(({ state }) => state === 'open')
  const approval = open && (await parts.approvals.get(open.id))
  const question = (await parts.approvals.messagesOf(run)).findLast(({ kind }) => kind === 'question')
  if (approval === undefined || question === undefined) {
    throw new GatewayError('CONFLICT', `the run ${run} has no open question`, {
      publicText: 'No one waits for an answer.',
    })
  }
  const message: NewRequestMessage = { id: newId(), kind: 'answer', by, text }
  await parts.approvals.addMessage({
    approval: approval.id,
    message,
    audit: [approvalRow(approval, actor, parts.clock(), 'answered')],
    mails: await mailsTo(question.by, message, approval, parts),
  })
}

const maxAddresses = 3
const subjects = { question: 'mail.question', answer: 'mail.answer' } as const

/** None for an approval that sends no mails, or to a user who chose none as it happens. */
async function mailsTo(
  to: UserRef,
  { id, kind, by, text }: NewRequestMessage,
  { id: approval, run, step, label, rules }: Approval,
  { finder, pages, choices }: MessageParts,
): Promise<readonly NewMail[]> {
  const { mail } = readPlan(rules)
  if (mail === undefined) return []
  const [entry] = await finder.entriesOf(to)
  if (entry !== undefined && (await choices?.isMailedNow('question', entry.identity)) === false) return []
  const addresses = entry?.attributes.values(mail.address).filter(isMailAddress).slice(0, maxAddresses) ?? []
  const { texts } = await readerOf(entry, choices)
  const plain = {
    subject: oneLine(texts(subjects[kind], { label }), 300),
    text: `${texts('mail.writes', { name: await finder.nameOf(by) })}\n\n${text}\n`,
    ...(mail.notifier === undefined ? {} : { notifier: mail.notifier }),
  }
  // The requester sees the request, and the approver the approval.
  const page = kind === 'question' ? pages?.request(run.id, texts) : pages?.approval(approval, texts)
  const said = withLinks(plain, page === undefined ? [] : [page])
  const mails = addresses.map((recipient) => ({ ...said, recipient }))
  return newMails(run.id, step, mails, id)
}
