import { type ErrorCode, GatewayError, type GatewayErrorOptions } from '#kernel/errors.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'

/** What a server refused with. */
export interface Refusal {
  /** The call, in words for the log: whose it was, method and path. */
  readonly call: string
  readonly status: number
  readonly body: JsonValue | undefined
  /** Seconds. */
  readonly retryAfter?: number | undefined
  /** What was sent must not be told, and the server may repeat it. */
  readonly secret?: boolean
}

const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  412: 'VERSION_MISMATCH',
  413: 'BAD_REQUEST',
  422: 'BAD_REQUEST',
  429: 'TARGET_UNREACHABLE',
  501: 'NOT_SUPPORTED',
}

/** Codes whose reason is about what the client sent, so that it may be told. */
const tellable: ReadonlySet<ErrorCode> = new Set(['BAD_REQUEST', 'CONFLICT'])

const maxDetail = 300

/** A refused call by the status (RFC 7644 3.12). What the server says of it is cut to a line. */
export function answerError({ call, status, body, retryAfter, secret = false }: Refusal): GatewayError {
  const message = isJsonObject(body) ? body : {}
  const detail = secret ? '' : line(message['detail'])
  const keyword = line(message['scimType'])
  const isTaken = status === 400 && keyword === 'uniqueness'
  const code = isTaken ? 'CONFLICT' : (codes[status] ?? (status >= 500 ? 'TARGET_UNREACHABLE' : 'TARGET_FAILED'))
  const options: GatewayErrorOptions = {
    ...(retryAfter === undefined ? {} : { retryAfter: Math.ceil(retryAfter) }),
    ...(tellable.has(code) && detail !== '' ? { publicText: detail } : {}),
    ...(code === 'CONFLICT' ? { keyword: 'uniqueness' } : knownKeyword(code, keyword)),
  }
  return new GatewayError(code, `${call} answered ${status}${detail === '' ? '' : `: ${detail}`}`, options)
}

const keywords: ReadonlySet<string> = new Set([
  ...['invalidFilter', 'tooMany', 'mutability', 'invalidSyntax', 'invalidPath', 'noTarget', 'invalidValue'],
  ...['invalidCursor', 'expiredCursor', 'invalidCount'],
])

const knownKeyword = (code: ErrorCode, keyword: string): { keyword?: string } =>
  code === 'BAD_REQUEST' && keywords.has(keyword) ? { keyword } : {}

const line = (value: JsonValue | undefined): string =>
  typeof value === 'string'
    ? value
        .slice(0, maxDetail)
        .toWellFormed()
        .replace(/[\p{Cc}\s]+/gu, ' ')
        .trim()
    : ''
