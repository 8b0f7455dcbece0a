import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { member, requireMessageOf, textMember, wholeMember } from '#protocols/scim/message.ts'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'

export const bulkRequestSchema = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest'

export const maxBulkOperations = 1000
export const maxBulkPayload = 4 * 1024 * 1024
const maxPathLength = 8192

const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const
export type BulkMethod = (typeof methods)[number]

export interface BulkOperation {
  readonly method: BulkMethod
  /** Below the service's address, with its slash. */
  readonly path: string
  /** Other operations can refer to the created resource by it. */
  readonly bulkId: string | undefined
  /** As in If-Match. */
  readonly version: string | undefined
  /** Undefined for DELETE only. */
  readonly data: JsonObject | undefined
}

export interface BulkRequest {
  readonly operations: readonly BulkOperation[]
  /** After how many errors to stop; never when absent. */
  readonly failOnErrors: number | undefined
}

/** RFC 7644 3.7. Throws BODY_TOO_LARGE, invalidSyntax or invalidValue; no operation is performed then. */
export function readBulkRequest(body: JsonValue): BulkRequest {
  const message = requireMessageOf(body, bulkRequestSchema)
  const failOnErrors = wholeMember(message, 'failOnErrors')
  if (failOnErrors !== undefined && failOnErrors < 0)
    throw scimError('invalidValue', 'failOnErrors must not be negative.')
  const list = member(message, 'Operations')
  if (!Array.isArray(list)) throw scimError('invalidSyntax', 'Operations is required: a list of operations.')
  if (list.length > maxBulkOperations) throw tooLarge(`maxOperations (${maxBulkOperations})`)
  const operations = list.map(readOperation)
  const seen = new Set<string>()
  for (const { bulkId, method } of operations) {
    if (bulkId === undefined || method !== 'POST') continue
    if (seen.has(bulkId))
      throw scimError('invalidValue', `bulkId: two operations have ${quoted(bulkId)}. Give each its own.`)
    seen.add(bulkId)
  }
  return { operations, failOnErrors }
}

/** RFC 7644 3.7.4. */
export const tooLarge = (limit: string, cause?: unknown): GatewayError =>
  new GatewayError('BODY_TOO_LARGE', `a bulk request exceeds ${limit}`, {
    publicText: `The size of the bulk operation exceeds the ${limit}. Split the request.`,
    ...(cause === undefined ? {} : { cause }),
  })

function readOperation(entry: JsonValue): BulkOperation {
  if (!isJsonObject(entry)) throw scimError('invalidSyntax', 'An operation must be an object.')
  const word = textMember(entry, 'method')?.toUpperCase()
  const method = methods.find((known) => known === word)
  if (method === undefined) throw scimError('invalidValue', 'method must be POST, PUT, PATCH or DELETE.')
  const path = textMember(entry, 'path')
  if (path === undefined || !path.startsWith('/') || path.length > maxPathLength) {
    throw scimError('invalidValue', `path must start with a slash and have at most ${maxPathLength} characters.`)
  }
  const bulkId = textMember(entry, 'bulkId')
  if (method === 'POST' && (bulkId === undefined || bulkId === '')) {
    throw scimError('invalidValue', 'Operations: a POST needs a bulkId.')
  }
  const version = textMember(entry, 'version')
  return { method, path, bulkId, version, data: readData(method, member(entry, 'data')) }
}

function readData(method: BulkMethod, data: JsonValue | undefined): JsonObject | undefined {
  if (method === 'DELETE') return undefined
  if (isJsonObject(data)) return data
  // RFC 7644 3.7.3 shows the operations of a PATCH without their envelope.
  if (method === 'PATCH' && Array.isArray(data)) return { schemas: [patchSchema], Operations: data }
  throw scimError('invalidSyntax', `Operations: ${method} needs data, an object.`)
}
