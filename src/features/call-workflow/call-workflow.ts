import { hash, scrypt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { endedRun, problem, runStatus, startedRun } from '#features/call-workflow/contract/call-workflow.ts'
import type { CallHost } from '#features/call-workflow/host.ts'
import { Attributes } from '#identity/attributes.ts'
import { isUser } from '#identity/identity.ts'
import { callerRef, type Subject } from '#identity/subject.ts'
import { type ErrorCode, errorCodes, type FieldProblem, GatewayError } from '#kernel/errors.ts'
import type { Path } from '#kernel/issues.ts'
import { jsonBody } from '#kernel/json.ts'
import { wireForm } from '#kernel/wire.ts'
import { placeAtSegment } from '#sdk/api/api-description.ts'
import { problemErrors } from '#sdk/api/json-answer.ts'
import { jsonPointer, readJsonBody } from '#sdk/api/json-body.ts'
import { ServedApi } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { defineFilter } from '#sdk/filter/filter.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'
import type { CallKey } from '#sdk/workflow/workflow.ts'
import { isEngineKey, type WorkflowCall, type WorkflowResult } from '#sdk/workflow/workflow.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import type { Run, StoredStep } from '#workflows/record/run.ts'
import { AnotherSubject, type RefusedCall } from '#workflows/record/run-requests.ts'
import { wireHead } from '#workflows/record/wire-head.ts'
import type { CallClaims } from './call-rights.ts'
import {
  type CallBody,
  CallRefused,
  callSchema,
  isLogin,
  maxBodyBytes,
  readClaims,
  rightsParameters,
  subjectParameter,
} from './call-rights.ts'

const parameters = {
  allowedWorkflow: list({
    about:
      'The workflows that callers may run; may repeat. Without any, none. One that does not exist is a warning of `check`, and 404 when it is called.',
    reference: 'workflow',
    absentReference: 'warning',
  }),
  subject: subjectParameter,
  uidAttributeName: text({
    about: 'The attribute that must name the user; without it, the body chooses one.',
  }),
  allowGroups: list({
    about:
      'The groups that a body may name, or `*` for every group; may repeat. A call changes memberships of these groups only. Without any, of none.',
  }),
  requireRequestorMatch: flag({
    about: '`"false"` lets a call name another `requestor` than the authenticated caller.',
    fallback: true,
  }),
  declaredParamsOnly: flag({
    about:
      '`"true"` refuses `requestParams` that the workflow neither uses as `$name$` nor lists in its `parameters`. Keys of the engine are always refused.',
  }),
}

/** How long a call waits for the answer to the same call that came just before it. */
const waitMillis = 20_000
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type Config = ReturnType<typeof readParameters<typeof parameters>> & {
  /** The configuration has a parameter of the rights. */
  readonly namesRights: boolean
  /** `subject` as written in the configuration. */
  readonly subjects: readonly string[]
  /** Of `allowedWorkflow`. */
  readonly path: Path
}

/** Runs a workflow for authorized callers, and shows the run to the caller that started it. */
export default defineFilter({
  className: 'filters.CallWorkflow',
  aliases: ['com.tremolosecurity.proxy.filters.CallWorkflow'],
  parameters,
  answers: true,
  errors: problemErrors,
  parse: (params, issues, context) => {
    const read = readParameters(parameters, params, issues, context)
    if (read.allowedWorkflow.length === 0) {
      issues.warning(params.pathOf('allowedWorkflow'), 'without an allowed workflow nothing can be called')
    }
    const subjects = params.values('subject').filter((value) => value !== '')
    const namesRights = rightsParameters.some((name) => params.values(name).some((value) => value !== ''))
    return { ...read, subjects, namesRights, path: params.pathOf('allowedWorkflow') }
  },
  summarize: ({ allowedWorkflow, subjects, allowGroups, requireRequestorMatch, namesRights }) => [
    ...allowedWorkflow.map((value) => ({ label: 'workflow', value })),
    ...(subjects.length === 0 ? ['caller'] : subjects).map((value) => ({ label: 'for the user', value })),
    { label: 'groups', value: allowGroups.length === 0 ? 'none' : allowGroups.join(', ') },
    { label: 'requestor', value: requireRequestorMatch ? 'caller' : 'any' },
    ...(namesRights ? [] : [{ label: 'without a directory entry', value: 'any user, group and requestor' }]),
  ],
  callable: ({ allowedWorkflow, path, allowGroups, subject, namesRights }) => ({
    workflows: allowedWorkflow,
    path,
    groups: allowGroups.length > 0,
    forThemselves: subject.includes('caller'),
    trustsPrograms: !namesRights,
  }),
  api: () => callWorkflowApi.served(placeAtSegment, { formats: ['openapi', 'swagger'], users: callWorkflowApi }),
  create: (config, host: CallHost) => callWorkflowApi.filter(new CallWorkflow(config, host)),
})

class CallWorkflow {
  readonly #allowed: ReadonlySet<string>
  readonly #config: Config
  readonly #host: CallHost

  constructor(config: Config, host: CallHost) {
    this.#allowed = new Set(config.allowedWorkflow)
    this.#config = config
    this.#host = host
  }

  async start({ request, application, mount, subject, session }: Exchange): Promise<GatewayResponse> {
    const body = await readJsonBody(request, callSchema, maxBodyBytes)
    // A workflow that may not be called looks like one that doesn't exist.
    if (!this.#allowed.has(body.name)) {
      throw new GatewayError(
        'ACCESS_DENIED',
        `workflow "${body.name}" is not one of the workflows that may be called`,
        {
          publicText: 'This workflow may not be called here.',
        },
      )
    }
    const takes = this.#host.workflowParameters(body.name)
    if (takes === undefined) {
      throw new GatewayError('NOT_FOUND', `there is no workflow "${body.name}"`, {
        publicText: 'There is no such workflow.',
      })
    }
    const asked = await this.#readCall(body, takes, { request, subject })
    const reason = body.reason === '' ? undefined : body.reason
    const call: WorkflowCall = {
      ...asked,
      head: { ...asked.head, workflow: body.name, reason, requestId: request.id },
      ...(session === undefined ? {} : { session: session.id }),
      kept: true,
    }
    const scope = sha256(JSON.stringify([application, mount, subject.identity]))
    const key = await readCallKey(request, body, scope)
    // Equal calls without a key are recognized where the first of them may fail part way.
    const { severalTimes } = this.#host.workflowWrites(body.name)
    const resource = severalTimes ? { resource: `call ${scope} ${key?.key ?? (await bodyHash(body, scope))}` } : {}
    const result = await this.#run({ ...call, ...resource }, key, request.signal).catch(async (error: unknown) => {
      if (error instanceof AnotherSubject) {
        const refused = [{ kind: 'entry', attribute: 'subject', value: error.value }] as const
        await this.#refuse(call.head.workflow, call.user.userID, refused, subject, request)
      }
      throw error
    })
    return startAnswer(result, `${request.origin}${mount}`)
  }

  async #readCall(
    body: CallBody,
    takes: ReadonlySet<string>,
    { request, subject }: Pick<Exchange, 'request' | 'subject'>,
  ): Promise<CallParts & CallClaims> {
    const parts = readCall(body, { ...this.#config, declared: takes })
    try {
      const claims = await readClaims(body, parts.user, subject, this.#config, this.#host)
      return { ...parts, ...claims }
    } catch (error) {
      if (error instanceof CallRefused)
        await this.#refuse(body.name, parts.user.userID, error.refused, subject, request)
      throw error
    }
  }

  #refuse(
    name: string,
    userID: string,
    refused: RefusedCall['refused'],
    { uid }: Subject,
    { id }: GatewayRequest,
  ): Promise<void> {
    return this.#host.runs.refuse({ name, caller: uid, subject: userID, requestId: id, refused })
  }

  /** Concurrent calls with the same key all get the answer to the first of them. */
  async #run(call: WorkflowCall, key: CallKey | undefined, signal: AbortSignal): Promise<WorkflowResult> {
    const deadline = performance.now() + waitMillis
    for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
      const start = await this.#host.runs.start(call, key)
      if ('result' in start) return start.result
      if (start.kind === 'other-body') {
        throw new GatewayError('UNPROCESSABLE', 'an idempotency key was used for another body', {
          publicText: 'The Idempotency-Key was used for another request.',
        })
      }
      if (signal.aborted || performance.now() > deadline) {
        throw new GatewayError('CONFLICT', `the same call is under way as run ${start.run}`, {
          publicText: 'The same request is still being answered.',
          retryAfter: 5,
        })
      }
      await delay(pause)
    }
  }

  /** Another caller's run, or one that this URL could not have started, does not exist for the caller. */
  async #own({ subject }: Exchange, id: string): Promise<Run> {
    const run = runId.test(id) ? await this.#host.runs.get(id) : undefined
    const starter = run?.head.caller === undefined ? run?.head.who.requester : run.head.who.caller
    const isOwn = isUser(starter, callerRef(subject))
    if (run === undefined || !isOwn || !this.#allowed.has(run.head.workflow)) {
      throw new GatewayError('NOT_FOUND', `no run "${id.slice(0, 80)}" of "${subject.uid}"`, {
        publicText: 'There is no such run.',
      })
    }
    return run
  }

  async show(exchange: Exchange, name: string): Promise<GatewayResponse> {
    const run = await this.#own(exchange, name)
    return statusAnswer(run, await this.#host.runs.steps(run.head.id, readAfter(exchange.request.query)))
  }

  async cancel(exchange: Exchange, name: string): Promise<GatewayResponse> {
    const { subject } = exchange
    const { head, fence } = await this.#own(exchange, name)
    const { id } = head
    const status = await this.#host.runs.withdraw({ id, fence, by: subject.uid })
    return jsonAnswer(status === 'cancelled' ? 200 : 202, { workflowId: id, status })
  }
}

function readAfter(query: URLSearchParams): number | undefined {
  for (const name of query.keys()) {
    if (name !== 'after') throw wrong(`There is no query parameter "${name.slice(0, 80)}".`)
  }
  const after = query.get('after')
  if (after === null) return undefined
  if (!/^\d{1,15}$/.test(after)) throw wrong('after must be the id of a step.')
  return Number(after)
}

const wrong = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })

const slowHash = promisify<string, string, number, Buffer>(scrypt)
const sha256 = (text: string): string => hash('sha256', text, 'base64url')

/** The key that makes the call idempotent; undefined if the caller sent none. */
async function readCallKey(request: GatewayRequest, body: CallBody, scope: string): Promise<CallKey | undefined> {
  const key = header(request, 'idempotency-key')
  if (key === undefined) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    const publicText = 'An Idempotency-Key has 1 to 255 visible ASCII characters.'
    throw new GatewayError('BAD_REQUEST', 'an unusable idempotency key', { publicText })
  }
  return { scope, key, bodyHash: await bodyHash(body, `${scope} ${key}`) }
}

/** The stored hash must not help to guess the password in the body, so the password is hashed slowly. */
async function bodyHash(body: CallBody, salt: string): Promise<string> {
  const { userPassword, ...user } = body.user
  const password = userPassword === undefined ? '' : (await slowHash(userPassword, salt, 32)).toString('base64url')
  return sha256(JSON.stringify([{ ...body, user }, password]))
}

/** 200 for a completed run; 202 with its URL for one that continues. */
function startAnswer({ id, status, changes }: WorkflowResult, address: string): GatewayResponse {
  if (status === 'completed') return jsonAnswer(200, { workflowId: id, status, changes })
  return jsonAnswer(202, { workflowId: id, status }, { location: `${address}/${id}` })
}

/** The status for the caller that started the run. Only administrators see the details of a failure. */
function statusAnswer(run: Run, steps: readonly StoredStep[]): GatewayResponse {
  const { head, state, incident } = run
  const failure = incident && { task: incident.task, code: incident.code, text: textOf(incident) }
  const timeline = steps.map((step) => wireForm(runStatus.shape.timeline.element, step))
  const status = { ...run, ...wireHead(head), workflowId: head.id, status: state, timeline, failure }
  return jsonAnswer(200, wireForm(runStatus, status))
}

const textOf = ({ code }: { readonly code: string }): string =>
  (Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : errorCodes.WORKFLOW_FAILED).text

const jsonAnswer = (
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): GatewayResponse => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
  body: jsonBody(body),
})

const execType = 'UNISON.EXEC.TYPE'
const execTypes: ReadonlyMap<string, boolean> = new Map([
  ['UNISON.EXEC.SYNC', false],
  ['UNISON.EXEC.ASYNC', true],
])

type CallParts = Pick<WorkflowCall, 'user' | 'params' | 'asynchronous' | 'password'>

interface CallRules {
  /** The parameters that the workflow declares, or uses as `$name$`. */
  readonly declared: ReadonlySet<string>
  /** Whether other parameters are rejected. */
  readonly declaredParamsOnly: boolean
  /** The attribute that must name the subject; undefined if the body chooses one. */
  readonly uidAttributeName: string | undefined
}

/** A well-formed body without its groups. Throws UNPROCESSABLE, which names every part that can't be used. */
function readCall(body: CallBody, rules: CallRules): CallParts {
  const { uidAttributeName } = rules
  const problems: FieldProblem[] = []
  if (uidAttributeName !== undefined && uidAttributeName.toLowerCase() !== body.uidAttributeName.toLowerCase()) {
    problems.push({ pointer: '/uidAttributeName', detail: `must be "${uidAttributeName}" here` })
  }
  const subject = readSubject(body, problems)
  const asynchronous = readExecType(body, problems)
  const params = readParams(body, rules, problems)
  if (problems.length > 0) {
    const list = problems.map(({ pointer, detail }) => `${pointer} ${detail}`).join('; ')
    throw new GatewayError('UNPROCESSABLE', `the call may not be made: ${list}`, { problems })
  }
  const { userPassword } = body.user
  const attributes = Attributes.from(body.user.attributes.map((one) => [one.name, one.values] as const))
  if (!attributes.has(body.uidAttributeName)) attributes.set(body.uidAttributeName, [subject])
  return {
    user: { userID: subject, attributes, groups: [] },
    params,
    asynchronous,
    password: userPassword,
  }
}

const loginDetail = 'must be one login of at most 256 characters, since it names the subject'
const isSubject = (login: string): boolean => login.length <= 256 && isLogin(login)

/** The one value of the attribute that names the subject, or else `user.uid`. A repeated one could name two. */
function readSubject({ user, uidAttributeName }: CallBody, problems: FieldProblem[]): string {
  const seen = new Set<string>()
  for (const [i, { name }] of user.attributes.entries()) {
    const pointer = jsonPointer(['user', 'attributes', i, 'name'])
    if (seen.has(name.toLowerCase())) problems.push({ pointer, detail: 'is there twice' })
    seen.add(name.toLowerCase())
  }
  const { uid = '' } = user
  const at = user.attributes.findIndex(({ name }) => name.toLowerCase() === uidAttributeName.toLowerCase())
  if (at < 0) {
    if (uid === '') {
      const detail = 'names none of the attributes of the user, and user.uid is missing; send one of them'
      problems.push({ pointer: '/uidAttributeName', detail })
    } else if (!isSubject(uid)) problems.push({ pointer: '/user/uid', detail: loginDetail })
    return uid
  }
  const values = user.attributes[at]?.values ?? []
  const [value = ''] = values
  if (values.length !== 1 || !isSubject(value)) {
    problems.push({ pointer: jsonPointer(['user', 'attributes', at, 'values']), detail: loginDetail })
  } else if (uid !== '' && !sameLogin(uid, value)) {
    const detail = `names another user than the attribute "${uidAttributeName}"; send the same login in both, or only one`
    problems.push({ pointer: '/user/uid', detail })
  }
  return value
}

function readExecType({ requestParams = {} }: CallBody, problems: FieldProblem[]): boolean {
  const value = requestParams[execType]
  if (value === undefined) return false
  const asynchronous = execTypes.get(value)
  if (asynchronous === undefined) {
    const detail = `must be ${[...execTypes.keys()].join(' or ')}`
    problems.push({ pointer: jsonPointer(['requestParams', execType]), detail })
  }
  return asynchronous ?? false
}

/** A key that the engine reads; callers may set it only if the workflow lists it. */
const isReserved = (name: string): boolean => /^unison[._]/i.test(name)
const isParameterName = (name: string): boolean => /^[^\p{Cc}]{1,256}$/u.test(name) && name.isWellFormed()

/** Templates write `_` for a dot in a name, so `$a_b$` declares `a.b`. */
function readParams(
  { requestParams = {} }: CallBody,
  { declared, declaredParamsOnly }: CallRules,
  problems: FieldProblem[],
): Record<string, string> {
  const params: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(requestParams)) {
    if (name === execType) continue
    const pointer = jsonPointer(['requestParams', name])
    const isDeclared = declared.has(name) || declared.has(name.replaceAll('.', '_'))
    if (isEngineKey(name) || (isReserved(name) && !isDeclared)) {
      problems.push({ pointer, detail: 'steers the engine, which no caller may' })
    } else if (!isParameterName(name)) {
      problems.push({ pointer, detail: 'needs a name of 1 to 256 characters without control characters' })
    } else if (declaredParamsOnly && !isDeclared) {
      const detail = 'is not a parameter of this workflow; list it in Workflow.parameters, or use it in a task'
      problems.push({ pointer, detail })
    } else params[name] = value
  }
  return params
}

/** The call itself, and everything below it. */
export const callWorkflowApi = new ServedApi<CallWorkflow>({
  title: 'Call-workflow API',
  version: '1.0.0',
  answers: { StartedRun: startedRun, RunStatus: runStatus, EndedRun: endedRun, Problem: problem },
  bodies: { WorkflowCall: callSchema },
  failure: { description: 'What is wrong', schema: 'Problem', type: 'application/problem+json' },
  documentsAt: placeAtSegment,
  operations: {
    callWorkflow: {
      route: 'POST',
      summary: 'Runs a workflow',
      body: 'WorkflowCall',
      answer: 'StartedRun',
      answers: {
        '202': { description: 'The run is stored; Location is where to ask for its status', schema: 'StartedRun' },
      },
      failures: {
        '400': 'The body is not valid',
        '403': 'The call asks for something that callers may not ask for here',
        '422': 'The body has values that are not allowed',
      },
      handle: (calls, exchange) => calls.start(exchange),
    },
    getRun: {
      route: 'GET /{workflowId}',
      summary: 'Status and timeline of a run, for the caller who started it',
      query: { after: 'The id of a step: only the steps after it' },
      answer: 'RunStatus',
      failures: { '404': 'The caller started no such run' },
      handle: (calls, exchange, id = '') => calls.show(exchange, id),
    },
    endRun: {
      route: 'DELETE /{workflowId}',
      summary: 'Ends a run that has changed no target',
      answer: 'EndedRun',
      answers: { '202': { description: 'The run will be cancelled when its task ends', schema: 'EndedRun' } },
      failures: { '409': 'The run has changed something' },
      handle: (calls, exchange, id = '') => calls.cancel(exchange, id),
    },
  },
})
