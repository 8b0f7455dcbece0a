import { createHash } from 'node:crypto'
import { JsonService, readBearerToken } from '#adapters/targets/shared/json-service.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { type HttpAnswer, openHttpPool } from '#protocols/http/http-client.ts'
import { type Authority, authorityParameters, loadAuthority, readAuthority } from '#sdk/module/authority.ts'
import { parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { RemoteGateway, RemoteWorkflowCall } from '#sdk/target/remote-gateway.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import { lastMileToken, readLastMileKey } from './last-mile-token.ts'

const parameters = {
  token: parsed('token', readBearerToken, {
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
  passwords: () => false,
  create: async ({ credential, authority, timeoutMillis }, { name, clock }) => {
    const pool = openHttpPool(await loadAuthority(authority))
    const service = new JsonService({ pool, target: name, timeoutMillis, clock })
    const noUsers = async (): Promise<never> => {
      throw new GatewayError('NOT_SUPPORTED', `target "${name}" is another gateway: users are not provisioned to it`)
    }
    const target: RemoteGateway = {
      async callWorkflow(call, { idempotencyKey, signal }) {
        const { url, body } = call
        const token = tokenOf(credential, call, clock())
        const key = createHash('sha256').update(`${idempotencyKey} ${url.href}`).digest('base64url')
        const answer = await service.call({
          method: 'POST',
          url,
          token,
          headers: { 'idempotency-key': key },
          body,
          signal,
        })
        if (isPage(answer)) {
          const text = `target "${name}": ${url.origin}${url.pathname} answered with a page, such as a login, and not as a gateway does`
          throw new GatewayError('TARGET_FAILED', text)
        }
        return { status: answer.status, ...runOf(answer) }
      },
      findUser: noUsers,
      createUser: noUsers,
      syncUser: noUsers,
      deleteUser: noUsers,
      close: () => pool.close(),
    }
    return target
  },
})

function tokenOf(credential: Credential, { url, account, timeSkewMillis }: RemoteWorkflowCall, now: Date): string {
  if ('token' in credential) return credential.token
  return lastMileToken(credential.lastMileKey, { path: url.pathname, ...account, skewMillis: timeSkewMillis, now })
}

/** A proxy in between may answer with its login, and a status of success. */
const isPage = ({ headers, body }: HttpAnswer): boolean =>
  /^text\/html\b/i.test(headers['content-type'] ?? '') && body.trim() !== ''

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
