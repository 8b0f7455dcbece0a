import type { JsonObject } from '#kernel/json.ts'
import { scimError } from '#protocols/scim/scim-error.ts'

export const listSchema = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
export const defaultCount = 100
export const maxCount = 200

export interface PageRequest {
  /** From 1. */
  readonly startIndex: number
  readonly count: number
}

/** RFC 7644 3.4.2.4: a start below 1 is 1, a count below 0 is 0. More than the maximum is the maximum. */
export function parsePage(query: URLSearchParams): PageRequest {
  const startIndex = Math.max(1, wholeNumber(query, 'startIndex') ?? 1)
  const count = Math.max(0, wholeNumber(query, 'count') ?? defaultCount)
  return { startIndex, count: Math.min(count, maxCount) }
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^[+-]?\d{1,15}$/.test(text)) throw scimError('invalidValue', `${name} must be a whole number.`)
  return Number(text)
}

export function listResponse(resources: readonly JsonObject[], total: number, startIndex: number): JsonObject {
  return {
    schemas: [listSchema],
    totalResults: total,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  }
}
