import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { clientValues, type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { internalName } from '#protocols/scim/resource-schema.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'
import { fixedAttribute, type NameOf, userFilterNames } from './filter-translation.ts'
import {
  type ListRequest,
  listAnswer,
  pagedSearch,
  pageOf,
  parseListRequest,
  type ResourcePage,
  type Search,
} from './lists.ts'
import type { FoundUser, Query } from './lookups.ts'
import type { KnownManagers } from './managers.ts'
import type { GatewayParts } from './run-workflow.ts'
import { noContent, projectionOf, resourceAnswer, type ScimCall } from './scim-call.ts'
import { type ChangeKind, refuseUnknown } from './storable-change.ts'
import { findUser, replacedUser, UserChanges } from './user-changes.ts'

/** The largest body of a request about one user. */
const maxUserBody = 1024 * 1024

/** `/Users` and `/Users/{id}`. */
export class UserEndpoint {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf
  readonly #changes: UserChanges

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = userFilterNames(parts)
    this.#changes = new UserChanges(parts, this.#nameOf)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    return this.#show(call, 200, await findUser(this.#parts.lookups, call.id))
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { users, client } = this.#parts.config
    const list = parseListRequest(call, users.schema, client)
    return listAnswer(call, list, await this.search(call, list))
  }

  async create(call: ScimCall): Promise<GatewayResponse> {
    const resource = await this.#read(call, 'create')
    call.notes.operations = describe('add', resource)
    return this.#show(call, 201, await this.#changes.create(call, resource))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const options = this.#optionsFor('patch')
    const operations = parsePatch(schema, await call.body(maxUserBody), options)
    call.notes.operations = operations.map(({ op, target }) => ({ op, path: internalName(target) }))
    const edit = (before: ScimResource): ScimResource => applyPatch(schema, before, operations, options).resource
    return this.#show(call, 200, await this.#changes.change(call, call.id, 'patch', edit))
  }

  /** Attributes that the client leaves out are cleared, except those that only the service sets. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const sent = await this.#read(call, 'put')
    call.notes.operations = describe('replace', sent)
    const edit = (before: ScimResource): ScimResource => replacedUser(schema, before, sent)
    return this.#show(call, 200, await this.#changes.change(call, call.id, 'put', edit))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    await this.#changes.delete(call)
    return noContent
  }

  async #read(call: ScimCall, kind: ChangeKind): Promise<ScimResource> {
    const { schema } = this.#parts.config.users
    const resource = readResource(schema, await call.body(maxUserBody), this.#optionsFor(kind))
    requireAttributes(schema, resource)
    return resource
  }

  #optionsFor(kind: ChangeKind): ReadOptions {
    const { users, ignored, client } = this.#parts.config
    return { ...clientValues, strict: client.strict, unknown: refuseUnknown(users.schema, kind, ignored) }
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundUser): Promise<GatewayResponse> {
    const { users, managers, config, lookups } = this.#parts
    const [nested = found] = await lookups.withIndirectGroups([found])
    const plain = await users.resource(nested, call.base)
    const projection = projectionOf(call, config.users.schema)
    const [resource = plain] = managers.areShownBy(projection) ? await managers.shown([plain], call.base) : []
    return resourceAnswer(call, status, resource, found.user.version, projection)
  }

  /** Managers are looked up for the page that is shown; before that only if the list filters or sorts by their names. */
  async search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { users, managers } = this.#parts
    const known: KnownManagers = new Map()
    const withManager = async (found: FoundUser): Promise<ScimResource> => {
      const plain = await users.resource(found, call.base)
      return (await managers.shown([plain], call.base, known))[0] ?? plain
    }
    if (managers.concerns(list)) return this.#page(list, withManager)
    const page = await this.#page(list, (found) => users.resource(found, call.base))
    if (!managers.areShownBy(list.projection)) return page
    return { ...page, resources: await managers.shown(page.resources, call.base, known) }
  }

  async #page(list: ListRequest, toResource: Search<FoundUser>['toResource']): Promise<ResourcePage> {
    const { lookups } = this.#parts
    const { filter } = list
    const id = fixedAttribute(filter, 'id')
    const login = fixedAttribute(filter, 'userName')
    if (filter !== undefined && (id !== undefined || login !== undefined)) {
      const found = id === undefined ? await lookups.userByLogin(login ?? '') : await lookups.userById(id)
      const [shown] = await lookups.withIndirectGroups(found === undefined ? [] : [found])
      const resource = shown && (await toResource(shown))
      return pageOf(resource !== undefined && evaluateFilter(filter, resource) ? [resource] : [], list)
    }
    const search = async (query: Query, byPosition?: boolean) => {
      const page = await lookups.searchUsers(query, byPosition)
      return { ...page, items: await lookups.withIndirectGroups(page.items) }
    }
    return pagedSearch({ search, toResource }, list, this.#nameOf)
  }
}

/** A whole resource for the journal: the names of its attributes, without values. */
const describe = (op: string, resource: JsonObject): JsonValue => Object.keys(resource).map((path) => ({ op, path }))
