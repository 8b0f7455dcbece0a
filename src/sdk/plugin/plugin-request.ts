import { isUtf8 } from 'node:buffer'
import type { Subject } from '#identity/subject.ts'
import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { validateHeaderName, validateHeaderValue } from '#protocols/http/node-http.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import type { Parameter } from '#sdk/module/parameter-types.ts'
import { wholeNumber } from '#sdk/module/parameter-types.ts'
import type { PluginAnswerReader } from './plugin-answer.ts'
import type { PluginRequest, PluginSubject } from './plugin-types.ts'

/** The part of a request that a plug-in gets. */
interface RequestShare {
  /** 0: the body is not read. */
  readonly maxBodyBytes: number
  /** Hidden headers, in lower case. */
  readonly withheld: ReadonlySet<string>
}

/** Withheld from filters: the caller is authenticated by now, so a plug-in needs no credential that it could misuse. */
export const credentialHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** The row of modules whose plug-ins get requests. */
export const maxBodyKilobytes = (fallback: number): Parameter<number> =>
  wholeNumber({
    about: 'Maximum size of a body for the plug-in; a longer one is refused (413). `0`: the body is not read.',
    fallback,
    min: 0,
    max: 4096,
  })

/** Throws BODY_TOO_LARGE beyond the limit. Later filters can read the body again. */
export async function plainRequest(request: GatewayRequest, share: RequestShare): Promise<PluginRequest> {
  const { id, method, origin, host, path, remoteAddress } = request
  const body = share.maxBodyBytes === 0 ? undefined : await request.body(share.maxBodyBytes)
  const isText = body !== undefined && isUtf8(body)
  return {
    id,
    method,
    origin,
    host,
    path,
    query: byName(request.query),
    headers: byName(shownHeaders(request, share.withheld)),
    remoteAddress,
    body: isText ? body.toString('utf8') : null,
    bodyBase64: isText || body === undefined ? null : body.toString('base64'),
  }
}

export const plainSubject = ({ dn, uid, attributes, level, chain }: Subject): PluginSubject => ({
  dn: dn.toString(),
  uid,
  attributes: attributes.toObject(),
  level,
  chain,
})

function* shownHeaders(
  { headers }: GatewayRequest,
  withheld: ReadonlySet<string>,
): Iterable<readonly [string, string]> {
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || withheld.has(name.toLowerCase())) continue
    for (const one of typeof value === 'string' ? [value] : value) yield [name.toLowerCase(), one]
  }
}

function byName(pairs: Iterable<readonly [string, string]>): Record<string, string[]> {
  const found: Record<string, string[]> = Object.create(null)
  for (const [name, value] of pairs) {
    if (isForbiddenKey(name)) continue
    const values = found[name]
    if (values === undefined) found[name] = [value]
    else values.push(value)
  }
  return found
}

/** Headers that only the server sets, since they decide where an answer ends. */
const reserved: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const maxHeaders = 64
const maxCharacters = 16 * 1024

/** Headers of a plug-in's answer, with names in lower case. Throws for a text that would not be a single header. */
export function readHeaders(
  value: JsonValue | undefined,
  reader: PluginAnswerReader,
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  if (value === undefined || value === null) return headers
  let count = 0
  let characters = 0
  for (const [given, content] of Object.entries(reader.object(value, 'headers'))) {
    const name = given.toLowerCase()
    if (reserved.has(name) || isForbiddenKey(name)) throw reader.malformed(`the header "${given}" cannot be set`)
    if (Object.hasOwn(headers, name)) throw reader.malformed(`the header "${given}" is there twice`)
    const values = typeof content === 'string' ? [content] : reader.texts(content, `headers.${given}`)
    for (const one of values) {
      if (!isHeader(name, one)) throw reader.malformed(`the header "${given}" has a name or value that is not allowed`)
      characters += name.length + one.length
    }
    count += values.length
    if (count > maxHeaders || characters > maxCharacters) throw reader.malformed('there are too many headers')
    headers[name] = typeof content === 'string' ? content : values
  }
  return headers
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
