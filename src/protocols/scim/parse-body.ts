import { type JsonBounds, parseBoundedJson } from '#kernel/bounded-json.ts'
import type { JsonValue } from '#kernel/json.ts'

/** Room for the largest documented requests: 100,000 members of a group, and 1,000 operations of a bulk request. */
export const scimBounds: JsonBounds = { depth: 64, members: 1_000, elements: 150_000, values: 500_000 }

/** Throws INVALID_JSON when it is not UTF-8, not JSON, or beyond the bounds. */
export const parseBody = (bytes: Buffer): JsonValue => parseBoundedJson(bytes, scimBounds).value
