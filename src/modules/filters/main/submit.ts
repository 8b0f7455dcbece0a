import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { SubmitOutcome, SubmitOutcomes, SubmitResults } from '#contract/main.ts'
import { Attributes } from '#identity/attributes.ts'
import { isUser } from '#identity/identity.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { accessEndKey } from '#sdk/workflow/access-end.ts'
import { approvalUser } from '#sdk/workflow/approvals.ts'
import type { CallKey } from '#sdk/workflow/runs.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow/workflow.ts'
import { answer } from './answer.ts'
import { auditRefusal, type MainParts, userOf } from './main-parts.ts'
import { type CartLine, cartBounds, cartSchema, maxCartBytes } from './request-body.ts'
import { AnothersLogin, type ReadyLine, Refused, type RequestSubject, readLine } from './request-line.ts'

/** How long a line waits for the same line that came just before it. */
const waitMillis = 10_000
const atOnce = 4

/** Each line is a request of its own; the failure of one does not affect the others. */
export const submitCart =
  (parts: MainParts) =>
  async (exchange: Exchange): Promise<GatewayResponse> => {
    const lines = await readJsonBody(exchange.request, cartSchema, maxCartBytes, cartBounds)
    const outcomes: Record<string, SubmitOutcome> = Object.create(null)
    for (const line of lines) outcomes[line.uuid] = await submitLine(line, exchange, parts)
    // Clients of OpenUnison treat any text but `success`, and any other member, as a failure.
    return answer(exchange.request.query.get('outcomes') === 'true' ? outcomes : resultsOf(outcomes))
  }

function resultsOf(outcomes: SubmitOutcomes): SubmitResults {
  const results: Record<string, string> = Object.create(null)
  for (const [uuid, { result }] of Object.entries(outcomes)) results[uuid] = result
  return results
}

async function submitLine(line: CartLine, exchange: Exchange, parts: MainParts): Promise<SubmitOutcome> {
  const { host } = parts
  const { subject, request } = exchange
  try {
    const ready = await readLine(line, subject, parts)
    for (const login of ready.unknown) await createPerson(login, exchange, parts)
    const decisions = await inParallel(ready.subjects, atOnce, (one) => startFor(one, ready, exchange, parts))
    await noteUse(ready.workflow, subject, parts)
    return { result: 'success', ...(ready.preApproval === undefined ? {} : { decision: decisionOf(decisions) }) }
  } catch (thrown) {
    if (thrown instanceof AnothersLogin) await auditRefusal(parts, exchange, line.name)
    if (thrown instanceof Refused) return { result: thrown.message }
    host.log.error('a request could not be submitted', {
      workflow: line.name,
      by: subject.uid,
      requestId: request.id,
      err: thrown,
    })
    return { result: 'Unable to submit' }
  }
}

/** A failure is only logged, since the request itself was submitted. */
async function noteUse(name: string, subject: Subject, parts: MainParts): Promise<void> {
  try {
    await parts.host.portal.memory.noteUse(userOf(parts, subject), { kind: 'workflow', name })
  } catch (err) {
    parts.host.log.warn('a request was not noted as used', { workflow: name, err })
  }
}

/** Creates a user before something is requested for it. */
async function createPerson(login: string, { subject, request }: Exchange, parts: MainParts): Promise<void> {
  const { jitWorkflow, uidAttributeName } = parts.settings.given
  if (jitWorkflow === undefined) throw new Refused(`Error, user ${login} does not exist;`)
  await parts.host.workflows.run({
    name: jitWorkflow,
    requestor: subject.uid,
    who: { requestor: subject.identity },
    user: { userID: login, attributes: Attributes.from({ [uidAttributeName]: [login] }), groups: [] },
    keepGroups: true,
    requestId: request.id,
    params: {},
  })
}

async function startFor(one: RequestSubject, line: ReadyLine, exchange: Exchange, parts: MainParts): Promise<Decision> {
  const { subject, request } = exchange
  const { login, identity } = one
  const call: WorkflowCall = {
    name: line.workflow,
    requestor: subject.uid,
    who: { requestor: subject.identity, ...(identity === undefined ? {} : { subject: identity }) },
    user: {
      userID: login,
      attributes: Attributes.from({ [parts.settings.given.uidAttributeName]: [login] }),
      groups: [],
    },
    keepGroups: true,
    params: withEnd(line),
    // To decide the first approval, it must be open when the call returns.
    asynchronous: line.preApproval === undefined,
    kept: true,
    requestId: request.id,
    ...(line.reason === '' ? {} : { reason: line.reason }),
  }
  const started = await startOnce(call, callKey(one, line, exchange), parts)
  return line.preApproval === undefined ? 'none' : decideFirst(started, line.preApproval, exchange, parts)
}

/** The expiry date that the requester chose overrides a parameter of the same name. */
const withEnd = ({ parameters, ends }: ReadyLine): WorkflowCall['params'] =>
  ends === undefined ? parameters : { ...parameters, [accessEndKey]: ends.toISOString() }

function callKey(
  { login, identity }: RequestSubject,
  line: ReadyLine,
  { application, mount, subject }: Exchange,
): CallKey {
  const sha256 = (value: unknown): string => hash('sha256', JSON.stringify(value), 'base64url')
  const { workflow, reason, preApproval } = line
  return {
    scope: sha256(['main', application, mount, subject.identity]),
    key: `${line.uuid} ${sha256(identity ?? login.toLowerCase())}`,
    bodyHash: sha256([workflow, reason, Object.entries(withEnd(line)).sort(), preApproval ?? null]),
  }
}

/** A line that is sent again starts nothing. */
async function startOnce(call: WorkflowCall, key: CallKey, { host }: MainParts): Promise<StartedRun> {
  const deadline = performance.now() + waitMillis
  for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
    const start = await host.runs.start(call, key)
    if ('result' in start) return { result: start.result, isNew: start.kind === 'started' }
    if (start.kind === 'other-body') throw new Refused('Error, this was submitted before with other content')
    if (performance.now() > deadline) throw new Refused('Error, the same request is being submitted')
    await delay(pause)
  }
}

type Decision = NonNullable<SubmitOutcome['decision']>

interface StartedRun {
  readonly result: WorkflowResult
  /** False if the same line was sent before. */
  readonly isNew: boolean
}

/** The decision about several runs; one that is left to others takes precedence. */
const decisionOf = (decisions: readonly Decision[]): Decision =>
  (['left', 'taken'] as const).find((one) => decisions.includes(one)) ?? 'none'

/**
 * The requester's own decision about the first approval of the run, by the rules of that approval: if requesters may not
 * decide, it stays open for others. Later approvals stay open. A line that is sent again decides nothing, and returns the
 * earlier decision.
 */
async function decideFirst(
  { result, isNew }: StartedRun,
  { approve, comment }: NonNullable<ReadyLine['preApproval']>,
  { subject, request }: Exchange,
  { host }: MainParts,
): Promise<Decision> {
  const [first] = await host.approvals.ofRun(result.id)
  // A run that waits for other runs of the same user has no approval yet, so the requester cannot decide it now.
  if (first === undefined) return result.status === 'accepted' ? 'left' : 'none'
  if (!isNew || result.status !== 'waiting' || first.state !== 'open') {
    return isUser(first.decision?.by?.identity, approvalUser(subject)) ? 'taken' : 'left'
  }
  try {
    await host.approvals.decide(approvalUser(subject), { approval: first.id, approve, comment, requestId: request.id })
    return 'taken'
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.isRefusal) throw error
    host.log.info('a pre-approval was not taken; the approval stays open', {
      approval: first.id,
      reason: error.message,
    })
    return 'left'
  }
}
