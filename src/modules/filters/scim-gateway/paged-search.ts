import type { Filter } from '#identity/filter/ast.ts'
import { GatewayError } from '#kernel/errors.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import type { PageRequest } from '#protocols/scim/list-response.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { SearchPage } from '#sdk/target.ts'
import type { Translation } from './filter-translation.ts'
import { inParallel } from './in-parallel.ts'
import { lookupWidth, type Query } from './lookups.ts'

/** How many candidates are tested one by one where a filter cannot be left to the store. */
export const maxCandidates = 10_000
const chunk = 1000

export interface Search<T> {
  search(query: Query): Promise<SearchPage<T>>
  toResource(item: T): Promise<ScimResource>
}

export interface ResourcePage {
  readonly resources: readonly ScimResource[]
  readonly total: number
}

/** The page as the store gives it where it understands the filter; else candidates are read and tested here. */
export async function pagedSearch<T>(
  source: Search<T>,
  filter: ScimFilter | undefined,
  translation: Translation,
  page: PageRequest,
): Promise<ResourcePage> {
  const { filter: stored, exact } = translation
  if (filter !== undefined && !exact) return pageOf(await candidates(source, stored, filter), page)
  // Not every store knows a page of none.
  const query = { offset: page.startIndex - 1, limit: Math.max(1, page.count) }
  const found = await searched(source, stored === undefined ? query : { ...query, filter: stored })
  const resources = await inParallel(found.items.slice(0, page.count), lookupWidth, (item) => source.toResource(item))
  return { resources, total: found.total }
}

/** What a store says of a search that it refuses can only be about the filter. */
async function searched<T>(source: Search<T>, query: Query): Promise<SearchPage<T>> {
  try {
    return await source.search(query)
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'BAD_REQUEST') throw error
    throw scimError('invalidFilter', error.publicText, { cause: error })
  }
}

/** A page of what is all in hand. */
export const pageOf = (resources: readonly ScimResource[], { startIndex, count }: PageRequest): ResourcePage => ({
  resources: resources.slice(startIndex - 1, startIndex - 1 + count),
  total: resources.length,
})

async function candidates<T>(
  source: Search<T>,
  stored: Filter | undefined,
  filter: ScimFilter,
): Promise<ScimResource[]> {
  const matching: ScimResource[] = []
  for (let offset = 0; ; ) {
    const query = { offset, limit: chunk }
    const found = await searched(source, stored === undefined ? query : { ...query, filter: stored })
    if (found.total > maxCandidates) {
      throw scimError('tooMany', 'The filter cannot be served by the store and would have to test too many resources.')
    }
    for (const resource of await inParallel(found.items, lookupWidth, (item) => source.toResource(item))) {
      if (evaluateFilter(filter, resource)) matching.push(resource)
    }
    offset += found.items.length
    if (found.items.length === 0 || offset >= found.total) return matching
  }
}
