import * as z from 'zod'
import {
  accessNotification,
  answerNotification,
  approvalNotification,
  type Notification,
  type NotificationList,
  questionNotification,
  requestNotification,
} from '#features/portal/contract/main-notifications.ts'
import { labelsOf, loginOf, type MainParts, ownsLogin, userOf } from '#features/portal/front/main-parts.ts'
import type { NamedUser } from '#features/portal/runs/person-names.ts'
import { isUser } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, badRequest } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { expiryWarning } from '#sdk/workflow/grant.ts'
import { approvalUser } from '#workflows/record/operator.ts'
import { runOutcomes } from '#workflows/record/run.ts'
import { outcomeId } from './requests.ts'

export const notificationOperations = {
  listNotifications: {
    summary: 'Open approvals of the caller, outcomes of requests, questions and answers, and access that expires soon',
    query: { limit: 'How many at most; 0 for the count alone' },
    answer: 'NotificationList',
    handle: listNotifications,
  },
  readNotifications: {
    summary: 'Marks notifications as read',
    body: 'ReadNotifications',
    answer: 'NotificationList',
    handle: readNotifications,
  },
} satisfies OperationTable<MainParts>

/** The most notifications, of each kind and in all. */
const most = 200
const dayMillis = 24 * 3600_000
/** Outcomes that are older are not shown. */
const keptMillis = 90 * dayMillis
const maxBodyBytes = 64 * 1024

export const readSchema = z.strictObject({ ids: z.array(storableText(200).min(1)).min(1).max(most) })

/**
 * What the caller should know, from what the caller may see now: nothing is copied, so a notification never says what
 * is no longer so. Only which of them were read is stored.
 */
async function listNotifications(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { limit } = readQuery(request.query, ['limit'])
  const [written = String(most)] = limit
  if (!/^\d{1,3}$/.test(written) || Number(written) > most) {
    throw badRequest(`limit must be a whole number from 0 to ${most}.`)
  }
  return answer(await currentList(parts, subject, Number(written)))
}

/** Marks the given ones of the current notifications as read. */
async function readNotifications(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const { ids } = await readJsonBody(request, readSchema, maxBodyBytes)
  const current = (await currentNotifications(parts, subject)).map(({ notification }) => notification.id)
  const read = current.filter((id) => ids.includes(id))
  await parts.host.portal.memory.markRead(userOf(parts, subject), read, current)
  return answer(await currentList(parts, subject, most))
}

interface Found {
  readonly notification: Notification
  /** The user whose display name is shown. A registration shows the submitted login. */
  readonly user?: NamedUser
}

async function currentList(parts: MainParts, subject: Subject, limit: number): Promise<NotificationList> {
  const [current, read] = await Promise.all([
    currentNotifications(parts, subject),
    parts.host.portal.memory.readNotifications(userOf(parts, subject)),
  ])
  const shown = await withNames(current.slice(0, limit), parts)
  return {
    notifications: shown.map((one) => ({ ...one, read: read.has(one.id) })),
    unread: current.filter(({ notification }) => !read.has(notification.id)).length,
  }
}

async function currentNotifications(parts: MainParts, subject: Subject): Promise<readonly Found[]> {
  const found = await Promise.all([
    openApprovals(parts, subject),
    outcomes(parts, subject),
    questions(parts, subject),
    expiringAccess(parts, subject),
  ])
  return found
    .flat()
    .sort(({ notification: a }, { notification: b }) => (`${a.at} ${a.id}` < `${b.at} ${b.id}` ? 1 : -1))
    .slice(0, most)
}

/** Open approvals, and answers to the caller's questions about them. */
async function openApprovals({ settings, host }: MainParts, subject: Subject): Promise<Found[]> {
  if (!settings.given.enableApprovals) return []
  const user = approvalUser(subject)
  const { approvals } = await host.approvals.list(user, { limit: most })
  const latest =
    approvals.length === 0
      ? undefined
      : await host.approvals.latestMessages(approvals.map(({ run: { id: run } }) => run))
  return approvals.flatMap(({ id, run: { id: run, subject: login, who }, label, opened, newAccount }) => {
    const what = { kind: 'approval', approval: id, label, displayName: login } as const
    const notification = wireForm(approvalNotification, { ...what, id: `approval:${id}`, at: opened, read: false })
    const found: Found[] = [
      newAccount === true ? { notification } : { notification, user: { login, identity: who.subject } },
    ]
    const message = latest?.get(run)
    if (message?.kind === 'answer' && isUser(message.askedBy.identity, user)) {
      const said = { id: `answer:${message.id}`, at: message.at, read: false, displayName: message.by.login }
      const about = { kind: 'answer', approval: id, label } as const
      found.push({ notification: wireForm(answerNotification, { ...about, ...said }), user: message.by })
    }
    return found
  })
}

/** Questions about the caller's requests that wait for an answer. */
async function questions(parts: MainParts, subject: Subject): Promise<Found[]> {
  const { host } = parts
  const { runs } = await host.runs.list({ requestedBy: approvalUser(subject), states: ['waiting'], limit: most })
  if (runs.length === 0) return []
  const latest = await host.approvals.latestMessages(runs.map(({ head: { id } }) => id))
  const label = await labelsOf(
    runs.map(({ head }) => head),
    parts,
  )
  return runs.flatMap((run) => {
    const message = latest.get(run.head.id)
    if (message?.kind !== 'question') return []
    const said = { id: `question:${message.id}`, at: message.at, read: false, displayName: message.by.login }
    const about = { kind: 'question', request: run.head.id, label: label(run.head) } as const
    return [{ notification: wireForm(questionNotification, { ...about, ...said }), user: message.by }]
  })
}

/** Of the latest requests; the caller's own cancellations are marked as read when they happen. */
async function outcomes(parts: MainParts, subject: Subject): Promise<Found[]> {
  const { host } = parts
  const since = host.clock().getTime() - keptMillis
  const { runs } = await host.runs.list({
    requestedBy: approvalUser(subject),
    states: [...runOutcomes, 'incident'],
    limit: most,
  })
  const label = await labelsOf(
    runs.map(({ head }) => head),
    parts,
  )
  return runs.flatMap((run) => {
    const at = run.ended ?? run.updated
    const state = requestNotification.shape.state.safeParse(run.state)
    if (!state.success || at.getTime() < since) return []
    const what = { kind: 'request', request: run.head.id, label: label(run.head), state: state.data } as const
    return [{ notification: wireForm(requestNotification, { ...what, id: outcomeId(run), at, read: false }) }]
  })
}

/** None for a caller whose login belongs to another user. */
async function expiringAccess(parts: MainParts, subject: Subject): Promise<Found[]> {
  if (!(await ownsLogin(parts, subject))) return []
  const now = parts.host.clock()
  const grants = await parts.host.grants.ofSubject(loginOf(parts, subject))
  return grants.flatMap(({ id, target, name, granted, expires }) => {
    const at = expiryWarning({ granted, expires })
    if (at > now || expires <= now) return []
    const what = { kind: 'access', target, name, expires } as const
    const key = `access:${id}:${expires.getTime()}`
    return [{ notification: wireForm(accessNotification, { ...what, id: key, at, read: false }) }]
  })
}

/** Display names cost a search of the directory. */
async function withNames(found: readonly Found[], parts: MainParts): Promise<Notification[]> {
  const names = await parts.names(found.flatMap(({ user }) => user ?? []))
  return found.map(({ notification, user }) => {
    const displayName = user !== undefined && Object.hasOwn(names, user.login) ? names[user.login] : undefined
    return 'displayName' in notification && displayName !== undefined ? { ...notification, displayName } : notification
  })
}
