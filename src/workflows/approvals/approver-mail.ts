import { isDeactivated } from '#identity/attributes.ts'
import { loginIdentity } from '#identity/identity.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { RateLimits } from '#kernel/rate-limit.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { type PortalLinks, withLinks, withSentences } from '#mail/mail-links.ts'
import { channelMessage, newMails } from '#mail/mail-outbox.ts'
import { anyReader, type MailReader, readerOf, withReaders } from '#mail/mail-reader.ts'
import { isMailAddress, type MailSentence, type MailText, type StepMail } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import type { Texts } from '#sdk/page/page-texts.ts'
import type { ApproverMail } from '#sdk/workflow/approval-request.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { DelegationStore } from '#workflows/store/delegation-store.ts'
import type { LinkedApproval, LinksFor } from './approval-links.ts'
import type { Approver, ApproverFinder } from './approvers.ts'
import { readPlan } from './approvers.ts'
import { barOf, type DecisionParties } from './decision-influence.ts'

/** Deputies get mails only if there are at most this many approvers. */
const maxRepresented = 100
const maxAddresses = 3

export interface ApproverMailParts {
  readonly finder: ApproverFinder
  readonly delegations: Pick<DelegationStore, 'deputiesOf'>
  readonly linksFor?: LinksFor
  /** Pages of the portal. */
  readonly pages?: PortalLinks | undefined
  /** Without it, every approver is mailed. */
  readonly choices?: MailChoices
  /** Limits the mails about new requests of one requester. */
  readonly rateLimits: RateLimits
}

/** To one approver or channel: more than someone decides in an hour; the portal and digests have the rest. */
const mailRate = { burst: 100, perMinute: 2 }
/** To all of them. An approval may have a thousand approvers. */
const totalRate = { burst: 2_000, perMinute: 40 }
/** Limits that are asked at the same time. */
const asksAtOnce = 8

interface MailOccasion {
  /** What is written about it: that a decision is needed, or a reminder. */
  readonly subject: 'mail.approval' | 'mail.reminder'
  readonly label: string
  readonly run: RunHead
  readonly step: number
  /** Distinguishes mails about one approval at different times. */
  readonly occasion: string
  /** As it will be stored. */
  readonly approval: LinkedApproval
  /** Deputies who may not decide get no mail. */
  readonly parties: DecisionParties
}

/** Approvers see who submitted the request, if that is not the requester. */
async function callerSentence(
  { requester, caller, who }: RunHead,
  finder: Pick<ApproverFinder, 'nameOf'>,
): Promise<readonly MailSentence[]> {
  if (caller === undefined || sameLogin(caller, requester)) return []
  const nameOf = (login: string, identity = loginIdentity(login)): Promise<string> =>
    finder.nameOf({ login, identity }, { withLogin: true })
  const values = { name: await nameOf(requester, who.requester), caller: await nameOf(caller, who.caller) }
  return [{ key: 'mail.inNameOf', values }]
}

/** The configured text, or one that Gatehouse writes in the language of each approver. */
export interface ApproverMessage extends Omit<ApproverMail, 'text'> {
  readonly text: string | ((reader: MailReader) => string)
}

/**
 * Mails to approvers and their current deputies, each with their own links, and a message to the channel if there is one.
 * Those who chose no mail as it happens get none, unless the mail is required.
 */
export async function approverMails(
  approvers: readonly Approver[],
  mail: ApproverMessage,
  about: MailOccasion,
  { finder, delegations, linksFor, choices, rateLimits }: ApproverMailParts,
): Promise<NewMail[]> {
  const { address, channel, required, text, ...way } = mail
  const sentences = await callerSentence(about.run, finder)
  const messageFor = (reader: MailReader): MailText => {
    const subject = oneLine(reader.texts(about.subject, { label: about.label }), 300)
    const plain = { ...way, subject, text: typeof text === 'string' ? text : text(reader) }
    return withSentences<MailText>(
      plain,
      sentences.map(({ key, values }) => reader.texts(key, values)),
    )
  }
  const recipients = [...approvers]
  if (approvers.length <= maxRepresented) {
    for (const approver of approvers) {
      for (const deputy of await delegations.deputiesOf(approver)) {
        const [entry] = await finder.entriesOf(deputy)
        if (entry === undefined || isDeactivated(entry.attributes)) continue
        if (barOf(about.parties, deputy, [entry], { forOthers: true }) !== undefined) continue
        const { identity } = entry
        if (recipients.some((one) => one.identity === identity)) continue
        recipients.push({ login: deputy.login, identity, entry })
      }
    }
  }
  const identities = recipients.map(({ identity }) => identity)
  const wanting = required === true ? undefined : await choices?.mailedNow('approval', identities)
  const mails: StepMail[] = []
  const requester = about.run.who.requester ?? about.run.requester
  const isWithinLimit = async (recipient: string): Promise<boolean> => {
    if (about.subject === 'mail.reminder') return true
    const key = JSON.stringify([requester, recipient])
    if ((await rateLimits.take('mails of one requester to one approver', key, mailRate)) !== undefined) return false
    return (await rateLimits.take('mails of one requester', requester, totalRate)) === undefined
  }
  const within = await inParallel(
    recipients,
    asksAtOnce,
    async ({ identity }) => wanting?.has(identity) !== false && (await isWithinLimit(identity)),
  )
  const wanted = recipients.filter((_, i) => within[i])
  for (const [{ login, identity, entry }, reader] of await withReaders(wanted, (one) => one.entry, choices)) {
    const addresses = entry.attributes.values(address).filter(isMailAddress).slice(0, maxAddresses)
    if (addresses.length === 0) continue
    const links = await linksFor?.(about.approval, { login, identity }, reader.texts)
    const said = withLinks(messageFor(reader), links ?? [])
    for (const recipient of addresses) mails.push({ ...said, recipient })
  }
  const messages = newMails(about.run.id, about.step, mails, about.occasion)
  if (channel === undefined || !(await isWithinLimit(`channel ${channel}`))) return messages
  const links = (await linksFor?.(about.approval, undefined, anyReader.texts)) ?? []
  const message = { ...messageFor(anyReader), notifier: channel, links }
  return [...messages, channelMessage(about.run.id, about.step, message, about.occasion)]
}

/** Mails to the approvers of a run that ended without the approved change. */
export async function deciderMails(
  run: string,
  write: (texts: Texts) => string,
  {
    approvals,
    finder,
    pages,
    choices,
  }: Pick<ApproverMailParts, 'finder' | 'pages' | 'choices'> & { readonly approvals: ApprovalStore },
): Promise<NewMail[]> {
  const mails: StepMail[] = []
  for (const { id, state } of await approvals.listOfRun(run)) {
    const approval = state === 'approved' ? await approvals.get(id) : undefined
    if (approval?.decision?.by === undefined) continue
    // No digest has it, so that only those who want no mail at all go without.
    if ((await choices?.isNeverMailed('approval', approval.decision.by.identity)) === true) continue
    const { address = 'mail', notifier } = readPlan(approval.rules).mail ?? {}
    const [entry] = await finder.entriesOf(approval.decision.by)
    const addresses = entry?.attributes.values(address).filter(isMailAddress).slice(0, maxAddresses) ?? []
    const { texts } = await readerOf(entry, choices)
    const subject = oneLine(texts('mail.notDone', { label: approval.label }), 300)
    const links = pages === undefined ? [] : [pages.approval(id, texts)]
    const said = withLinks({ subject, text: write(texts), ...(notifier === undefined ? {} : { notifier }) }, links)
    mails.push(...addresses.map((recipient) => ({ ...said, recipient })))
  }
  return newMails(run, 0, mails, 'came to nothing')
}
