import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { IncomingMessage, ServerResponse } from '#protocols/http/node-http.ts'
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
  const message = { method: request.method, url, headers, remoteAddress: request.remoteAddress, mount, payload }
  const { response, body } = await exchangeWith(handler, message)
  const answered = response.getHeaders()
  const out: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(answered)) {
    if (value !== undefined && !dropped.has(name)) out[name] = typeof value === 'number' ? String(value) : value
  }
  const set = [answered['set-cookie'] ?? []].flat().filter((text) => !text.startsWith(`${cookieNames.session}`))
  if (set.length > 0) out['set-cookie'] = set
  return { status: response.statusCode, headers: out, body }
}

interface Message {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly remoteAddress: string
  readonly mount: string
  readonly payload: Buffer | undefined
}

/** Calls a handler of Node.js with a message that no socket received, and collects the response. */
async function exchangeWith(
  handler: Handler,
  { method, url, headers, remoteAddress, mount, payload }: Message,
): Promise<{ readonly response: ServerResponse; readonly body: Buffer }> {
  const sent: Buffer[] = []
  const memory = new Duplex({
    read: () => {},
    write: (chunk, _encoding, done) => {
      sent.push(chunk)
      done()
    },
    // Nothing empties it, so nothing waits for that.
    writableHighWaterMark: Number.MAX_SAFE_INTEGER,
  })
  const socket = Object.assign(memory, { remoteAddress }) as unknown as Socket
  const length = payload === undefined ? {} : { 'content-length': String(payload.length) }
  // The provider reads its mount from `baseUrl`. In HTTP/1.0, a body has no chunks and ends with its connection.
  const raw = Object.assign(new IncomingMessage(socket), {
    method,
    url,
    headers: { ...headers, ...length },
    httpVersion: '1.0',
    httpVersionMajor: 1,
    httpVersionMinor: 0,
    complete: true,
    baseUrl: mount,
  })
  if (payload !== undefined) raw.push(payload)
  raw.push(null)
  const response = new ServerResponse(raw)
  response.assignSocket(socket)
  const finished = once(response, 'finish')
  void handler(raw, response)
  await finished
  const message = Buffer.concat(sent)
  return { response, body: message.subarray(message.indexOf('\r\n\r\n') + 4) }
}

function flowCookies(text: string | undefined): string[] {
  const names = [cookieNames.interaction, cookieNames.resume].flatMap((name) => [`${name}=`, `${name}.sig=`])
  return (text ?? '')
    .split(';', 100)
    .map((part) => part.trim())
    .filter((part) => names.some((name) => part.startsWith(name)))
}
