import type { IncomingMessage, ServerResponse } from 'node:http'
import type { inject } from 'light-my-request'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { type GatewayResponse, header } from '#sdk/http/http.ts'
import { boundFields } from '#sdk/http/read-form.ts'
import { cookieNames } from './provider-settings.ts'

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

const bodyBytes = 64 * 1024
/** Request headers; no others reach the provider. */
const passed = ['accept', 'authorization', 'content-type', 'origin', 'access-control-request-method'] as const
const passedToo = 'access-control-request-headers'
/** Response headers that are ours, not the provider's. */
const dropped = new Set(['connection', 'keep-alive', 'transfer-encoding', 'date', 'content-length', 'set-cookie'])

/**
 * Passes a request to the provider's callback and returns its response, without a socket. Only cookies of a running
 * flow pass. The provider's session is derived from ours, so that the browser never has one.
 */
export async function passToProvider(
  send: typeof inject,
  handler: Handler,
  { request, mount, pathInfo }: Exchange,
  sessionId: string | undefined,
  query: URLSearchParams,
): Promise<GatewayResponse> {
  const { host, protocol } = new URL(request.origin)
  const headers: Record<string, string> = { host, 'x-forwarded-proto': protocol.slice(0, -1) }
  for (const name of [...passed, passedToo]) {
    const value = header(request, name)
    if (value !== undefined) headers[name] = value
  }
  const cookies = flowCookies(header(request, 'cookie'))
  if (sessionId !== undefined) cookies.push(`${cookieNames.session}=${sessionId}`)
  if (cookies.length > 0) headers['cookie'] = cookies.join('; ')
  const payload = request.method === 'POST' ? await request.body(bodyBytes) : undefined
  if (payload !== undefined) boundFields(payload)
  const search = query.size === 0 ? '' : `?${query}`
  const url = `${pathInfo === '' ? '/' : pathInfo}${search}`
  const answer = await send(
    (raw, response) => {
      // The provider reads its mount from this.
      Object.assign(raw, { baseUrl: mount })
      void handler(raw, response)
    },
    {
      method: request.method,
      url,
      headers,
      remoteAddress: request.remoteAddress,
      ...(payload === undefined ? {} : { payload }),
    },
  )
  const out: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(answer.headers)) {
    if (value !== undefined && !dropped.has(name)) out[name] = typeof value === 'number' ? String(value) : value
  }
  const set = [answer.headers['set-cookie'] ?? []].flat().filter((text) => !text.startsWith(`${cookieNames.session}`))
  if (set.length > 0) out['set-cookie'] = set
  return { status: answer.statusCode, headers: out, body: answer.rawPayload }
}

function flowCookies(text: string | undefined): string[] {
  const names = [cookieNames.interaction, cookieNames.resume].flatMap((name) => [`${name}=`, `${name}.sig=`])
  return (text ?? '')
    .split(';', 100)
    .map((part) => part.trim())
    .filter((part) => names.some((name) => part.startsWith(name)))
}
