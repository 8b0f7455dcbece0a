import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { type BulkOperation, maxBulkPayload, readBulkRequest, tooLarge } from '#protocols/scim/bulk/bulk-request.ts'
import { type BulkOutcome, runBulk } from '#protocols/scim/bulk/run-bulk.ts'
import { errorBody } from '#protocols/scim/scim-error.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { answer, type Handler, type Route, type ScimCall } from './scim-call.ts'

/** `/Bulk`: each operation is a call of its own, as if it were a request. */
export function bulkHandler(findRoute: (path: string) => Route | undefined, log: Logger): Handler {
  const perform = async (call: ScimCall, operation: BulkOperation): Promise<BulkOutcome> => {
    try {
      const route = findRoute(operation.path)
      if (route === undefined) throw new GatewayError('NOT_FOUND', `nothing at ${operation.path}`)
      const handler = isItem(operation) === (route.id !== '') ? route.methods.get(operation.method) : undefined
      if (handler === undefined) throw new GatewayError('METHOD_NOT_ALLOWED', operation.method)
      return outcomeOf(call, operation, await handler(subCall(call, operation, route)))
    } catch (thrown) {
      const error = asGatewayError(thrown)
      const { id: requestId } = call.exchange.request
      if (!error.isRefusal) log.error('an operation of a bulk request failed', { err: error, requestId })
      return { ...locationOf(call, operation), status: error.status, response: errorBody(error) }
    }
  }
  return async (call) => {
    const request = readBulkRequest(await bodyOf(call))
    call.notes.operations = request.operations.map(({ method, path }) => ({ method, path }))
    const { signal } = call.exchange.request
    const isStopped = (): boolean => signal.aborted
    return answer(200, await runBulk(request, (operation) => perform(call, operation), isStopped))
  }
}

async function bodyOf(call: ScimCall) {
  try {
    return await call.body(maxBulkPayload)
  } catch (error) {
    const isLarge = error instanceof GatewayError && error.code === 'BODY_TOO_LARGE'
    throw isLarge ? tooLarge(`maxPayloadSize (${maxBulkPayload})`, error) : error
  }
}

/** Shares the notes of the request, except for the operations of a PATCH inside it. */
const subCall = (call: ScimCall, { method, version, data }: BulkOperation, { id }: Route): ScimCall => ({
  ...call,
  method,
  id,
  query: new URLSearchParams(),
  ifMatch: version,
  ifNoneMatch: undefined,
  notes: { workflows: call.notes.workflows, changes: call.notes.changes },
  body: async () => data ?? null,
})

const isItem = ({ method }: BulkOperation): boolean => method !== 'POST'

function outcomeOf(call: ScimCall, operation: BulkOperation, response: GatewayResponse): BulkOutcome {
  const { status, headers, body } = response
  const { location, etag } = headers
  const id = operation.method === 'POST' && typeof body === 'string' ? idIn(body) : undefined
  return {
    status,
    ...locationOf(call, operation),
    ...(typeof location === 'string' ? { location } : {}),
    ...(typeof etag === 'string' ? { version: etag } : {}),
    ...(id === undefined ? {} : { id }),
  }
}

/** A POST that failed has no location (RFC 7644 3.7). */
const locationOf = (call: ScimCall, operation: BulkOperation): { location?: string } =>
  isItem(operation) ? { location: call.base + operation.path } : {}

function idIn(body: string): string | undefined {
  const resource: unknown = JSON.parse(body)
  return isJsonObject(resource) && typeof resource['id'] === 'string' ? resource['id'] : undefined
}
