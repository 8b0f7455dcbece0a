import type { NewMail } from '#domain/mail.ts'
import type { Run } from '#domain/run.ts'
import type { ApproverFinder } from '#engine/approvals/approver-finder.ts'
import type { MailChoices } from '#engine/mail/mail-choices.ts'
import { type PortalLinks, withLinks } from '#engine/mail/mail-links.ts'
import { newMails } from '#engine/mail/mail-outbox.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { Identity } from '#identity/identity.ts'
import { type ErrorCode, errorCodes } from '#kernel/errors.ts'
import { secretHash } from '#kernel/ids.ts'
import { oneLine } from '#kernel/one-line.ts'
import type { MailedOutcome, OutcomeMails } from '#sdk/job/maintenance-tasks.ts'
import { isMailAddress, type MailText } from '#sdk/notifier/mail.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { ApprovalStore } from '#storage/approval-store.ts'
import type { MailStore } from '#storage/mail-store.ts'
import type { RunStore } from '#storage/runs/run-store.ts'

interface OutcomeParts {
  readonly runs: Pick<RunStore, 'list' | 'listEnded'>
  readonly approvals: Pick<ApprovalStore, 'get' | 'listOfRun'>
  readonly mails: Pick<MailStore, 'add'>
  readonly finder: Pick<ApproverFinder, 'entriesOf' | 'nameOf'>
  readonly pages: PortalLinks | undefined
  readonly choices: Pick<MailChoices, 'isMailedNow'>
  /** The label of a workflow. */
  labelOf(workflow: string): string
}

interface Outcome {
  readonly run: Run
  readonly text: MailText
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
  const addresses = new Map<Identity, string | undefined>()
  const names = new Map<Identity, string>()
  /** By address in lower case, as mails are identified. */
  const outcomesByAddress = new Map<string, { readonly recipient: string; readonly outcomes: Outcome[] }>()
  for (const run of runs) {
    request.signal.throwIfAborted()
    const address = await addressOf(run, request.mailAttribute, addresses, parts)
    if (address === undefined || !(await isWanted(run, parts))) continue
    const said = { run, text: await outcomeText(run, await subjectName(run, names, parts), parts) }
    const known = outcomesByAddress.get(address.toLowerCase())
    if (known === undefined) outcomesByAddress.set(address.toLowerCase(), { recipient: address, outcomes: [said] })
    else known.outcomes.push(said)
  }
  const mails = [...outcomesByAddress.values()].flatMap(({ recipient, outcomes }) =>
    mailsTo(recipient, outcomes, request),
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
export const isOwnCancellation = ({ state, cancel, requestor }: Run): boolean =>
  state === 'cancelled' && cancel !== undefined && sameLogin(cancel.by, requestor)

async function addressOf(
  { who, requestor: login }: Run,
  attribute: string,
  known: Map<Identity, string | undefined>,
  { finder }: OutcomeParts,
): Promise<string | undefined> {
  const identity = who.requestor
  if (identity === undefined) return undefined
  if (!known.has(identity)) {
    const [entry, another] = await finder.entriesOf({ identity, login })
    const isOne = entry !== undefined && another === undefined && !isDeactivated(entry.attributes)
    known.set(identity, isOne ? entry.attributes.values(attribute).find(isMailAddress) : undefined)
  }
  return known.get(identity)
}

const isWanted = async ({ who, ended, updated }: Run, { choices }: OutcomeParts): Promise<boolean> =>
  who.requestor !== undefined && (await choices.isMailedNow('request', who.requestor, ended ?? updated))

const subjects: Readonly<Record<MailedOutcome, string>> = {
  completed: 'Done',
  denied: 'Denied',
  expired: 'Expired',
  failed: 'Failed',
  cancelled: 'Cancelled',
  incident: 'On hold',
}

/** A subject without an identity may be a new user, and is shown by login. */
async function subjectName({ who, subject: login }: Run, known: Map<Identity, string>, { finder }: OutcomeParts) {
  const identity = who.subject
  const name = identity === undefined ? login : (known.get(identity) ?? (await finder.nameOf({ identity, login })))
  if (identity !== undefined) known.set(identity, name)
  return name
}

async function outcomeText(run: Run, name: string, parts: OutcomeParts): Promise<MailText> {
  const label = oneLine(parts.labelOf(run.name), maxLabel)
  const what = `Your request "${label}" for ${oneLine(name, maxLabel)}`
  const outcome = run.state as MailedOutcome
  const subject = `${subjects[outcome]}: ${label}`
  const text = `${what} ${await outcomeSentence(run, outcome, parts)}`
  return withLinks<MailText>({ subject, text }, parts.pages === undefined ? [] : [parts.pages.request(run.id)])
}

/** What became of the request, and whether anything was changed. */
async function outcomeSentence(run: Run, outcome: MailedOutcome, parts: OutcomeParts): Promise<string> {
  const effect = run.touched ? 'Some changes had been made before.' : 'Nothing was changed.'
  switch (outcome) {
    case 'completed':
      return run.accessEnds === undefined
        ? 'is done.'
        : `is done. The requested expiry date is ${run.accessEnds.toISOString().slice(0, 16).replace('T', ' ')} UTC.`
    case 'denied':
      return `was denied. ${await commentOf(run, parts)}`.trimEnd()
    case 'expired':
      return `expired: it had not ended by its deadline. ${effect}`
    case 'failed':
      return `failed: ${publicText(run.incident?.code ?? '')} ${effect}`
    case 'cancelled':
      return `was cancelled${run.cancel?.reason === undefined ? '' : `: ${run.cancel.reason}`}. ${effect}`
    case 'incident':
      return 'is on hold until an administrator has looked at it. It may still succeed.'
  }
}

/** The comment of the approver who denied it. */
async function commentOf({ id }: Run, { approvals }: OutcomeParts): Promise<string> {
  const denied = (await approvals.listOfRun(id)).findLast(({ state }) => state === 'denied')
  const comment = denied === undefined ? undefined : (await approvals.get(denied.id))?.decision?.comment
  return comment === undefined ? '' : `Comment of the approver: ${comment}`
}

/** Details of a failure are for administrators. */
const publicText = (code: string): string =>
  Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode].text : errorCodes.WORKFLOW_FAILED.text

function mailsTo(
  recipient: string,
  outcomes: readonly Outcome[],
  { notifier, summary }: OutcomeMails,
): readonly NewMail[] {
  const by = notifier === undefined ? {} : { notifier }
  if (summary === undefined) {
    return outcomes.flatMap(({ run, text }) =>
      newMails(run.id, 0, [{ ...text, ...by, recipient }], `outcome ${run.state} ${run.fence}`),
    )
  }
  const more = outcomes.length - maxLines
  const parts = outcomes.slice(0, maxLines).map(({ text }) => text.text.trimEnd())
  const text = [...parts, ...(more > 0 ? [`There are ${more} more in the portal.`] : [])].join('\n\n')
  const count = outcomes.length === 1 ? '1 request' : `${outcomes.length} requests`
  const id = secretHash(JSON.stringify(['outcomes', summary, recipient.toLowerCase()]))
  return [{ id, recipient, subject: `Outcomes of ${count}`, text, ...by }]
}
