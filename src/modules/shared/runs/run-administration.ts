import * as z from 'zod'
import type { AdminRun, AdminStep } from '#contract/main-admin.ts'
import type { DecisionView, RequestApproval } from '#contract/main-requests.ts'
import { adminRun, adminStep } from '#contract/schemas/main-admin.ts'
import { wireForm } from '#contract/wire.ts'
import type { Approval, ApprovalDecision } from '#domain/approval.ts'
import { isRunState, type Run, type RunQuery, runStates, type StoredStep } from '#domain/run.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readJsonBody } from '#modules/shared/http/json-body.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import type { RunIntervention } from '#sdk/workflow/runs.ts'

const maxBodyBytes = 16 * 1024
const defaultLimit = 100
const maxLimit = 500
const runId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const reason = z
  .string()
  .max(2_000)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), 'must not have characters that cannot be kept')
const fence = z.int().min(0)

/** Skipping a task and cancelling a run need a reason. */
export const interventions = {
  retry: z.strictObject({ fence, reason: reason.optional() }),
  skip: z.strictObject({ fence, reason: reason.min(1) }),
  cancel: z.strictObject({ fence, reason: reason.min(1) }),
}
type Action = keyof typeof interventions

const isAction = (word: string | undefined): word is Action => word !== undefined && Object.hasOwn(interventions, word)

/** Shows the runs of this installation to administrators, who can retry, skip and cancel. */
export class RunAdministration {
  readonly #readOnly: boolean
  readonly #host: Pick<FilterHost, 'runs' | 'approvals' | 'log'>

  constructor(readOnly: boolean, host: Pick<FilterHost, 'runs' | 'approvals' | 'log'>) {
    this.#readOnly = readOnly
    this.#host = host
  }

  /** `path` is `/runs`, `/incidents` or below; NOT_FOUND for others. The caller has checked the user's permission. */
  async answer(exchange: Pick<Exchange, 'request' | 'subject'>, path: string): Promise<GatewayResponse> {
    const { request } = exchange
    const [collection, id, action, ...rest] = path.split('/').slice(1)
    if (collection === 'incidents' && id === undefined) {
      allow(request.method, 'GET')
      return await this.#list({ ...readListQuery(request.query, false), states: ['incident'] })
    }
    if (collection === 'runs' && rest.length === 0) {
      if (id === undefined) {
        allow(request.method, 'GET')
        return await this.#list(readListQuery(request.query, true))
      }
      if (action === undefined) {
        allow(request.method, 'GET')
        return answer(await this.#show(await this.#run(id), readStepQuery(request.query)))
      }
      if (isAction(action)) {
        allow(request.method, 'POST')
        return answer(runDocument(await this.#intervene(exchange, action, await this.#run(id))))
      }
    }
    throw new GatewayError('NOT_FOUND', `nothing at "${path}"`)
  }

  async #list(query: RunQuery): Promise<GatewayResponse> {
    const { runs, next } = await this.#host.runs.list(query)
    return answer({ runs: runs.map(runDocument), next })
  }

  async #run(id: string): Promise<Run> {
    const run = runId.test(id) ? await this.#host.runs.get(id) : undefined
    if (run !== undefined) return run
    throw new GatewayError('NOT_FOUND', `no run "${id.slice(0, 80)}"`, { publicText: 'There is no such run.' })
  }

  async #show(run: Run, after: number | undefined) {
    const [timeline, approvals] = await Promise.all([
      this.#host.runs.steps(run.id, after),
      this.#host.approvals.ofRun(run.id),
    ])
    return { ...runDocument(run), timeline: timeline.map(stepDocument), approvals: approvals.map(approvalDocument) }
  }

  /** Returns the changed run. */
  async #intervene(
    { request, subject }: Pick<Exchange, 'request' | 'subject'>,
    action: Action,
    { id }: Run,
  ): Promise<Run> {
    if (this.#readOnly) {
      throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" requested ${action}, but this filter is read-only`)
    }
    const asked = await readJsonBody<{ fence: number; reason?: string | undefined }>(
      request,
      interventions[action],
      maxBodyBytes,
    )
    const intervention: RunIntervention = {
      id,
      fence: asked.fence,
      by: subject.uid,
      ...(asked.reason === undefined || asked.reason === '' ? {} : { reason: asked.reason }),
    }
    const { log, runs } = this.#host
    await runs[action](intervention)
    log.info('workflow run changed by an administrator', { workflowId: id, action, by: subject.uid })
    return await this.#run(id)
  }
}

const answer = (body: unknown): GatewayResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json; charset=utf-8' },
  body: JSON.stringify(body),
})

function allow(method: string, allowed: string): void {
  if (method !== allowed) throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: allowed } })
}

/** Rejects unknown parameters: a mistyped filter would show more than the caller meant. */
function readListQuery(query: URLSearchParams, byState: boolean): RunQuery {
  refuseOthers(query, ['name', 'subject', 'requestor', 'limit', 'after', ...(byState ? ['state'] : [])])
  const states = query.getAll('state').map((word) => {
    if (isRunState(word)) return word
    throw wrong(`state must be one of ${runStates.join(', ')}.`)
  })
  const given = (name: 'name' | 'subject' | 'requestor' | 'after') => {
    const value = query.get(name)
    return value === null ? {} : { [name]: value }
  }
  return {
    ...(states.length === 0 ? {} : { states }),
    ...given('name'),
    ...given('subject'),
    ...given('requestor'),
    ...given('after'),
    limit: readNumber(query, 'limit', 1, maxLimit) ?? defaultLimit,
  }
}

/** The step after which a timeline continues. */
function readStepQuery(query: URLSearchParams): number | undefined {
  refuseOthers(query, ['after'])
  return readNumber(query, 'after', 0, Number.MAX_SAFE_INTEGER)
}

function readNumber(query: URLSearchParams, name: string, min: number, max: number): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw wrong(`${name} must be a whole number from ${min} to ${max}.`)
}

function refuseOthers(query: URLSearchParams, known: readonly string[]): void {
  for (const name of query.keys()) {
    if (!known.includes(name)) throw wrong(`There is no query parameter "${name.slice(0, 80)}".`)
    if (name !== 'state' && query.getAll(name).length > 1) throw wrong(`${name} may be given once.`)
  }
}

const wrong = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })

const runDocument = (run: Run): AdminRun => wireForm(adminRun, run)

const stepDocument = (step: StoredStep): AdminStep => wireForm(adminStep, step)

export const approvalDocument = ({ id, label, state, opened, escalation, ...rest }: Approval): RequestApproval => ({
  id,
  label,
  status: state,
  opened: opened.toISOString(),
  escalation,
  approvers: rest.approvers.map(({ login }) => login),
  ...(rest.decision === undefined ? {} : { decision: decisionView(rest.decision) }),
})

export const decisionView = ({ at, by, onBehalfOf, comment }: ApprovalDecision): DecisionView => ({
  at: at.toISOString(),
  ...(by === undefined ? {} : { by: by.login }),
  ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
  ...(comment === undefined ? {} : { comment }),
})
