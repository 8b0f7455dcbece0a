import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { member } from '#protocols/scim/message.ts'
import type { ScimService } from './service-model.ts'

export interface ListQuery {
  readonly filter?: string
  readonly sortBy?: string
  readonly sortOrder?: string
  readonly excludedAttributes?: string
  readonly page?: { readonly cursor?: string; readonly offset?: number; readonly count: number }
}

export interface ListAnswer {
  readonly resources: readonly JsonObject[]
  readonly total: number
  readonly nextCursor: string | undefined
}

/** Longer queries are posted: many servers and proxies bound the length of an address. */
const maxAddress = 2000
const maxCursor = 4000
const searchRequest = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'

/** One page of a list (RFC 7644 3.4.2, RFC 9865). Throws TARGET_FAILED for what is no list. */
export async function listResources(service: ScimService, endpoint: string, query: ListQuery): Promise<ListAnswer> {
  const { page, excludedAttributes, ...rest } = query
  const place =
    page === undefined
      ? {}
      : page.cursor === undefined
        ? { startIndex: (page.offset ?? 0) + 1, count: page.count }
        : { cursor: page.cursor, count: page.count }
  const members = { ...rest, ...place }
  const excluded = excludedAttributes === undefined ? {} : { excludedAttributes }
  const texts = Object.fromEntries(
    Object.entries({ ...members, ...excluded }).map(([name, value]) => [name, String(value)]),
  )
  const isLong = new URLSearchParams(texts).toString().length > maxAddress
  const list = excludedAttributes === undefined ? {} : { excludedAttributes: [excludedAttributes] }
  const { body } = await service.connection.call(
    isLong
      ? { method: 'POST', path: `${endpoint}/.search`, body: { schemas: [searchRequest], ...members, ...list } }
      : { method: 'GET', path: endpoint, query: texts },
  )
  return readList(body ?? {}, service)
}

function readList(body: JsonObject, { name }: ScimService): ListAnswer {
  const total = member(body, 'totalResults')
  const resources: JsonValue = member(body, 'Resources') ?? []
  if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0 || !Array.isArray(resources)) {
    throw new GatewayError('TARGET_FAILED', `target "${name}" did not answer with a list`)
  }
  const next = member(body, 'nextCursor')
  return {
    resources: resources.filter(isJsonObject),
    total,
    nextCursor: typeof next === 'string' && next !== '' && next.length <= maxCursor ? next : undefined,
  }
}
