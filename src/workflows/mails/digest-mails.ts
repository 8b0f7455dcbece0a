import type { WorkflowConfig } from '#config/configuration/configuration.ts'
import { isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { type Identity, isUser } from '#identity/identity.ts'
import { secretHash } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import { escapeHtml } from '#kernel/text/html.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import type { MailChoices } from '#mail/mail-choices.ts'
import type { PortalLinks } from '#mail/mail-links.ts'
import { type MailReader, mailLanguage, mailReader } from '#mail/mail-reader.ts'
import type { NotificationSettings } from '#mail/notification.ts'
import type { NotificationStore } from '#mail/notification-store.ts'
import { isMailAddress } from '#sdk/mail/mail.ts'
import type { MailLink, NewMail } from '#sdk/mail/new-mail.ts'
import { type ConfiguredTexts, type Translate, translator } from '#sdk/page/configured-texts.ts'
import type { TextKey, Texts } from '#sdk/page/page-texts.ts'
import { expiryWarning } from '#sdk/workflow/grant.ts'
import { runLabels, translatedWorkflow } from '#sdk/workflow/workflow-label.ts'
import type { ApprovalDesk } from '#workflows/approvals/approval-desk.ts'
import type { ApproverFinder } from '#workflows/approvals/approvers.ts'
import { readPlan } from '#workflows/approvals/approvers.ts'
import { type DigestMails, type MailedOutcome, mailedOutcomes } from '#workflows/jobs/maintenance-access.ts'
import type { ApprovalItem, LatestMessage } from '#workflows/record/approval.ts'
import type { ApprovalUser } from '#workflows/record/operator.ts'
import { type Run, type RunQuery, runOutcomes } from '#workflows/record/run.ts'
import type { GrantStore } from '#workflows/store/grant-store.ts'
import type { RunStore } from '#workflows/store/run-store.ts'
import { isOwnCancellation } from './outcome-mails.ts'

interface DigestParts {
  readonly notifications: NotificationStore
  readonly choices: MailChoices
  readonly approvals: Pick<ApprovalDesk, 'list' | 'get' | 'ofRun' | 'latestMessages'>
  readonly runs: Pick<RunStore, 'list' | 'parametersOf'>
  readonly grants: Pick<GrantStore, 'ofSubject'>
  readonly finder: Pick<ApproverFinder, 'entriesOf' | 'byLogin'>
  readonly pages: PortalLinks | undefined
  readonly texts: ConfiguredTexts | undefined
  readonly log: Logger
  workflowOf(name: string): Pick<WorkflowConfig, 'label' | 'dynamic' | 'runDetails'> | undefined
}

/** How many readers are looked up at once, and the most entries of a section that a mail shows. */
const page = 100
const maxLines = 50
/** The most entries of each kind that are looked at, and in one query. */
const most = 5_000
const atOnce = 500
const maxText = 200
const dayMillis = 24 * 3600_000
/** Entries are remembered for longer than any approval that a digest reports has been open. */
const rememberedDays = 400
const openDays = 365

/**
 * Mails each user who chose so one digest of what no digest has reported to them. What the user may not see now is not
 * in it, and a user with nothing new gets no mail. Returns the number of mails.
 */
export async function mailDigests(request: DigestMails, parts: DigestParts): Promise<number> {
  let mails = 0
  let seen = 0
  let after = ''
  while (seen < request.limit) {
    const readers = await parts.notifications.digestReaders(after, Math.min(page, request.limit - seen))
    const settings = await parts.notifications.settingsOf(readers)
    for (const reader of readers) {
      request.signal.throwIfAborted()
      try {
        if (await mailDigest(reader, settings.get(reader), request, parts)) mails++
      } catch (err) {
        parts.log.warn('a digest could not be written', { err })
      }
    }
    seen += readers.length
    const last = readers.at(-1)
    if (last === undefined) break
    after = last
  }
  await parts.notifications.pruneDigests(new Date(request.until.getTime() - rememberedDays * dayMillis))
  return mails
}

async function mailDigest(
  identity: Identity,
  settings: NotificationSettings | undefined,
  request: DigestMails,
  parts: DigestParts,
): Promise<boolean> {
  const [entry] = await parts.finder.entriesOf({ identity, login: '' })
  if (entry === undefined || isDeactivated(entry.attributes)) return false
  const recipient = entry.attributes.values(request.mailAttribute).find(isMailAddress)
  if (recipient === undefined) return false
  const language = mailLanguage(settings, entry.attributes, { attribute: request.languageAttribute })
  const reader: Reader = {
    user: { identity, login: entry.attributes.first('uid') ?? '', dn: entry.dn },
    entry,
    settings,
    translate: translator(parts.texts, language),
    ...mailReader(language),
  }
  const entries = await entriesOf(reader, request, parts)
  if (entries.length === 0) return false
  return await parts.notifications.addDigest(
    identity,
    entries.map(({ id }) => id),
    (fresh) => ({
      ...digestText(
        entries.filter(({ id }) => fresh.has(id)),
        language,
        reader.texts,
        parts.pages,
      ),
      // By content: the same entries are never two mails, and other entries are never the same mail.
      id: secretHash(JSON.stringify(['digest', identity, ...fresh])),
      recipient,
      notifier: request.notifier,
    }),
  )
}

/** The user who gets a digest. */
interface Reader extends MailReader {
  readonly user: ApprovalUser
  readonly entry: DirectoryEntry
  readonly settings: NotificationSettings | undefined
  readonly translate: Translate
}

const sections = ['digest.approvals', 'digest.questions', 'digest.requests', 'digest.access'] as const

interface DigestEntry {
  /** Another one when the same thing happens again. */
  readonly id: string
  readonly section: (typeof sections)[number]
  readonly text: string
  readonly link: MailLink | undefined
}

/** What no digest has reported, of the kinds that the reader chose a digest for. */
async function entriesOf(reader: Reader, request: DigestMails, parts: DigestParts): Promise<DigestEntry[]> {
  const found = [
    ...(await openApprovals(reader, request, parts)),
    ...(await questions(reader, parts)),
    ...(await outcomes(reader, request, parts)),
    ...(await expiringAccess(reader, request, parts)),
  ]
  const fresh = await parts.notifications.unreported(
    reader.user.identity,
    found.map(({ id }) => id),
  )
  const entries: DigestEntry[] = []
  for (const { isShown, ...entry } of found) {
    if (fresh.has(entry.id) && (await isShown())) entries.push(entry)
  }
  return entries
}

interface Candidate extends DigestEntry {
  /** A last check, for entries that were not reported: it costs more than finding them. */
  isShown(): Promise<boolean>
}

const always = async (): Promise<boolean> => true

/** The oldest first: those that were reported come before those that were not. */
async function listedApprovals(user: ApprovalUser, approvals: DigestParts['approvals']): Promise<ApprovalItem[]> {
  const found: ApprovalItem[] = []
  for (let after: string | undefined; ; ) {
    const { approvals: some, next } = await approvals.list(user, { limit: atOnce, ...(after && { after }) })
    found.push(...some)
    if (next === undefined || found.length >= most) return found
    after = next
  }
}

async function listedRuns(query: Omit<RunQuery, 'limit'>, runs: DigestParts['runs']): Promise<Run[]> {
  const found: Run[] = []
  for (let after: string | undefined; ; ) {
    const { runs: some, next } = await runs.list({ ...query, limit: atOnce, ...(after && { after }) })
    found.push(...some)
    if (next === undefined || found.length >= most) return found
    after = next
  }
}

const labelsOf = (found: readonly Run[], { translate }: Reader, { workflowOf, runs }: DigestParts) =>
  runLabels(
    found.map(({ head }) => head),
    {
      workflowOf: (name) => translatedWorkflow(workflowOf(name), translate),
      parametersOf: (ids) => runs.parametersOf(ids),
    },
  )

async function openApprovals(
  { user, settings, texts }: Reader,
  { until }: DigestMails,
  { approvals, choices, pages }: DigestParts,
): Promise<Candidate[]> {
  if (choices.time(settings, 'approval') !== 'digest') return []
  const oldest = until.getTime() - openDays * dayMillis
  const found = (await listedApprovals(user, approvals)).filter(({ opened }) => opened.getTime() > oldest)
  return found.map(({ id, label, run: { subject } }) => ({
    id: `approval:${id}`,
    section: 'digest.approvals',
    text: texts('digest.approval', { label: shortLine(label), name: shortLine(subject) }),
    link: pages?.approval(id, texts),
    async isShown() {
      const approval = await approvals.get(user, id)
      // A required mail was sent when the approval was opened.
      return approval?.mayDecide === true && readPlan(approval.rules).mail?.required !== true
    },
  }))
}

/** Questions about the reader's requests that wait for an answer, and answers to the reader's questions. */
async function questions(reader: Reader, parts: DigestParts): Promise<Candidate[]> {
  const { user, settings, texts } = reader
  const { approvals, runs, choices, pages } = parts
  const isChosen = (message: LatestMessage | undefined): message is LatestMessage =>
    message !== undefined && choices.time(settings, 'question', message.at) === 'digest'
  if (settings?.choices.question === undefined) return []
  const waiting = await listedRuns({ requestedBy: user, states: ['waiting'] }, runs)
  const open = await listedApprovals(user, approvals)
  const latest = await approvals.latestMessages([
    ...new Set([...waiting.map(({ head }) => head.id), ...open.map(({ run }) => run.id)]),
  ])
  const label = await labelsOf(waiting, reader, parts)
  const asked = waiting.flatMap((run) => {
    const { id } = run.head
    const message = latest.get(id)
    if (!isChosen(message) || message.kind !== 'question') return []
    const values = { name: shortLine(message.by.login), label: shortLine(label(run.head)) }
    return [
      {
        id: `question:${message.id}`,
        text: texts('digest.question', values),
        link: pages?.request(id, texts),
        isShown: always,
      },
    ]
  })
  const answered = open.flatMap(({ id, run, label }) => {
    const message = latest.get(run.id)
    if (!isChosen(message) || message.kind !== 'answer' || !isUser(message.askedBy.identity, user)) return []
    const values = { name: shortLine(message.by.login), label: shortLine(label) }
    const isShown = async () => (await approvals.get(user, id)) !== undefined
    return [
      { id: `answer:${message.id}`, text: texts('digest.answer', values), link: pages?.approval(id, texts), isShown },
    ]
  })
  return [...asked, ...answered].map((entry) => ({ ...entry, section: 'digest.questions' }))
}

const outcomeKeys: Readonly<Record<MailedOutcome, TextKey>> = {
  completed: 'digest.completed',
  denied: 'digest.denied',
  expired: 'digest.expired',
  failed: 'digest.failed',
  cancelled: 'digest.cancelled',
  incident: 'digest.onHold',
}

async function outcomes(reader: Reader, { since, until }: DigestMails, parts: DigestParts): Promise<Candidate[]> {
  const { user, settings, texts } = reader
  const { runs, choices, pages } = parts
  const states = [...runOutcomes, 'incident'] as const
  const found = await listedRuns({ requestedBy: user, states, changedSince: since }, runs)
  const wanted = found.filter((run) => {
    const at = run.ended ?? run.updated
    return at >= since && at < until && !isOwnCancellation(run) && choices.time(settings, 'request', at) === 'digest'
  })
  const label = await labelsOf(wanted, reader, parts)
  const entries: Candidate[] = []
  for (const run of wanted) {
    const outcome = mailedOutcomes.find((known) => known === run.state)
    if (outcome === undefined) continue
    const values = { label: shortLine(label(run.head)), name: shortLine(run.head.subject) }
    const comment = outcome === 'denied' ? await denialComment(run, parts) : undefined
    const said = texts(outcomeKeys[outcome], values)
    entries.push({
      id: `request:${run.head.id}:${run.state}:${run.fence}`,
      section: 'digest.requests',
      text: comment === undefined ? said : `${said} ${texts('digest.comment', { comment: shortLine(comment) })}`,
      link: pages?.request(run.head.id, texts),
      isShown: always,
    })
  }
  return entries
}

async function denialComment({ head: { id } }: Run, { approvals }: DigestParts): Promise<string | undefined> {
  return (await approvals.ofRun(id)).findLast(({ state }) => state === 'denied')?.decision?.comment
}

/** None if another user has the reader's login too. */
async function expiringAccess(
  { user, entry, settings, texts, dateText }: Reader,
  { until }: DigestMails,
  { choices, grants, finder, pages }: DigestParts,
): Promise<Candidate[]> {
  if (choices.time(settings, 'access') !== 'digest' || user.login === '') return []
  const namesakes = await finder.byLogin(user.login)
  if (namesakes.some(({ identity }) => identity !== entry.identity)) return []
  const found = (await grants.ofSubject(user.login)).filter(
    (grant) => expiryWarning(grant) <= until && grant.expires > until,
  )
  return found.map(({ id, target, name, expires }) => ({
    id: `access:${id}:${expires.getTime()}`,
    section: 'digest.access',
    text: texts('digest.expires', { name: shortLine(name === '' ? target : name), date: dateText(expires) }),
    link: pages?.access(texts),
    isShown: always,
  }))
}

function digestText(
  entries: readonly DigestEntry[],
  language: string,
  texts: Texts,
  pages: PortalLinks | undefined,
): Pick<NewMail, 'subject' | 'text' | 'html'> {
  const plain: string[] = []
  const html: string[] = []
  for (const section of sections) {
    const all = entries.filter((entry) => entry.section === section)
    if (all.length === 0) continue
    const shown = all.slice(0, maxLines)
    const more = all.length > shown.length ? [texts('digest.more', { count: String(all.length - shown.length) })] : []
    plain.push(texts(section))
    plain.push(
      ...shown.map(({ text, link }) => [`- ${text}`, ...(link === undefined ? [] : [`  ${link.url}`])].join('\n')),
    )
    plain.push(...more)
    const items = [...shown.map(itemHtml), ...more.map(escapeHtml)].map((item) => `<li>${item}</li>`)
    html.push(`<h2>${escapeHtml(texts(section))}</h2><ul>${items.join('')}</ul>`)
  }
  const reason = texts('digest.reason')
  const change = pages?.notificationSettings(texts)
  plain.push(change === undefined ? reason : `${reason}\n${change.url}`)
  html.push(`<p>${change === undefined ? escapeHtml(reason) : linkHtml(change.url, reason)}</p>`)
  return {
    subject: texts('digest.subject', { count: String(entries.length) }),
    text: `${plain.join('\n\n')}\n`,
    html: `<!doctype html><html lang="${language}"><body>${html.join('')}</body></html>`,
  }
}

const itemHtml = ({ text, link }: DigestEntry): string =>
  link === undefined ? escapeHtml(text) : linkHtml(link.url, text)

const linkHtml = (url: string, text: string): string => `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>`

const shortLine = (text: string): string => oneLine(text, maxText)
