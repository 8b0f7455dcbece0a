import { afterAll, beforeAll } from 'vitest'
import { expectDescribed } from '#testing/gateway/api-contract.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'

export interface PortalApiRequest {
  readonly as?: string
  readonly method?: string
  /** Sent as JSON, unless it is a text or a stream. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface PortalApi {
  /** The Main API as a user of the example, Ada by default. */
  send(path: string, request?: PortalApiRequest): Promise<Response>
  /** Without a token. */
  sendAnonymously(path: string): Promise<Response>
}

/** A gateway with examples/portal-api, or a copy that `prepare` made, for the tests of the current suite. */
export function usePortalApi(
  databaseUrl?: () => Promise<string>,
  prepare: () => Promise<string> = async () => 'examples/portal-api',
): PortalApi {
  let gateway: GatewayProcess
  const tokens = new Map<string, Promise<string>>()
  beforeAll(async () => {
    const url = await databaseUrl?.()
    const args = url === undefined ? [] : ['--database', url]
    gateway = await startGatewayProcess({ config: await prepare(), args })
  })
  afterAll(async () => void (await gateway?.stop()))

  const token = (login: string): Promise<string> => {
    const known = tokens.get(login) ?? gateway.token('--subject', login)
    tokens.set(login, known)
    return known
  }
  const address = (path: string): string => `${gateway.url}/portal/main${path}`
  return {
    send: async (path, { as = 'ada', method = 'GET', body, headers = {} } = {}) => {
      const response = await fetch(address(path), {
        method,
        headers: {
          authorization: `Bearer ${await token(as)}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: bodyOf(body), duplex: 'half' }),
      })
      const text = await response.clone().text()
      const type = response.headers.get('content-type')
      expectDescribed({ method, path: `/portal/main${path}`, status: response.status, type, text })
      return response
    },
    sendAnonymously: (path) => fetch(address(path)),
  }
}

const bodyOf = (body: unknown): string | ReadableStream<Uint8Array> =>
  typeof body === 'string' || body instanceof ReadableStream ? body : JSON.stringify(body)
