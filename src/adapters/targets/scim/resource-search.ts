import { timeAttribute } from '#identity/entry-times.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import {
  type Collection,
  type PageScope,
  pageInMemory,
  readPosition,
  unknownPosition,
  writePosition,
} from '#identity/paging.ts'
import type { SearchPage, SearchQuery, SortOrder } from '#identity/search.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { printScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { member } from '#protocols/scim/message.ts'
import { internalName } from '#protocols/scim/schema/resource-schema.ts'
import { scimError } from '#protocols/scim/schema/scim-error.ts'
import { type FilterName, type Narrowed, narrow, onlyEqual } from './filter-to-scim.ts'
import { isText } from './resource-mapping.ts'
import type { ScimService, ServiceModel, Stored } from './scim-service.ts'

/** The search for users or groups. */
export interface Searched<T> {
  /** Below the service's address. */
  readonly endpoint: '/Users' | '/Groups'
  readonly collection: Collection<T>
  read(raw: ListAnswer['resources'][number], model: ServiceModel): Stored<T>
  nameOf(attribute: string, model: ServiceModel): FilterName
  /** The attributes that the server can filter by, if it only compares one with `eq`. */
  readonly equal: readonly string[] | undefined
  /** An attribute that the server may leave out. */
  excluded(query: Pick<SearchQuery, 'filter'>): string | undefined
  /** Adds what the resources themselves do not contain. */
  complete(found: readonly Stored<T>[]): Promise<readonly Stored<T>[]>
}

/** The most resources that are read if the server can't evaluate a filter or an order. */
const maxCandidates = 10_000
const chunk = 200
const maxFilterText = 4000

/**
 * Searches as far as the server can, and passes its pages on. The rest is evaluated here, on the candidates that the
 * server returns.
 */
export class ResourceSearch<T> {
  readonly #service: ScimService
  readonly #searched: Searched<T>

  constructor(service: ScimService, searched: Searched<T>) {
    this.#service = service
    this.#searched = searched
  }

  async page(query: SearchQuery, model: ServiceModel): Promise<SearchPage<T>> {
    const { items, ...rest } = await this.#page(query, model)
    return { ...rest, items: items.map(({ entry }) => entry) }
  }

  /** Resources with this value, ignoring letter case. */
  async having(attribute: string, value: string, model: ServiceModel): Promise<readonly Stored<T>[]> {
    return (await this.matching({ kind: 'equal', attribute, value }, 10, model)).items
  }

  /** As many as there are, up to the limit. */
  matching(filter: Filter, limit: number, model: ServiceModel): Promise<SearchPage<Stored<T>>> {
    return this.#page({ filter, offset: 0, limit }, model, false)
  }

  /**
   * As many as the server finds, up to the limit, without an attribute that the filter is about: so whether they match is
   * the server's word alone.
   */
  unchecked(
    filter: Filter | undefined,
    limit: number,
    excludedAttributes: string,
    model: ServiceModel,
  ): Promise<SearchPage<Stored<T>>> {
    const query = { ...(filter === undefined ? {} : { filter }), offset: 0, limit }
    const list = { ...this.#list(query, this.#narrowed(filter, model)), excludedAttributes }
    return this.#served(query, list, model, false)
  }

  async #page(query: SearchQuery, model: ServiceModel, positions = true): Promise<SearchPage<Stored<T>>> {
    const asked = this.#narrowed(query.filter, model)
    if (asked.kind === 'none' && query.after === undefined) return { items: [], total: 0 }
    const order = query.sort === undefined ? {} : this.#order(query.sort, model)
    const { pages } = model.features
    const isServed = asked.exact && order !== undefined && query.limit > 0 && (pages.index || query.offset === 0)
    if (!isServed) return this.#scan(query, asked, model)
    const found = await this.#served(query, { ...this.#list(query, asked), ...order }, model, positions)
    const { filter } = query
    const { source } = this.#searched.collection
    if (filter === undefined || found.items.every(({ entry }) => matches(filter, source(entry)))) return found
    this.#service.log.warn('the SCIM server ignores the filter', { endpoint: this.#searched.endpoint })
    return this.#scan(query, { kind: 'all', exact: false }, model)
  }

  #narrowed(filter: Filter | undefined, model: ServiceModel): Narrowed {
    if (filter === undefined) return { kind: 'all', exact: true }
    const { equal } = this.#searched
    const asked = onlyEqual(
      narrow(filter, (attribute) => this.#searched.nameOf(attribute, model)),
      equal,
    )
    const isAskable =
      asked.kind !== 'some' || (model.features.filter && printScimFilter(asked.filter).length <= maxFilterText)
    return isAskable ? asked : { kind: 'all', exact: false }
  }

  /** Undefined if the server would order otherwise. */
  #order({ attribute, descending, caseExact }: SortOrder, model: ServiceModel): Partial<ListQuery> | undefined {
    const name = this.#searched.nameOf(attribute, model)
    if (name.kind !== 'path' || !model.features.sort) return undefined
    const { leaf, path } = name
    const isTime = timeAttribute(attribute) !== undefined
    if (!isTime && (!isText(leaf) || leaf.multiValued || leaf.caseExact !== caseExact)) return undefined
    return { sortBy: internalName(path), sortOrder: descending ? 'descending' : 'ascending' }
  }

  #list(query: Pick<SearchQuery, 'filter'>, asked: Narrowed): ListQuery {
    const excludedAttributes = this.#searched.excluded(query)
    return {
      ...(asked.kind === 'some' ? { filter: printScimFilter(asked.filter) } : {}),
      excludedAttributes,
    }
  }

  /**
   * By cursor for consecutive pages, since each costs the same; the server decides the length of a page. By index if
   * the query has one.
   */
  async #served(
    query: SearchQuery,
    list: ListQuery,
    model: ServiceModel,
    positions: boolean,
  ): Promise<SearchPage<Stored<T>>> {
    const { filter, sort, limit } = query
    const scope: PageScope = { of: `scim ${this.#searched.endpoint}`, filter, sort }
    const start: Place = query.after === undefined ? {} : placeOf(readPosition(scope, query.after).entry)
    const { cursor, index } = model.features.pages
    const byCursor = cursor && (positions || !index) && query.offset === 0 && start.offset === undefined
    let place: Place = byCursor ? { cursor: start.cursor ?? '' } : { offset: start.offset ?? query.offset }
    const items: Stored<T>[] = []
    for (;;) {
      const answer = await this.#ask(list, { ...place, count: byCursor ? limit : limit - items.length })
      items.push(...(await this.#read(answer, model)).slice(0, limit - items.length))
      const next = nextPlace(place, answer)
      if (next === undefined || (byCursor && positions) || items.length >= limit) {
        const position = next === undefined ? {} : { next: writePosition(scope, { entry: entryOf(next) }) }
        return { items, total: Math.max(answer.total, items.length), ...position }
      }
      place = next
    }
  }

  async #scan(query: SearchQuery, asked: Narrowed, model: ServiceModel): Promise<SearchPage<Stored<T>>> {
    const { collection } = this.#searched
    const all = asked.kind === 'none' ? [] : await this.#candidates(query, asked, model)
    return pageInMemory(all, query, {
      of: collection.of,
      source: ({ entry }) => collection.source(entry),
      key: ({ entry }) => collection.key(entry),
    })
  }

  /** Throws TARGET_FAILED if there are fewer than every page says, so that no one who is missing counts as absent. */
  async #candidates(query: SearchQuery, asked: Narrowed, model: ServiceModel): Promise<readonly Stored<T>[]> {
    const found = new Map<string, Stored<T>>()
    let total = Number.POSITIVE_INFINITY
    const list = this.#list(query, asked)
    let place: Place | undefined = model.features.pages.cursor ? { cursor: '' } : { offset: 0 }
    while (place !== undefined) {
      const answer: ListAnswer = await this.#ask(list, { ...place, count: chunk })
      if (answer.total > maxCandidates || found.size > maxCandidates) {
        throw scimError('tooMany', 'The server behind cannot serve this filter or order, and too much would be read.')
      }
      total = Math.min(total, answer.total)
      const before = found.size
      for (const one of await this.#read(answer, model)) found.set(one.entry.id, one)
      // A server that returns the same page again has no more.
      place = found.size === before ? undefined : nextPlace(place, answer)
    }
    if (found.size < total) {
      const { name } = this.#service
      throw new GatewayError('TARGET_FAILED', `target "${name}" ended a list after ${found.size} of ${total} resources`)
    }
    return [...found.values()]
  }

  #ask(list: ListQuery, page: NonNullable<ListQuery['page']>): Promise<ListAnswer> {
    return listResources(this.#service, this.#searched.endpoint, { ...list, page })
  }

  async #read({ resources }: ListAnswer, model: ServiceModel): Promise<readonly Stored<T>[]> {
    return this.#searched.complete(resources.map((raw) => this.#searched.read(raw, model)))
  }
}

type Place = { readonly cursor?: string; readonly offset?: number }

function nextPlace(place: Place, { resources, total, nextCursor }: ListAnswer): Place | undefined {
  if (resources.length === 0) return undefined
  if (place.cursor !== undefined) return nextCursor === undefined ? undefined : { cursor: nextCursor }
  const offset = (place.offset ?? 0) + resources.length
  return offset < total ? { offset } : undefined
}

const entryOf = ({ cursor, offset }: Place): string => (cursor === undefined ? `i${offset ?? 0}` : `c${cursor}`)

function placeOf(entry: string): Place {
  if (entry.startsWith('c')) return { cursor: entry.slice(1) }
  if (/^i\d{1,15}$/.test(entry)) return { offset: Number(entry.slice(1)) }
  throw unknownPosition()
}

/** The only one, or the one with this spelling. Throws TARGET_FAILED if that is ambiguous. */
export function theOne<T>(found: readonly T[], isExact: (one: T) => boolean, what: string): T | undefined {
  const [first, second] = found
  if (second === undefined) return first
  const exact = found.filter(isExact)
  if (exact.length === 1) return exact[0]
  throw new GatewayError('TARGET_FAILED', `the SCIM server has several ${what} of one name`)
}

interface ListQuery {
  readonly filter?: string
  readonly sortBy?: string
  readonly sortOrder?: string
  readonly excludedAttributes?: string | undefined
  readonly page?: { readonly cursor?: string; readonly offset?: number; readonly count: number }
}

interface ListAnswer {
  readonly resources: readonly JsonObject[]
  readonly total: number
  readonly nextCursor: string | undefined
}

/** Longer queries are posted: many servers and proxies limit the length of a URL. */
const maxAddress = 2000
const maxCursor = 4000
const searchRequest = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'

/** One page of a list (RFC 7644 3.4.2, RFC 9865). Throws TARGET_FAILED for an answer that isn't a list. */
async function listResources(service: ScimService, endpoint: string, query: ListQuery): Promise<ListAnswer> {
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
    throw new GatewayError('TARGET_FAILED', `target "${name}" answered with something that is not a list`)
  }
  const next = member(body, 'nextCursor')
  return {
    resources: resources.filter(isJsonObject),
    total,
    nextCursor: typeof next === 'string' && next !== '' && next.length <= maxCursor ? next : undefined,
  }
}
