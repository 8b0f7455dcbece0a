import * as z from 'zod'
import type { RequestDetails, RequestSummary } from '#contract/main-requests.ts'
import { requestStep, requestSummary } from '#contract/schemas/main-requests.ts'
import { wireForm } from '#contract/wire.ts'
import { hasEnded, isRunState, type Run, type RunState, runStates } from '#domain/run.ts'
import { isUser } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { type ErrorCode, errorCodes, GatewayError } from '#kernel/errors.ts'
import { answer, badRequest, notFound } from '#modules/shared/http/json-answer.ts'
import { readJsonBody, storableText } from '#modules/shared/http/json-body.ts'
import { approvalDocument } from '#modules/shared/runs/run-administration.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { approvalUser } from '#sdk/workflow/approvals.ts'
import { type MainParts, userOf } from './main-parts.ts'
import { readLimit, readQuery } from './routes.ts'
import { maxReason } from './submit.ts'

const defaultLimit = 100
const maxListed = 500
const maxBodyBytes = 16 * 1024
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const cancelSchema = z.strictObject({ reason: storableText(maxReason).nullish() })

/** The caller's requests or, with `about=me`, all requests about the caller. */
export const listRequests =
  (parts: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const query = readQuery(request.query, ['state', 'about', 'after', 'limit'], ['state'])
    const [about = 'mine'] = query.about
    if (about !== 'mine' && about !== 'me') throw badRequest('about must be mine or me.')
    const [after] = query.after
    const wanted = query.state.map(readState)
    const page = await parts.host.runs.list({
      ...(about === 'me' ? { about: userOf(parts, subject) } : { requestedBy: approvalUser(subject) }),
      ...(wanted.length === 0 ? {} : { states: wanted }),
      ...(after === undefined ? {} : { after }),
      limit: readLimit(query.limit, defaultLimit, maxListed),
    })
    return answer({
      requests: page.runs.map((run) => summaryOf(run, parts)),
      ...(page.next === undefined ? {} : { next: page.next }),
    })
  }

function readState(word: string): RunState {
  if (!isRunState(word)) throw badRequest(`state must be one of ${runStates.join(', ')}.`)
  return word
}

export const showRequest =
  (parts: MainParts) =>
  async ({ subject }: Exchange, id = ''): Promise<GatewayResponse> => {
    const run = await ownRun(id, subject, parts)
    const [steps, approvals] = await Promise.all([parts.host.runs.steps(run.id), parts.host.approvals.ofRun(run.id)])
    const details: RequestDetails = {
      ...summaryOf(run, parts),
      mayCancel: isRequester(run, subject) && !hasEnded(run.state) && !run.touched,
      ...(run.incident === undefined ? {} : { failure: failureOf(run.incident.code) }),
      timeline: steps.map((step) => wireForm(requestStep, step)),
      approvals: approvals.map(approvalDocument),
    }
    return answer(details)
  }

/** Only for the requester, while no target was changed. */
export const cancelRequest =
  (parts: MainParts) =>
  async ({ request, subject }: Exchange, id = ''): Promise<GatewayResponse> => {
    const { reason } = await readJsonBody(request, cancelSchema, maxBodyBytes)
    const run = await ownRun(id, subject, parts)
    if (!isRequester(run, subject)) {
      throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" did not ask for run ${id}`, {
        publicText: 'Only the requester can cancel this request.',
      })
    }
    await parts.host.runs.cancel({
      id,
      fence: run.fence,
      by: subject.uid,
      onlyUntouched: true,
      ...(reason === undefined || reason === null || reason === '' ? {} : { reason }),
    })
    return answer(summaryOf(await ownRun(id, subject, parts), parts))
  }

/** A request of another user does not exist for the caller. */
async function ownRun(id: string, subject: Subject, parts: MainParts): Promise<Run> {
  const run = runId.test(id) ? await parts.host.runs.get(id) : undefined
  const concerns = run && (isRequester(run, subject) || isUser(run.who.subject, userOf(parts, subject)))
  if (run === undefined || concerns !== true) {
    throw notFound(`no run "${id.slice(0, 80)}" of "${subject.uid}"`, 'There is no such request.')
  }
  return run
}

/** The user in whose name it was submitted, and the user who submitted it. */
const isRequester = ({ who }: Run, subject: Subject): boolean =>
  [who.requestor, who.caller].some((identity) => isUser(identity, approvalUser(subject)))

function summaryOf(run: Run, { host }: MainParts): RequestSummary {
  const label = host.portal.workflows.find(({ name }) => name === run.name)?.label ?? run.name
  return wireForm(requestSummary, { ...run, label })
}

/** Details of the failure are for administrators. */
function failureOf(code: string): { readonly code: string; readonly text: string } {
  const known: ErrorCode = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'WORKFLOW_FAILED'
  return { code: known, text: errorCodes[known].text }
}
