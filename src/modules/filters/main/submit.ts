import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { SubmitResults } from '#contract/main.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { approvalUser } from '#sdk/approvals.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { readJsonBody } from '#sdk/json-body.ts'
import type { CallKey } from '#sdk/runs.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'
import { answer } from './answer.ts'
import { loginOf, type MainParts } from './main-parts.ts'
import { type CartLine, cartSchema, maxCartBytes } from './request-body.ts'
import { type ReadyLine, Refused, readLine } from './request-line.ts'

/** How long a line waits for the same line that came just before it. */
const waitMillis = 10_000
const atOnce = 4

/** Each line is a request of its own: what becomes of one has no bearing on the others. */
export const submitCart =
  (parts: MainParts) =>
  async (exchange: Exchange): Promise<GatewayResponse> => {
    const lines = await readJsonBody(exchange.request, cartSchema, maxCartBytes)
    const results: Record<string, string> = Object.create(null)
    for (const line of lines) results[line.uuid] = await submitLine(line, exchange, parts)
    return answer(results satisfies SubmitResults)
  }

async function submitLine(line: CartLine, exchange: Exchange, parts: MainParts): Promise<string> {
  const { host } = parts
  const { subject, request } = exchange
  try {
    const ready = await readLine(line, subject, parts)
    for (const login of ready.unknown) await createPerson(login, exchange, parts)
    await inParallel(ready.subjects, atOnce, (login) => startFor(login, ready, exchange, parts))
    await noteUse(ready.workflow, subject, parts)
    return 'success'
  } catch (thrown) {
    if (thrown instanceof Refused) return thrown.message
    host.log.error('a request could not be submitted', {
      workflow: line.name,
      by: subject.uid,
      requestId: request.id,
      err: thrown,
    })
    return 'Unable to submit'
  }
}

/** What was asked for is under way, whether or not the portal remembers that it was. */
async function noteUse(name: string, subject: Subject, parts: MainParts): Promise<void> {
  try {
    await parts.host.portal.memory.noteUse(loginOf(parts, subject), { kind: 'workflow', name })
  } catch (err) {
    parts.host.log.warn('a request was not noted as used', { workflow: name, err })
  }
}

/** Before anything is asked for on behalf of somebody who is not there yet. */
async function createPerson(login: string, { subject, request }: Exchange, parts: MainParts): Promise<void> {
  const { jitWorkflow, uidAttributeName } = parts.settings.given
  if (jitWorkflow === undefined) throw new Refused(`Error, user ${login} does not exist;`)
  await parts.host.workflows.run({
    name: jitWorkflow,
    requestor: subject.uid,
    user: { userID: login, attributes: Attributes.from({ [uidAttributeName]: [login] }), groups: [] },
    keepGroups: true,
    requestId: request.id,
    params: {},
  })
}

async function startFor(login: string, line: ReadyLine, exchange: Exchange, parts: MainParts): Promise<void> {
  const { subject, request } = exchange
  const call: WorkflowCall = {
    name: line.workflow,
    requestor: subject.uid,
    user: {
      userID: login,
      attributes: Attributes.from({ [parts.settings.given.uidAttributeName]: [login] }),
      groups: [],
    },
    keepGroups: true,
    params: line.parameters,
    // Whoever decides at once needs the approval to be open when the call is over.
    asynchronous: line.preApproval === undefined,
    kept: true,
    requestId: request.id,
    ...(line.reason === '' ? {} : { reason: line.reason }),
  }
  const started = await startOnce(call, callKey(login, line, exchange), parts)
  if (started.isNew && line.preApproval !== undefined) await preApprove(started.result, line, exchange, parts)
}

function callKey(login: string, line: ReadyLine, { application, mount, subject }: Exchange): CallKey {
  const sha256 = (value: unknown): string => hash('sha256', JSON.stringify(value), 'base64url')
  const { workflow, reason, parameters, preApproval } = line
  return {
    scope: sha256(['main', application, mount, subject.uid]),
    key: `${line.uuid} ${sha256(login.toLowerCase())}`,
    bodyHash: sha256([workflow, reason, Object.entries(parameters).sort(), preApproval ?? null]),
  }
}

/** A line that is sent again starts nothing. */
async function startOnce(
  call: WorkflowCall,
  key: CallKey,
  { host }: MainParts,
): Promise<{ readonly result: WorkflowResult; readonly isNew: boolean }> {
  const deadline = performance.now() + waitMillis
  for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
    const start = await host.runs.start(call, key)
    if ('result' in start) return { result: start.result, isNew: start.kind === 'started' }
    if (start.kind === 'other-body') throw new Refused('Error, this was submitted before with other content')
    if (performance.now() > deadline) throw new Refused('Error, the same request is being submitted')
    await delay(pause)
  }
}

/**
 * The requester's own decision about the first approval of the run, by the rules of that approval: where it does not let
 * requesters decide, it stays open for others. Later approvals are not touched.
 */
async function preApprove(
  { id, status }: WorkflowResult,
  { preApproval }: ReadyLine,
  { subject, request }: Exchange,
  { host }: MainParts,
): Promise<void> {
  if (status !== 'waiting' || preApproval === undefined) return
  const [first] = await host.approvals.ofRun(id)
  if (first?.status !== 'open') return
  const vote = { approval: first.id, approve: preApproval.approve, comment: preApproval.comment, requestId: request.id }
  try {
    await host.approvals.decide(approvalUser(subject), vote)
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.isRefusal) throw error
    host.log.info('a pre-approval was not taken; the approval stays open', {
      approval: first.id,
      reason: error.message,
    })
  }
}
