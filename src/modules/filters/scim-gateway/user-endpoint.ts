import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { internalName } from '#protocols/scim/internal-name.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { readResource, requireAttributes } from '#protocols/scim/read-resource.ts'
import { clientValues, type ReadOptions } from '#protocols/scim/read-value.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { requireMatch } from './conditional.ts'
import type { NameOf } from './filter-translation.ts'
import { fixedAttribute } from './fixed-attribute.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { type ListRequest, listAnswer, parseListRequest, type ResourcePage } from './list-request.ts'
import type { FoundUser, Query } from './lookups.ts'
import { pagedSearch, pageOf } from './paged-search.ts'
import { resourceAnswer } from './resource-answer.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { noContent, notFound, notSupported, projectionOf, type ScimCall } from './scim-call.ts'
import { replacedUser } from './user-changes.ts'
import { UserCreation } from './user-creation.ts'
import { userFilterNames } from './user-filter-names.ts'
import { noteUserChange, UserWriter } from './user-writer.ts'

/** The largest body of a request about one user. */
const maxUserBody = 1024 * 1024

/** `/Users` and `/Users/{id}`. */
export class UserEndpoint {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf
  readonly #options: ReadOptions
  readonly #writer: UserWriter
  readonly #creation: UserCreation

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = userFilterNames(parts)
    this.#options = { ...clientValues, strict: parts.config.client.strict }
    this.#writer = new UserWriter(parts)
    this.#creation = new UserCreation(parts, this.#writer, this.#nameOf)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    return this.#show(call, 200, await this.#find(call))
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { users, client } = this.#parts.config
    const list = parseListRequest(call, users.schema, client)
    return listAnswer(call, list, await this.search(call, list))
  }

  async create(call: ScimCall): Promise<GatewayResponse> {
    const resource = await this.#read(call)
    call.notes.operations = describe('add', resource)
    return this.#show(call, 201, await this.#creation.create(call, resource))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const operations = parsePatch(schema, await call.body(maxUserBody), this.#options)
    call.notes.operations = operations.map(({ op, target }) => ({ op, path: internalName(target) }))
    const edit = (before: ScimResource): ScimResource => applyPatch(schema, before, operations, this.#options).resource
    return this.#show(call, 200, await this.#writer.change(call, call.id, 'patch', edit))
  }

  /** What the client leaves out is cleared; what only the service sets stays. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const sent = await this.#read(call)
    call.notes.operations = describe('replace', sent)
    const edit = (before: ScimResource): ScimResource => replacedUser(schema, before, sent)
    return this.#show(call, 200, await this.#writer.change(call, call.id, 'put', edit))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    const { lock, config, lookups } = this.#parts
    const name = config.workflows.deleteUser
    if (name === undefined) throw notSupported('This gateway does not delete users.')
    const remove = async (): Promise<void> => {
      const found = await this.#find(call)
      requireMatch(call, found.user.version)
      await runWorkflow(this.#parts, call, { name, user: found.user, basedOn: lookups.readVersion(found) })
      noteUserChange(call, { kind: 'delete', id: found.id, attributes: [] })
    }
    await lock.run(`user ${call.id.toLowerCase()}`, () => retryWhileChanged(call, remove))
    return noContent
  }

  async #read(call: ScimCall): Promise<ScimResource> {
    const { schema } = this.#parts.config.users
    const resource = readResource(schema, await call.body(maxUserBody), this.#options)
    requireAttributes(schema, resource)
    return resource
  }

  async #find(call: ScimCall): Promise<FoundUser> {
    const found = await this.#parts.lookups.userById(call.id)
    if (found === undefined) throw notFound('user', call.id)
    return found
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundUser): Promise<GatewayResponse> {
    const [shown = found] = await this.#parts.lookups.withIndirectGroups([found])
    const resource = await this.#parts.userView.resource(shown, call.base)
    const projection = projectionOf(call, this.#parts.config.users.schema)
    return resourceAnswer(call, status, resource, found.user.version, projection)
  }

  async search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { lookups, userView } = this.#parts
    const { filter } = list
    const toResource = (found: FoundUser) => userView.resource(found, call.base)
    const id = fixedAttribute(filter, 'id')
    const login = fixedAttribute(filter, 'userName')
    if (filter !== undefined && (id !== undefined || login !== undefined)) {
      const found = id === undefined ? await lookups.userByLogin(login ?? '') : await lookups.userById(id)
      const [shown] = await lookups.withIndirectGroups(found === undefined ? [] : [found])
      const resource = shown && (await toResource(shown))
      return pageOf(resource !== undefined && evaluateFilter(filter, resource) ? [resource] : [], list)
    }
    const search = async (query: Query) => {
      const page = await lookups.searchUsers(query)
      return { ...page, items: await lookups.withIndirectGroups(page.items) }
    }
    return pagedSearch({ search, toResource }, list, this.#nameOf)
  }
}

/** A whole resource for the journal: which attributes it holds, and no value. */
const describe = (op: string, resource: JsonObject): JsonValue => Object.keys(resource).map((path) => ({ op, path }))
