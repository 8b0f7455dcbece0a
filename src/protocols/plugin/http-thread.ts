/**
 * The program of the thread that sends HTTP requests for a script whose own thread waits. It is passed as a text,
 * so what it imports is passed within it. One request at a time; its response is on the port before the signal is set.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { type MessagePort, workerData } from 'node:worker_threads'
import { forwarded, OutgoingHttpsAgent, OutgoingProxies } from '#protocols/http/outgoing-proxy.ts'

interface Request {
  readonly url: string
  readonly method: string
  readonly headers: readonly [string, string][]
  /** In base64. */
  readonly body: string | null
  readonly timeoutMillis: number | null
  readonly connectMillis: number | null
  readonly redirect: 'NEVER' | 'NORMAL' | 'ALWAYS'
}

const maxBodyBytes = 16 * 1024 * 1024
const maxRedirects = 5
const connectFailures = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ECONNRESET|EPIPE)$/

const { port, signal, gateway, proxyVariables } = workerData as {
  readonly port: MessagePort
  /** The process that started this one. */
  readonly gateway: number
  readonly signal: Int32Array
  readonly proxyVariables: Readonly<Record<string, string>>
}

const proxies = new OutgoingProxies(proxyVariables)

/** A script that computes without end never notices that its gateway was killed. */
setInterval(() => {
  if (process.ppid !== gateway) process.kill(process.pid, 'SIGKILL')
}, 1000).unref()

port.on('message', async ({ request, ends }: { request: string; ends: number }) => {
  const answer = await exchange(JSON.parse(request) as Request, ends).catch(failureOf)
  port.postMessage(JSON.stringify(answer))
  Atomics.store(signal, 0, 1)
  Atomics.notify(signal, 0)
})

/** `ends`: the deadline, by the clock. */
async function exchange(request: Request, ends: number): Promise<object> {
  const left = Math.max(1, ends - Date.now())
  const limit = AbortSignal.timeout(Math.min(request.timeoutMillis ?? left, left))
  let next = request
  for (let i = 0; ; i++) {
    const response = await send(next, limit)
    const redirected = redirectOf(next, response)
    if (redirected === undefined || i === maxRedirects) return { url: next.url, ...(await read(response)) }
    response.resume()
    next = redirected
  }
}

function send({ url, method, headers, body, connectMillis }: Request, limit: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const target = new URL(url)
    const content = body === null ? undefined : Buffer.from(body, 'base64')
    const isSecure = target.protocol === 'https:'
    const given: Record<string, string[]> = {}
    for (const [name, value] of headers) given[name] = [...(given[name] ?? []), value]
    const length = content === undefined ? {} : { 'Content-Length': content.length }
    const proxy = isSecure ? undefined : proxies.find(target)
    const agent = isSecure ? new OutgoingHttpsAgent({}, proxies) : false
    const sent = { ...given, ...length }
    const options = { method, agent, signal: limit, headers: sent, ...(proxy && forwarded(target, sent, proxy)) }
    const outgoing = ((proxy?.isSecure ?? isSecure) ? httpsRequest : httpRequest)(target, options, resolve)
    outgoing.on('error', reject)
    // A server that switches protocols ends the request without an error.
    outgoing.on('close', () => reject(new Error('the connection closed before there was an answer')))
    if (connectMillis !== null) {
      const slow = Object.assign(new Error('HTTP connect timed out'), { code: 'ECONNECTTIMEOUT' })
      const timer = setTimeout(() => outgoing.destroy(slow), connectMillis)
      const connected = () => clearTimeout(timer)
      outgoing.on('socket', (socket) => (socket.connecting ? socket.once('connect', connected) : connected()))
      outgoing.on('close', connected)
    }
    outgoing.end(content)
  })
}

async function read(response: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxBodyBytes) throw new Error(`the answer is longer than ${maxBodyBytes} bytes`)
    chunks.push(chunk)
  }
  const headers = response.rawHeaders.flatMap((name, i, all) => (i % 2 === 0 ? [[name, all[i + 1] ?? '']] : []))
  return { status: response.statusCode ?? 0, headers, body: Buffer.concat(chunks).toString('base64') }
}

/** The request that follows a redirect; undefined if there is none or it must not be followed. */
function redirectOf(request: Request, { statusCode = 0, headers }: IncomingMessage): Request | undefined {
  const { location } = headers
  if (request.redirect === 'NEVER' || location === undefined || ![301, 302, 303, 307, 308].includes(statusCode)) return
  const [from, to] = [new URL(request.url), new URL(location, request.url)]
  if (!/^https?:$/.test(to.protocol)) return
  if (request.redirect === 'NORMAL' && from.protocol === 'https:' && to.protocol === 'http:') return
  const asGet = statusCode === 303 || (statusCode < 303 && request.method === 'POST')
  const kept = request.headers.filter(([name]) => {
    if (from.origin !== to.origin && /^(?:authorization|cookie)$/i.test(name)) return false
    return !asGet || !/^content-/i.test(name)
  })
  return { ...request, url: to.href, headers: kept, ...(asGet ? { method: 'GET', body: null } : {}) }
}

function failureOf(error: unknown): object {
  const { code, name, message } = Object(error) as { code?: string; name?: string; message?: string }
  const timedOut =
    name === 'TimeoutError' || name === 'AbortError' || code === 'ETIMEDOUT' || code === 'ECONNECTTIMEOUT'
  const failure = timedOut ? 'timeout' : connectFailures.test(code ?? '') ? 'connect' : 'other'
  return { failure, message: timedOut ? 'request timed out' : String(message) }
}
