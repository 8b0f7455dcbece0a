import type { JournalEntry } from '#features/scim/journal/journal-entry.ts'
import { settle } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { isSecretName } from '#kernel/text/redaction.ts'
import { errorBody } from '#protocols/scim/schema/scim-error.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { notesOf, type Router } from './scim-call.ts'

/** The most workflow runs in one entry. */
const maxRuns = 100

/** Adds an entry for every call of the gateway, whether it succeeds or fails. The values that clients send are left out. */
export function withJournal(router: Router, record: (entry: JournalEntry) => void, clock: Clock): Router {
  return (exchange) => {
    const time = clock()
    const began = performance.now()
    const add = (status: number, error?: GatewayError): void => {
      record({ time, ...callFields(exchange), status, ...errorFields(error), millis: performance.now() - began })
    }
    return settle(
      () => router(exchange),
      (response) => {
        add(response.status)
        return response
      },
      (thrown) => {
        const error = asGatewayError(thrown)
        add(error.status, error)
        throw error
      },
    )
  }
}

function callFields(exchange: Exchange) {
  const { request, subject } = exchange
  const { workflows, operations, isDryRun } = notesOf(exchange)
  return {
    requestId: request.id,
    caller: subject.uid,
    method: request.method,
    path: shownPath(request),
    workflows: workflows.slice(0, maxRuns),
    ...(operations === undefined ? {} : { operations: shownOperations(operations) }),
    ...(isDryRun === true ? { dryRun: true as const } : {}),
  }
}

function errorFields(error: GatewayError | undefined) {
  if (error === undefined) return {}
  const { scimType } = errorBody(error)
  return { error: shownError(error.publicText), ...(typeof scimType === 'string' ? { keyword: scimType } : {}) }
}

const maxPath = 1000
const maxError = 500
const maxOperations = 50
const maxName = 200
const hidden = '[redacted]'

/** Query parameters whose values contain no data. */
const plainParameters = new Set([
  'attributes',
  'excludedattributes',
  'sortby',
  'sortorder',
  'startindex',
  'count',
  'cursor',
  'dryrun',
])

/**
 * The path with its query. The values of a filter stay, since without them an empty result cannot be explained. A filter
 * that mentions a password or token is hidden as a whole, and so are the values of parameters that SCIM does not define.
 */
export function shownPath({ path, query }: Pick<GatewayRequest, 'path' | 'query'>): string {
  if (query.size === 0) return cut(path, maxPath)
  const shown = Array.from(query, ([name, value]) => {
    const text = value === '' || isPlain(name, value) ? value : hidden
    return text === '' ? cut(name, maxName) : `${cut(name, maxName)}=${text}`
  })
  return cut(`${path}?${shown.join('&')}`, maxPath)
}

function isPlain(name: string, value: string): boolean {
  const lower = name.toLowerCase()
  return plainParameters.has(lower) || (lower === 'filter' && !isSecretName(value.slice(0, maxPath)))
}

export const shownError = (text: string): string => cut(text, maxError)

/** The operations, paths and counts of a request. Nothing else, so that no endpoint records a value by mistake. */
export function shownOperations(operations: JsonValue): JsonValue {
  const list = Array.isArray(operations) ? operations : [operations]
  const shown = list.slice(0, maxOperations).map(shownOperation)
  return list.length > maxOperations ? [...shown, { more: list.length - maxOperations }] : shown
}

function shownOperation(operation: JsonValue): JsonObject {
  if (!isJsonObject(operation)) return {}
  const { op, method, path, count } = operation
  return {
    ...(typeof op === 'string' ? { op: cut(op, maxName) } : {}),
    ...(typeof method === 'string' ? { method: cut(method, maxName) } : {}),
    ...(typeof path === 'string' ? { path: withoutLiterals(cut(path, maxName)) } : {}),
    ...(typeof count === 'number' ? { count } : {}),
  }
}

/** A filter in a path keeps its attributes and operators. An unclosed quote hides the rest. */
const withoutLiterals = (path: string): string => path.replace(/"(?:\\.|[^"\\])*(?:"|$)/g, '?')

const cut = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}…` : text)
