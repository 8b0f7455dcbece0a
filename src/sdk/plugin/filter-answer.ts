import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { PluginAnswerReader } from './plugin-answer.ts'
import { readHeaders } from './plugin-request.ts'

type FilterAnswer =
  | { readonly kind: 'response'; readonly response: GatewayResponse }
  | { readonly kind: 'next'; readonly headers: GatewayResponse['headers'] }

const contents = ['body', 'json', 'bodyBase64'] as const
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * Passing on must be explicit: an answer that is neither a response nor `next: true` throws, so that a function that
 * forgets to return its refusal lets no request through.
 */
export function readFilterAnswer(value: JsonValue | undefined, reader: PluginAnswerReader): FilterAnswer {
  const answer = reader.object(value)
  const isNext = Object.hasOwn(answer, 'next')
  const known: readonly string[] = isNext ? ['next', 'headers'] : ['status', 'headers', ...contents]
  const unknown = Object.keys(answer).find((name) => !known.includes(name))
  if (unknown !== undefined) throw reader.malformed(`it has the unknown field "${unknown}"`)
  const headers = readHeaders(answer['headers'], reader)
  if (!isNext) return { kind: 'response', response: readResponse(answer, headers, reader) }
  if (answer['next'] !== true) throw reader.malformed('next must be true')
  return { kind: 'next', headers }
}

/** The headers replace those of the answer; cookies are set beside its own. */
export function addHeaders(response: GatewayResponse, added: GatewayResponse['headers']): GatewayResponse {
  const headers: Record<string, string | string[]> = { ...response.headers }
  for (const [name, value] of Object.entries(response.headers)) {
    const own = added[name.toLowerCase()]
    if (own === undefined) continue
    delete headers[name]
    if (name.toLowerCase() === 'set-cookie') headers['set-cookie'] = [value, own].flat()
  }
  return { ...response, headers: { ...added, ...headers } }
}

function readResponse(
  answer: JsonObject,
  headers: Record<string, string | string[]>,
  reader: PluginAnswerReader,
): GatewayResponse {
  const { status } = answer
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw reader.malformed('status must be a whole number from 200 to 599')
  }
  const [content, ...others] = contents.filter((name) => Object.hasOwn(answer, name))
  if (content === undefined) return { status, headers }
  if (others.length > 0) throw reader.malformed(`it may have one of ${contents.join(', ')}`)
  if (bodiless.has(status)) throw reader.malformed(`an answer with status ${status} has no ${content}`)
  const value = answer[content]
  if (content === 'json') {
    const type = { 'content-type': 'application/json; charset=utf-8' }
    return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) }
  }
  if (typeof value !== 'string') throw reader.malformed(`${content} must be a text`)
  if (content === 'bodyBase64') {
    const type = { 'content-type': 'application/octet-stream' }
    return { status, headers: { ...type, ...headers }, body: Buffer.from(value, 'base64') }
  }
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8', ...headers }, body: value }
}
