import { createHash } from 'node:crypto'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import {
  type Authority,
  authorityParameters,
  loadAuthority,
  readAuthority,
} from '#modules/shared/authority/authority.ts'
import { AnswerTooLong, type HttpAnswer, type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { readRetryAfter } from '#protocols/secevent/event-pusher.ts'
import { parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { RemoteGateway, RemoteWorkflowAnswer, RemoteWorkflowCall } from '#sdk/target/remote-gateway.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import { defineTarget } from '#sdk/target/target-module.ts'
import { lastMileToken, readLastMileKey } from './last-mile-token.ts'

function readToken(value: string): string {
  if (/^[\x21-\x7e]{1,16384}$/.test(value)) return value
  throw new Error('must be visible ASCII characters')
}

const parameters = {
  token: parsed('token', readToken, {
    about: 'The bearer token that the other gateway accepts.',
    requirement: '`token` or `lastMileKey`',
    secret: true,
  }),
  lastMileKey: parsed('AES key in base64', readLastMileKey, {
    about: 'The key of the LastMile tokens that an OpenUnison accepts.',
    requirement: '`token` or `lastMileKey`',
    secret: true,
  }),
  ...authorityParameters,
  timeoutMillis: wholeNumber({
    about: 'How long a call may take. The other gateway answers a synchronous call when its run has ended.',
    fallback: 30_000,
    min: 100,
    max: 120_000,
  }),
} satisfies ParameterTable

type Credential = { readonly token: string } | { readonly lastMileKey: Buffer }

interface Config {
  readonly credential: Credential
  readonly authority: Authority
  readonly timeoutMillis: number
}

/** Another gateway, with the credential for its call-workflow API. It has no users of its own. */
export default defineTarget<Config>({
  className: 'targets.RemoteGateway',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    const { token, lastMileKey, timeoutMillis } = given
    const isSet = (name: string): boolean => params.values(name).some((value) => value !== '')
    if (isSet('token') === isSet('lastMileKey')) {
      issues.error(params.pathOf('token'), 'one of "token" and "lastMileKey" is required, and not both')
    }
    return {
      credential: lastMileKey === undefined ? { token: token ?? '' } : { lastMileKey },
      authority: readAuthority(given, params, issues, context),
      timeoutMillis,
    }
  },
  create: async (config, { name, clock }) => {
    const pool = openHttpPool(await loadAuthority(config.authority))
    const caller = new WorkflowCaller(config, pool, name, clock)
    const noUsers = async (): Promise<never> => {
      throw new GatewayError('NOT_SUPPORTED', `target "${name}" is another gateway: users are not provisioned to it`)
    }
    const target: RemoteGateway = {
      callWorkflow: (call, request) => caller.call(call, request),
      findUser: noUsers,
      createUser: noUsers,
      syncUser: noUsers,
      deleteUser: noUsers,
      close: () => pool.close(),
    }
    return target
  },
})

const maxAnswerBytes = 1024 * 1024
/** The call may succeed later: 409 also says that an earlier attempt is still being answered. */
const passing = new Set([408, 409, 425, 429])

class WorkflowCaller {
  readonly #config: Config
  readonly #pool: HttpPool
  readonly #target: string
  readonly #clock: Clock

  constructor(config: Config, pool: HttpPool, target: string, clock: Clock) {
    this.#config = config
    this.#pool = pool
    this.#target = target
    this.#clock = clock
  }

  async call(call: RemoteWorkflowCall, request: TargetRequest): Promise<RemoteWorkflowAnswer> {
    const { url, body } = call
    const deadline = AbortSignal.timeout(this.#config.timeoutMillis)
    const signal = request.signal === undefined ? deadline : AbortSignal.any([deadline, request.signal])
    const text = JSON.stringify(body)
    const headers = {
      accept: 'application/json',
      'content-type': 'application/json',
      'user-agent': 'gatehouse',
      authorization: `Bearer ${this.#token(call)}`,
      'idempotency-key': createHash('sha256').update(`${request.idempotencyKey} ${url.href}`).digest('base64url'),
    }
    let answer: HttpAnswer
    try {
      answer = await this.#pool.send({ method: 'POST', url, headers, body: text }, { signal, bytes: maxAnswerBytes })
    } catch (cause) {
      if (cause instanceof AnswerTooLong) throw this.#failure('TARGET_FAILED', url, `failed: ${cause.message}`, cause)
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw this.#failure('TARGET_UNREACHABLE', url, signal.aborted ? 'took too long' : `failed: ${reason}`, cause)
    }
    if (answer.status >= 200 && answer.status < 300) return { status: answer.status, ...runOf(answer) }
    throw this.#refusal(url, answer)
  }

  #token({ url, account, timeSkewMillis: skewMillis }: RemoteWorkflowCall): string {
    const { credential } = this.#config
    if ('token' in credential) return credential.token
    return lastMileToken(credential.lastMileKey, { path: url.pathname, ...account, skewMillis, now: this.#clock() })
  }

  /** The body is left out: it may repeat what was sent. */
  #refusal(url: URL, { status, headers }: HttpAnswer): GatewayError {
    const id = String(headers['x-request-id'] ?? '')
    const request = /^[\w-]{1,100}$/.test(id) ? ` (request ${id} there)` : ''
    const text = `was answered with status ${status}${request}`
    if (passing.has(status) || (status >= 500 && status !== 501 && status !== 505)) {
      const wait = readRetryAfter(headers['retry-after'], this.#clock())
      return this.#failure('TARGET_UNREACHABLE', url, text, undefined, wait)
    }
    if (status === 401 || status === 403) {
      return this.#failure('TARGET_FAILED', url, `${text}: it does not accept the credential, or the call`)
    }
    if (status >= 300 && status < 400) return this.#failure('TARGET_FAILED', url, `${text}: redirects are not followed`)
    return this.#failure('TARGET_FAILED', url, text)
  }

  #failure(
    code: 'TARGET_FAILED' | 'TARGET_UNREACHABLE',
    url: URL,
    text: string,
    cause?: unknown,
    waitMillis?: number,
  ): GatewayError {
    const retryAfter = waitMillis === undefined ? {} : { retryAfter: Math.ceil(waitMillis / 1000) }
    return new GatewayError(code, `the call of target "${this.#target}" to ${url.href} ${text}`, {
      cause,
      ...retryAfter,
    })
  }
}

/** OpenUnison answers with an empty body. */
function runOf({ body }: HttpAnswer): { readonly run?: string } {
  try {
    const answer: unknown = JSON.parse(body)
    const run = isJsonObject(answer) ? answer['workflowId'] : undefined
    return typeof run === 'string' && /^[\w-]{1,100}$/.test(run) ? { run } : {}
  } catch {
    return {}
  }
}
