import { setTimeout as delay } from 'node:timers/promises'
import { isUser } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/exchange.ts'
import { defineFilter, type Filter } from '#sdk/filter.ts'
import type { ModuleHost } from '#sdk/host.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { readJsonBody } from '#sdk/json-body.ts'
import { flag, list } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'
import { problemErrors } from '#sdk/problem-json.ts'
import type { CallKey, RunView } from '#sdk/runs.ts'
import type { WorkflowCall, WorkflowResult } from '#sdk/workflow.ts'
import { sameLogin } from '#sdk/workflow-user.ts'
import { callSchema, maxBodyBytes } from './call-body.ts'
import { readCallKey } from './call-key.ts'
import { readCall } from './read-call.ts'
import { jsonAnswer, startAnswer, statusAnswer } from './run-answer.ts'

const parameters = {
  allowedWorkflow: list({
    about: 'The workflows that may be called; may repeat. Without any, nothing may.',
    reference: 'workflow',
    absentReference: 'warning',
  }),
  requireRequestorMatch: flag({
    about: '`"true"` refuses a call whose `requestor` is another than the authenticated caller.',
  }),
}

/** How long a call waits for the answer to the same call that came just before it. */
const waitMillis = 20_000
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

type Config = ReturnType<typeof readParameters<typeof parameters>>

/** Runs a workflow for whoever may call it, and tells how the run goes on to whoever started it. */
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
    return read
  },
  summarize: ({ allowedWorkflow }) => allowedWorkflow.map((value) => ({ label: 'workflow', value })),
  create: (config, host) => new CallWorkflow(config, host),
})

class CallWorkflow implements Filter {
  readonly #allowed: ReadonlySet<string>
  readonly #requireMatch: boolean
  readonly #host: ModuleHost

  constructor({ allowedWorkflow, requireRequestorMatch }: Config, host: ModuleHost) {
    this.#allowed = new Set(allowedWorkflow)
    this.#requireMatch = requireRequestorMatch
    this.#host = host
  }

  async handle(exchange: Exchange): Promise<GatewayResponse> {
    const { request, pathInfo } = exchange
    if (pathInfo === '' || pathInfo === '/') {
      allow(request.method, ['POST'])
      return await this.#start(exchange)
    }
    allow(request.method, ['GET', 'DELETE'])
    const run = await this.#own(exchange, pathInfo.slice(1))
    return request.method === 'GET' ? await this.#tell(exchange, run) : await this.#cancel(exchange, run)
  }

  async #start({ request, application, mount, subject }: Exchange): Promise<GatewayResponse> {
    const body = await readJsonBody(request, callSchema, maxBodyBytes)
    // What may not be called is not told from what is not there.
    if (!this.#allowed.has(body.name)) {
      throw new GatewayError('ACCESS_DENIED', `workflow "${body.name}" is not among those that may be called`, {
        publicText: 'This workflow may not be called here.',
      })
    }
    const caller = subject.uid
    const requestor = body.requestor === undefined || sameLogin(body.requestor, caller) ? caller : body.requestor
    if (this.#requireMatch && requestor !== caller) {
      throw new GatewayError('ACCESS_DENIED', `"${caller}" called in the name of "${requestor}"`, {
        publicText: 'The requestor must be the caller.',
      })
    }
    const takes = this.#host.workflowParameters(body.name)
    if (takes === undefined) {
      throw new GatewayError('NOT_FOUND', `there is no workflow "${body.name}"`, {
        publicText: 'There is no such workflow.',
      })
    }
    const call: WorkflowCall = {
      ...readCall(body, takes),
      name: body.name,
      requestor,
      ...(requestor === caller
        ? { who: { requestor: subject.identity } }
        : { caller, who: { caller: subject.identity } }),
      requestId: request.id,
      kept: true,
    }
    const key = await readCallKey(request, body, { application, mount, caller: subject.identity })
    const result = await this.#run(call, key, request.signal)
    return startAnswer(result, `${request.origin}${mount}`)
  }

  /** Calls with a key that come at the same time all get the answer to the first of them. */
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

  /** Somebody else's run, or one that this URL could not have started, does not exist for the caller. */
  async #own({ subject }: Exchange, id: string): Promise<RunView> {
    const run = runId.test(id) ? await this.#host.runs.get(id) : undefined
    const starter = run?.caller === undefined ? run?.who.requestor : run.who.caller
    const isOwn = isUser(starter, { identity: subject.identity, login: subject.uid })
    if (run === undefined || !isOwn || !this.#allowed.has(run.name)) {
      throw new GatewayError('NOT_FOUND', `no run "${id.slice(0, 80)}" of "${subject.uid}"`, {
        publicText: 'There is no such run.',
      })
    }
    return run
  }

  async #tell({ request }: Exchange, run: RunView): Promise<GatewayResponse> {
    return statusAnswer(run, await this.#host.runs.steps(run.id, readAfter(request.query)))
  }

  async #cancel({ subject }: Exchange, { id, fence }: RunView): Promise<GatewayResponse> {
    const status = await this.#host.runs.cancel({ id, fence, by: subject.uid, onlyUntouched: true })
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

function allow(method: string, methods: readonly string[]): void {
  if (methods.includes(method)) return
  throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: methods.join(', ') } })
}
