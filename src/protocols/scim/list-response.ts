import type { JsonObject } from '#kernel/json.ts'

export const listSchema = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'

/** Where the page stands in the list: a start for the index method, what comes next for the cursor method. */
export type PagePlace = { readonly startIndex: number } | { readonly nextCursor: string | undefined }

export function listResponse(
  resources: readonly JsonObject[],
  total: number,
  place: PagePlace = { startIndex: 1 },
): JsonObject {
  const { nextCursor } = { nextCursor: undefined, ...place }
  return {
    schemas: [listSchema],
    totalResults: total,
    ...('startIndex' in place ? { startIndex: place.startIndex } : {}),
    itemsPerPage: resources.length,
    ...(nextCursor === undefined ? {} : { nextCursor }),
    Resources: resources,
  }
}
