import type { WorkflowConfig } from '#config/configuration/configuration.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { Identity } from '#identity/identity.ts'
import type { ErrorCode } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import { type PortalLinks, withLinks } from '#mail/mail-links.ts'
import { newMails } from '#mail/mail-outbox.ts'
import { type MailReader, readerOf } from '#mail/mail-reader.ts'
import type { MailStore } from '#mail/mail-store.ts'
import { isMailAddress, type MailText } from '#sdk/mail/mail.ts'
import type { NewMail } from '#sdk/mail/new-mail.ts'
import { type ConfiguredTexts, type Translate, translator } from '#sdk/page/configured-texts.ts'
import { errorTexts } from '#sdk/page/page.ts'
import type { TextKey } from '#sdk/page/page-texts.ts'
import type { AccessNow } from '#sdk/workflow/grant.ts'
import { runLabels, translatedWorkflow } from '#sdk/workflow/workflow-label.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ApproverFinder } from '#workflows/approvals/approvers.ts'
import type { MailedOutcome, OutcomeMails } from '#workflows/jobs/maintenance-access.ts'
import type { Run } from '#workflows/record/run.ts'
import type { ApprovalStore } from '#workflows/store/approval-store.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'

interface OutcomeParts {
  readonly runs: Pick<RunStore, 'list' | 'listEnded' | 'parametersOf'>
  readonly approvals: Pick<ApprovalStore, 'get' | 'listOfRun'>
  readonly mails: Pick<MailStore, 'add'>
  readonly grants: Pick<GrantStore, 'ofRuns'>
  readonly finder: Pick<ApproverFinder, 'entriesOf' | 'nameOf'>
  readonly pages: PortalLinks | undefined
  readonly choices: Pick<MailChoices, 'isMailedNow' | 'settingsOf'>
  readonly texts?: ConfiguredTexts | undefined
  workflowOf(name: string): Pick<WorkflowConfig, 'label' | 'dynamic' | 'runDetails'> | undefined
}

interface Outcome {
  readonly run: Run
  readonly text: MailText
}

/** The requester of runs. */
interface Requester {
  readonly address: string
  readonly reader: MailReader
}

const page = 500
const maxLabel = 200
/** The most lines of a summary. */
const maxLines = 50

/**
 * Mails the outcomes of requests to their requesters: one mail for each, or one summary for each requester. A mail of
 * the same outcome, or of the same summary, is not sent twice. Requesters without a directory entry or an address, and
 * those who chose no such mails when it happened, get none. Returns the number of mails.
 */
export async function mailOutcomes(request: OutcomeMails, parts: OutcomeParts): Promise<number> {
  const runs = await outcomesOf(request, parts)
  const requesters = new Map<Identity, Requester | undefined>()
  const names = new Map<Identity, string>()
  /** By address in lower case, as mails are identified. */
  const outcomesByAddress = new Map<string, Requester & { readonly outcomes: Outcome[] }>()
  for (const run of runs) {
    request.signal.throwIfAborted()
    const requester = await requesterOf(run, request.mailAttribute, requesters, parts)
    if (requester === undefined || !(await isWanted(run, parts))) continue
    const said = { run, text: await outcomeText(run, await subjectName(run, names, parts), requester.reader, parts) }
    const address = requester.address.toLowerCase()
    const known = outcomesByAddress.get(address)
    if (known === undefined) outcomesByAddress.set(address, { ...requester, outcomes: [said] })
    else known.outcomes.push(said)
  }
  const mails = [...outcomesByAddress.values()].flatMap(({ outcomes, ...requester }) =>
    mailsTo(requester, outcomes, request),
  )
  if (mails.length > 0) await parts.mails.add(mails)
  return mails.length
}

/** The latest first, at most `limit`. */
async function outcomesOf({ since, until, outcomes, limit }: OutcomeMails, { runs }: OutcomeParts): Promise<Run[]> {
  const found: Run[] = []
  let after: string | undefined
  do {
    const { runs: some, next } = await runs.listEnded({ since, until, limit: page, ...(after && { after }) })
    found.push(...some.filter((run) => outcomes.some((outcome) => outcome === run.state) && !isOwnCancellation(run)))
    after = next
  } while (after !== undefined && found.length < limit)
  if (outcomes.includes('incident')) {
    const { runs: stuck } = await runs.list({ states: ['incident'], limit: page })
    found.push(...stuck.filter(({ updated }) => updated >= since && updated < until))
  }
  return found.slice(0, limit)
}

/** The requester knows of it. */
export const isOwnCancellation = ({ head, state, cancel }: Run): boolean =>
  state === 'cancelled' && cancel !== undefined && sameLogin(cancel.by, head.requester)

async function requesterOf(
  { head: { who, requester: login } }: Run,
  attribute: string,
  known: Map<Identity, Requester | undefined>,
  { finder, choices }: OutcomeParts,
): Promise<Requester | undefined> {
  const identity = who.requester
  if (identity === undefined) return undefined
  if (!known.has(identity)) {
    const [entry, another] = await finder.entriesOf({ identity, login })
    const isOne = entry !== undefined && another === undefined && !isDeactivated(entry.attributes)
    const address = isOne ? entry.attributes.values(attribute).find(isMailAddress) : undefined
    known.set(identity, address === undefined ? undefined : { address, reader: await readerOf(entry, choices) })
  }
  return known.get(identity)
}

const isWanted = async ({ head: { who }, ended, updated }: Run, { choices }: OutcomeParts): Promise<boolean> =>
  who.requester !== undefined && (await choices.isMailedNow('request', who.requester, ended ?? updated))

const subjects: Readonly<Record<MailedOutcome, TextKey>> = {
  completed: 'mail.completed',
  denied: 'mail.denied',
  expired: 'mail.expired',
  failed: 'mail.failed',
  cancelled: 'mail.cancelled',
  incident: 'mail.onHold',
}

/** A subject without an identity may be a new user, and is shown by login. */
async function subjectName(
  { head: { who, subject: login } }: Run,
  known: Map<Identity, string>,
  { finder }: OutcomeParts,
) {
  const identity = who.subject
  const name = identity === undefined ? login : (known.get(identity) ?? (await finder.nameOf({ identity, login })))
  if (identity !== undefined) known.set(identity, name)
  return name
}

async function labelOf({ head }: Run, translate: Translate, { workflowOf, runs }: OutcomeParts): Promise<string> {
  const translated = (name: string) => translatedWorkflow(workflowOf(name), translate)
  const parametersOf = (ids: readonly string[]) => runs.parametersOf(ids)
  return (await runLabels([head], { workflowOf: translated, parametersOf }))(head)
}

async function outcomeText(run: Run, name: string, reader: MailReader, parts: OutcomeParts): Promise<MailText> {
  const { texts, language } = reader
  const label = oneLine(await labelOf(run, translator(parts.texts, language), parts), maxLabel)
  const outcome = run.state as MailedOutcome
  const subject = texts(subjects[outcome], { label })
  const text = (await outcomeSentences(run, { label, name: oneLine(name, maxLabel) }, reader, parts)).join(' ')
  const links = parts.pages === undefined ? [] : [parts.pages.request(run.head.id, texts)]
  return withLinks<MailText>({ subject, text }, links)
}

/** What the access is when the mail is written, which can be later than the request was done. */
const accessTexts: Readonly<Record<AccessNow['state'], TextKey>> = {
  active: 'mail.accessUntil',
  removing: 'mail.accessRemoving',
  notRemoved: 'mail.accessNotRemoved',
  ended: 'mail.accessEnded',
}

/** What became of the request, and whether anything was changed. */
async function outcomeSentences(
  run: Run,
  about: { readonly label: string; readonly name: string },
  { texts, dateText }: MailReader,
  parts: OutcomeParts,
): Promise<readonly string[]> {
  const effect = texts(run.touched ? 'mail.changedBefore' : 'mail.unchanged')
  switch (run.state as MailedOutcome) {
    case 'completed': {
      const { id, accessEnds } = run.head
      const access = (await parts.grants.ofRuns([id])).get(id)
      const done = texts('mail.completedText', about)
      if (access !== undefined) {
        return [done, texts(accessTexts[access.state], { date: dateText(access.ended ?? access.expires) })]
      }
      return [done, ...(accessEnds === undefined ? [] : [texts('mail.expiryDate', { date: dateText(accessEnds) })])]
    }
    case 'denied': {
      const comment = await commentOf(run, parts)
      const said = comment === undefined ? [] : [texts('mail.comment', { comment })]
      return [texts('mail.deniedText', about), ...said]
    }
    case 'expired':
      return [texts('mail.expiredText', about), effect]
    case 'failed': {
      // Details of a failure are for administrators.
      const code = run.incident?.code ?? ''
      const known = Object.hasOwn(errorTexts, code) ? errorTexts[code as ErrorCode] : undefined
      const reason = texts(known ?? 'error.workflowFailed')
      return [texts('mail.failedText', { ...about, reason }), effect]
    }
    case 'cancelled': {
      const reason = run.cancel?.reason
      const said = reason === undefined ? undefined : texts('mail.cancelledBecause', { ...about, reason })
      return [said ?? texts('mail.cancelledText', about), effect]
    }
    case 'incident':
      return [texts('mail.onHoldText', about)]
  }
}

/** The comment of the approver who denied it. */
async function commentOf({ head: { id } }: Run, { approvals }: OutcomeParts): Promise<string | undefined> {
  const denied = (await approvals.listOfRun(id)).findLast(({ state }) => state === 'denied')
  return denied === undefined ? undefined : (await approvals.get(denied.id))?.decision?.comment
}

function mailsTo(
  { address: recipient, reader: { texts } }: Requester,
  outcomes: readonly Outcome[],
  { notifier, summary }: OutcomeMails,
): readonly NewMail[] {
  const by = notifier === undefined ? {} : { notifier }
  if (summary === undefined) {
    return outcomes.flatMap(({ run, text }) =>
      newMails(run.head.id, 0, [{ ...text, ...by, recipient }], `outcome ${run.state} ${run.fence}`),
    )
  }
  const more = outcomes.length - maxLines
  const parts = outcomes.slice(0, maxLines).map(({ text }) => text.text.trimEnd())
  const text = [...parts, ...(more > 0 ? [texts('digest.more', { count: String(more) })] : [])].join('\n\n')
  const id = secretHash(JSON.stringify(['outcomes', summary, recipient.toLowerCase()]))
  return [{ id, recipient, subject: texts('mail.outcomes', { count: String(outcomes.length) }), text, ...by }]
}
