import type { NewMail } from '#domain/mail.ts'
import type { Run } from '#domain/run.ts'
import { isInvolved } from '#engine/approvals/approval-authority.ts'
import type { LinkedApproval, LinksFor } from '#engine/approvals/approval-links.ts'
import { type Involved, readPlan } from '#engine/approvals/approval-plan.ts'
import type { Approver, ApproverFinder } from '#engine/approvals/approver-finder.ts'
import type { MailChoices } from '#engine/mail/mail-choices.ts'
import { endingWith, type PortalLinks, withLinks } from '#engine/mail/mail-links.ts'
import { channelMessage, newMails } from '#engine/mail/mail-outbox.ts'
import { isDeactivated } from '#identity/attributes.ts'
import { formerIdentity } from '#identity/identity.ts'
import { escapeHtml } from '#kernel/html.ts'
import { oneLine } from '#kernel/one-line.ts'
import { isMailAddress, type MailText, type StepMail } from '#sdk/notifier/mail.ts'
import type { ApproverMail } from '#sdk/workflow/approval.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'
import type { DelegationStore } from '#storage/delegation-store.ts'

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
}

interface MailOccasion {
  readonly run: string
  readonly step: number
  /** Distinguishes mails about one approval at different times. */
  readonly occasion: string
  /** As it will be stored. */
  readonly approval: LinkedApproval
  /** Users who may not decide, and so get no mail. */
  readonly involved: Involved
}

/** Approvers see who submitted the request, if that is not the requester. */
export async function withCaller<M extends MailText>(
  mail: M,
  { requestor, caller, who }: Pick<Run, 'requestor' | 'caller' | 'who'>,
  finder: Pick<ApproverFinder, 'nameOf'>,
): Promise<M> {
  if (caller === undefined || sameLogin(caller, requestor)) return mail
  const nameOf = (login: string, identity = formerIdentity(login)): Promise<string> =>
    finder.nameOf({ login, identity }, { withLogin: true })
  const [inNameOf, by] = [await nameOf(requestor, who.requestor), await nameOf(caller, who.caller)]
  const line = `Requested in the name of ${inNameOf}, submitted by ${by}.`
  const text = `${mail.text.trimEnd()}\n\n${line}\n`
  return { ...mail, text, ...(mail.html && { html: endingWith(mail.html, `<p>${escapeHtml(line)}</p>`) }) }
}

/**
 * Mails to approvers and their current deputies, each with their own links, and a message to the channel if there is one.
 * Those who chose no mail as it happens get none, unless the mail is required.
 */
export async function approverMails(
  approvers: readonly Approver[],
  mail: ApproverMail,
  about: MailOccasion,
  { finder, delegations, linksFor, choices }: ApproverMailParts,
): Promise<NewMail[]> {
  const { address, channel, required, ...text } = mail
  const recipients = [...approvers]
  if (approvers.length <= maxRepresented) {
    for (const approver of approvers) {
      for (const deputy of await delegations.deputiesOf(approver)) {
        const [entry] = await finder.entriesOf(deputy)
        if (entry === undefined || isDeactivated(entry.attributes)) continue
        if (isInvolved(about.involved, deputy, [entry])) continue
        const { identity } = entry
        if (recipients.some((one) => one.identity === identity)) continue
        recipients.push({ login: deputy.login, identity, entry })
      }
    }
  }
  const identities = recipients.map(({ identity }) => identity)
  const wanting = required === true ? undefined : await choices?.mailedNow('approval', identities)
  const mails: StepMail[] = []
  for (const { login, identity, entry } of recipients) {
    if (wanting?.has(identity) === false) continue
    const addresses = entry.attributes.values(address).filter(isMailAddress).slice(0, maxAddresses)
    if (addresses.length === 0) continue
    const links = await linksFor?.(about.approval, { login, identity })
    const said = withLinks(text, links ?? [])
    for (const recipient of addresses) mails.push({ ...said, recipient })
  }
  const messages = newMails(about.run, about.step, mails, about.occasion)
  if (channel === undefined) return messages
  const links = (await linksFor?.(about.approval)) ?? []
  return [...messages, channelMessage(about.run, about.step, { ...text, notifier: channel, links }, about.occasion)]
}

/** Mails to the approvers of a run that ended without the approved change. */
export async function deciderMails(
  run: string,
  text: string,
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
    const subject = oneLine(`Not done: ${approval.label}`, 300)
    const links = pages === undefined ? [] : [pages.approval(id)]
    const said = withLinks({ subject, text, ...(notifier === undefined ? {} : { notifier }) }, links)
    mails.push(...addresses.map((recipient) => ({ ...said, recipient })))
  }
  return newMails(run, 0, mails, 'came to nothing')
}
