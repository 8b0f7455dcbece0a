import * as z from 'zod'
import type { RequestDetails, RequestList, RequestSummary } from '#features/portal/contract/main-requests.ts'
import { requestStep, requestSummary } from '#features/portal/contract/main-requests.ts'
import { labelsOf, type MainParts, userOf } from '#features/portal/front/main-parts.ts'
import { approversOf, usersOfRun } from '#features/portal/runs/person-names.ts'
import { approvalDocument } from '#features/portal/runs/run-administration.ts'
import { isUser } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { type ErrorCode, errorCodes, GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, badRequest, emptyAnswer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import { readLimit, readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { approvalUser } from '#workflows/record/operator.ts'
import { hasEnded, isRunState, type Run, type RunState, runStates } from '#workflows/record/run.ts'
import { wireHead } from '#workflows/record/wire-head.ts'
import { messageSchema, messageView, paging } from './approvals.ts'
import { maxReason } from './submit.ts'

export const requestOperations = {
  listRequests: {
    summary: 'What the caller requested, or what was requested for the caller',
    query: { state: 'Only of this state', about: '"mine" or "me"', ...paging },
    answer: 'RequestList',
    handle: listRequests,
  },
  getRequest: { summary: 'One request', answer: 'RequestDetails', handle: showRequest },
  cancelRequest: {
    summary: 'Ends a request',
    body: 'CancelRequest',
    answer: 'RequestSummary',
    handle: cancelRequest,
  },
  answerApprover: {
    summary: 'Answers the question of an approver about a request of the caller',
    body: 'RequestText',
    failures: { '409': 'No one waits for an answer' },
    handle: answerQuestion,
  },
} satisfies OperationTable<MainParts>

const defaultLimit = 100
const maxListed = 500
const maxBodyBytes = 16 * 1024
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const cancelSchema = z.strictObject({ reason: storableText(maxReason).nullish() })

/** The caller's requests or, with `about=me`, all requests about the caller. */
async function listRequests(parts: MainParts, { request, subject }: Exchange): Promise<GatewayResponse> {
  const query = readQuery(request.query, ['state', 'about', 'after', 'limit'], ['state'])
  const [about = 'mine'] = query.about
  if (about !== 'mine' && about !== 'me') throw badRequest('about must be mine or me.')
  const [after] = query.after
  const wanted = query.state.map(readState)
  const page = await parts.host.runs.list({
    ...(about === 'me' ? { about: userOf(parts, subject) } : { requestedBy: approvalUser(subject) }),
    ...(wanted.length === 0 ? {} : { states: wanted }),
    after,
    limit: readLimit(query.limit, defaultLimit, maxListed),
  })
  return answer({
    requests: page.runs.map(await summariesOf(page.runs, parts)),
    ...(page.next === undefined ? {} : { next: page.next }),
    names: await parts.names(page.runs.flatMap(usersOfRun)),
  } satisfies RequestList)
}

function readState(word: string): RunState {
  if (!isRunState(word)) throw badRequest(`state must be one of ${runStates.join(', ')}.`)
  return word
}

async function showRequest(parts: MainParts, { subject }: Exchange, id = ''): Promise<GatewayResponse> {
  const run = await ownRun(id, subject, parts)
  const [steps, approvals, messages] = await Promise.all([
    parts.host.runs.steps(run.head.id),
    parts.host.approvals.ofRun(run.head.id),
    parts.host.approvals.messagesOf(run.head.id),
  ])
  const details: RequestDetails = {
    ...(await summaryOf(run, parts)),
    mayCancel: isRequester(run, subject) && !hasEnded(run.state) && !run.touched,
    // A run that continued, or was stopped, keeps the error that it had before.
    ...(run.incident !== undefined && (run.state === 'incident' || run.state === 'failed')
      ? { failure: failureOf(run.incident.code) }
      : {}),
    ...(run.state === 'ready' ? await delayOf(run, subject, parts) : {}),
    timeline: steps.map((step) => wireForm(requestStep, step)),
    approvals: approvals.map(approvalDocument),
    messages: messages.map(messageView),
    mayAnswer: isRequester(run, subject) && run.state === 'waiting' && messages.at(-1)?.kind === 'question',
    names: await parts.names([...usersOfRun(run), ...approvals.flatMap(approversOf), ...messages.map(({ by }) => by)]),
  }
  return answer(details)
}

/** Why a queued run has not been continued yet. */
async function delayOf(
  run: Run,
  subject: Subject,
  parts: MainParts,
): Promise<Pick<RequestDetails, 'retry' | 'behind'>> {
  const retry = run.attempt === 0 ? {} : { retry: { attempt: run.attempt + 1, at: run.due.toISOString() } }
  const ahead = await parts.host.runs.ahead(run.head.id)
  if (ahead === undefined) return retry
  const isShown = concerns(ahead, subject, parts)
  return { ...retry, behind: isShown ? { id: ahead.head.id, label: await labelOf(ahead, parts) } : {} }
}

/** Only for the requester, while no target was changed. */
async function cancelRequest(parts: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  const { reason } = await readJsonBody(request, cancelSchema, maxBodyBytes)
  const run = await ownRun(id, subject, parts)
  if (!isRequester(run, subject)) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" did not ask for run ${id}`, {
      publicText: 'Only the requester can cancel this request.',
    })
  }
  await parts.host.runs.withdraw({
    id,
    fence: run.fence,
    by: subject.uid,
    ...(reason === undefined || reason === null || reason === '' ? {} : { reason }),
  })
  const ended = await ownRun(id, subject, parts)
  // The requester need not be notified of this.
  if (hasEnded(ended.state)) await parts.host.portal.memory.markRead(userOf(parts, subject), [outcomeId(ended)])
  return answer(await summaryOf(ended, parts))
}

/** The id of the notification about an outcome: another one after each intervention of an administrator. */
export const outcomeId = ({ head: { id }, state, fence }: Run): string => `request:${id}:${state}:${fence}`

/** Answers the question of an approver. Only for the requester. */
async function answerQuestion(parts: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  const { text } = await readJsonBody(request, messageSchema, maxBodyBytes)
  const run = await ownRun(id, subject, parts)
  if (!isRequester(run, subject)) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" did not request run ${id}`, {
      publicText: 'Only the requester can answer.',
    })
  }
  await parts.host.approvals.answer(approvalUser(subject), { run: id, text, requestId: request.id })
  return emptyAnswer(204)
}

/** A request of another user does not exist for the caller. */
async function ownRun(id: string, subject: Subject, parts: MainParts): Promise<Run> {
  const run = runId.test(id) ? await parts.host.runs.get(id) : undefined
  if (run === undefined || !concerns(run, subject, parts)) {
    throw notFound(`no run "${id.slice(0, 80)}" of "${subject.uid}"`, 'There is no such request.')
  }
  return run
}

const concerns = (run: Run, subject: Subject, parts: MainParts): boolean =>
  isRequester(run, subject) || isUser(run.head.who.subject, userOf(parts, subject))

/** The user in whose name it was submitted, and the user who submitted it. */
const isRequester = ({ head: { who } }: Run, subject: Subject): boolean =>
  [who.requester, who.caller].some((identity) => isUser(identity, approvalUser(subject)))

const labelOf = async ({ head }: Run, parts: MainParts): Promise<string> => (await labelsOf([head], parts))(head)

/** Summaries of these runs, with what the access is now that they granted. */
async function summariesOf(runs: readonly Run[], parts: MainParts): Promise<(run: Run) => RequestSummary> {
  const heads = runs.map(({ head }) => head)
  const [label, access] = await Promise.all([
    labelsOf(heads, parts),
    parts.host.grants.ofRuns(heads.map(({ id }) => id)),
  ])
  return (run) =>
    wireForm(requestSummary, {
      ...run,
      ...wireHead(run.head),
      label: label(run.head),
      access: access.get(run.head.id),
    })
}

const summaryOf = async (run: Run, parts: MainParts): Promise<RequestSummary> => (await summariesOf([run], parts))(run)

/** Details of the failure are for administrators. */
function failureOf(code: string): { readonly code: string; readonly text: string } {
  const known: ErrorCode = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'WORKFLOW_FAILED'
  return { code: known, text: errorCodes[known].text }
}
