import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'

/** A poll of RFC 8936 2.2. */
export interface PollRequest {
  readonly maxEvents: number
  readonly returnImmediately: boolean
  readonly ack: readonly string[]
  readonly setErrs: ReadonlyMap<string, { readonly error: string; readonly description: string }>
}

export const pollLimits = {
  /** The maximum number of tokens in one response. */
  events: 200,
  /** The default. */
  defaultEvents: 100,
  /** Ids in `ack`, and in `setErrs`. */
  ids: 1000,
  idLength: 256,
} as const

const maxErrorText = 200

/** Unknown members are ignored (RFC 8936 2.2). Throws BAD_REQUEST with a text for the client. */
export function parsePollRequest(body: JsonValue): PollRequest {
  if (!isJsonObject(body)) throw malformed('The body must be a JSON object.')
  return {
    maxEvents: readMax(body['maxEvents']),
    returnImmediately: readFlag(body['returnImmediately']),
    ack: readIds(body['ack']),
    setErrs: readErrors(body['setErrs']),
  }
}

function readMax(value: JsonValue | undefined): number {
  if (value === undefined) return pollLimits.defaultEvents
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return Math.min(value, pollLimits.events)
  throw malformed('maxEvents must be a whole number, 0 or more.')
}

function readFlag(value: JsonValue | undefined): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false
  throw malformed('returnImmediately must be true or false.')
}

function readIds(value: JsonValue | undefined): readonly string[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.length <= pollLimits.ids && value.every(isId)) return value
  throw malformed(`ack must be a list of at most ${pollLimits.ids} token ids.`)
}

function readErrors(value: JsonValue | undefined): PollRequest['setErrs'] {
  if (value === undefined) return new Map()
  const entries = isJsonObject(value) ? Object.entries(value) : undefined
  if (entries === undefined || entries.length > pollLimits.ids || !entries.every(([id]) => isId(id))) {
    throw malformed(`setErrs must be an object with at most ${pollLimits.ids} token ids.`)
  }
  return new Map(
    entries.map(([id, told]) => {
      if (!isJsonObject(told) || typeof told['err'] !== 'string') throw malformed('Each of setErrs needs an err.')
      return [id, { error: textOf(told, 'err'), description: textOf(told, 'description') }]
    }),
  )
}

const isId = (value: JsonValue): value is string =>
  typeof value === 'string' && value !== '' && value.length <= pollLimits.idLength

function textOf(object: JsonObject, name: string): string {
  const value = object[name]
  return typeof value === 'string' ? value.slice(0, maxErrorText) : ''
}

const malformed = (publicText: string): GatewayError => new GatewayError('BAD_REQUEST', publicText, { publicText })
