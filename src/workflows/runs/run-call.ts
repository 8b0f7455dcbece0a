import { Attributes } from '#identity/attributes.ts'
import type { RunIdentities } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { tracer, writeTraceparent } from '#kernel/tracing.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { isEngineKey, type WorkflowCall } from '#sdk/workflow/workflow.ts'
import type { RequestMap, WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import type { Definition, Pins } from '#workflows/definitions/definitions.ts'
import { expiryIn } from '#workflows/definitions/expiry-parameter.ts'
import type { RunProgress } from '#workflows/steps/run-progress.ts'
import { rootFrame } from '#workflows/steps/walk.ts'

/** How many runs may start one another: a workflow that starts itself must end. */
const maxDepth = 16

/**
 * The run of a call, before its first step. Copies the caller's user. Throws BAD_REQUEST, and WORKFLOW_FAILED if
 * too many runs started one another.
 */
export function runOf(call: WorkflowCall, definition: Definition, pins: Pins, deadline?: Date): RunProgress {
  if (call.user.userID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for a user without a login')
  if (call.newUserID === '') throw new GatewayError('BAD_REQUEST', 'a workflow was called for an empty new login')
  const { session, newAccount, bound, depth = 0 } = call
  if (depth > maxDepth) {
    const text = `workflow "${call.head.workflow}" was not started: more than ${maxDepth} runs started one another`
    throw new GatewayError('WORKFLOW_FAILED', text)
  }
  const id = newId()
  const request = createRequestMap(call.params)
  request.set('WORKFLOW_ID', id)
  const span = tracer?.current()
  return {
    head: {
      ...call.head,
      id,
      definition: definition.hash,
      subject: call.head.subject ?? call.user.userID,
      who: call.head.who ?? {},
      deadline,
      accessEnds: expiryIn(request),
    },
    session,
    trace: span === undefined ? undefined : writeTraceparent(span.context),
    user: workflowUser(call),
    request,
    frames: [rootFrame(definition)],
    pins,
    steps: 0,
    ...(depth === 0 ? {} : { depth }),
    bound,
    newAccount: newAccount === undefined ? undefined : { ...newAccount, created: [...(newAccount.created ?? [])] },
  }
}

/**
 * A run that a step of another run starts: one level deeper, with the same caller, and bound to the same user or
 * new account.
 */
export const startedCall = (
  call: WorkflowCall,
  { depth = 0, head, newAccount, bound }: Pick<RunProgress, 'depth' | 'head' | 'newAccount' | 'bound'>,
) => ({
  ...call,
  head: {
    ...call.head,
    caller: call.head.caller ?? head.caller,
    who: { ...inherited(call, head), ...call.head.who },
  },
  ...(newAccount === undefined ? {} : { newAccount }),
  ...(bound === undefined ? {} : { bound }),
  depth: depth + 1,
})

/** Logins that the starting run knows keep their identities. */
function inherited(call: WorkflowCall, { who, requester, subject }: RunHead): RunIdentities {
  const sameSubject = (call.head.subject ?? call.user.userID) === subject
  return {
    requester: call.head.requester === requester ? who.requester : undefined,
    caller: who.caller,
    subject: sameSubject ? who.subject : undefined,
  }
}

function workflowUser(call: WorkflowCall): WorkflowUser {
  const { head, user, password, newUserID, basedOn } = call
  return {
    userID: user.userID,
    attributes: Attributes.from(user.attributes),
    groups: [...user.groups],
    keepGroups: call.keepGroups ?? false,
    groupChanges: call.groupChanges,
    id: user.id,
    cleared: call.cleared,
    newUserID,
    basedOn: basedOn === undefined ? undefined : new Map([[basedOn.target, basedOn]]),
    requestReason: head.reason,
    password,
  }
}

const maxKeys = 256
const maxKeyLength = 256

/** How a run is executed; the only engine key that a caller may set. */
const execType = 'UNISON.EXEC.TYPE'
const synchronous = 'UNISON.EXEC.SYNC'
const asynchronous = 'UNISON.EXEC.ASYNC'

/** The request map of a run from what the caller passed. Throws BAD_REQUEST for engine keys and for too many keys. */
export function createRequestMap(params: Readonly<Record<string, string>>): RequestMap {
  const map: RequestMap = new Map()
  for (const key of Object.keys(params)) {
    if (map.size >= maxKeys) throw refused(`more than ${maxKeys} request parameters`)
    if (key.length === 0 || key.length > maxKeyLength) throw refused('a request parameter without a usable name')
    const value = params[key]
    if (typeof value !== 'string') throw refused(`request parameter "${key}" is not text`)
    if (key === execType) requireExecType(value)
    else if (isEngineKey(key)) throw refused(`request parameter "${key}" is a key of the engine`)
    map.set(key, value)
  }
  return map
}

/** The value of the call, or else of its request parameter; synchronous by default. */
export function isAsynchronous({ asynchronous: said, params }: Pick<WorkflowCall, 'asynchronous' | 'params'>): boolean {
  return said ?? (Object.hasOwn(params, execType) && params[execType] === asynchronous)
}

function requireExecType(value: string): void {
  if (value !== synchronous && value !== asynchronous) throw refused(`"${value}" is not an execution type`)
}

const refused = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, { publicText: 'A request parameter is not allowed.' })
