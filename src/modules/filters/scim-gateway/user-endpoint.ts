import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { clientValues, type ReadOptions, readResource } from '#protocols/scim/read-resource.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { requireAttributes } from '#protocols/scim/resource-rules.ts'
import { internalName } from '#protocols/scim/resource-schema.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { requireMatch } from './conditional.ts'
import type { NameOf } from './filter-translation.ts'
import { fixedAttribute } from './fixed-attribute.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { type ListRequest, listAnswer, parseListRequest, type ResourcePage } from './list-request.ts'
import type { FoundUser, Query } from './lookups.ts'
import type { KnownManagers } from './managers.ts'
import { pagedSearch, pageOf, type Search } from './paged-search.ts'
import { resourceAnswer } from './resource-answer.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { noContent, notFound, notSupported, projectionOf, type ScimCall } from './scim-call.ts'
import { type ChangeKind, refuseUnknown } from './unstored-change.ts'
import { replacedUser } from './user-changes.ts'
import { UserCreation } from './user-creation.ts'
import { userFilterNames } from './user-filter-names.ts'
import { noteUserChange, UserWriter, userKey } from './user-writer.ts'

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
    const resource = await this.#read(call, 'create')
    call.notes.operations = describe('add', resource)
    return this.#show(call, 201, await this.#creation.create(call, resource))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const operations = parsePatch(schema, await call.body(maxUserBody), this.#optionsFor('patch'))
    call.notes.operations = operations.map(({ op, target }) => ({ op, path: internalName(target) }))
    const edit = (before: ScimResource): ScimResource => applyPatch(schema, before, operations, this.#options).resource
    return this.#show(call, 200, await this.#writer.change(call, call.id, 'patch', edit))
  }

  /** What the client leaves out is cleared; what only the service sets stays. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const sent = await this.#read(call, 'put')
    call.notes.operations = describe('replace', sent)
    const edit = (before: ScimResource): ScimResource => replacedUser(schema, before, sent)
    return this.#show(call, 200, await this.#writer.change(call, call.id, 'put', edit))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    const { lock, config, lookups } = this.#parts
    const name = config.workflows.deleteUser
    if (name === undefined) throw notSupported('Users cannot be deleted: this gateway has no deleteUserWorkflowName.')
    const remove = async (): Promise<string> => {
      const found = await this.#find(call)
      requireMatch(call, found.user.version)
      const user = lookups.marks.marked(found.user)
      await runWorkflow(this.#parts, call, { name, user, basedOn: lookups.readVersion(found) })
      await this.#settleDelete(found.id, name)
      noteUserChange(call, { kind: 'delete', id: found.id, attributes: [] })
      return found.id
    }
    await this.#clearManager(call, await lock.run(userKey(call.id), () => retryWhileChanged(call, remove)))
    return noContent
  }

  /** A version that the client named is that of the deleted user. */
  async #clearManager(call: ScimCall, manager: string): Promise<void> {
    await this.#parts.managers.clear(manager, ({ id }, edit) =>
      this.#writer.change({ ...call, id, ifMatch: undefined, ifNoneMatch: undefined }, id, 'patch', edit),
    )
  }

  /** A workflow may delete the user or deactivate it; of one that did neither the client must not hear that it did. */
  async #settleDelete(id: string, workflow: string): Promise<void> {
    const { lookups } = this.#parts
    const left = await lookups.all.userById(id)
    if (left === undefined) return lookups.marks.remove(id)
    const active = await lookups.isActive(left)
    if (active === false) return lookups.marks.set(left)
    const text = `workflow "${workflow}" ended, but the user is still there`
    const state = active === true ? 'and active' : 'and is not shown as inactive'
    const remedy = 'Have the workflow delete the user, or set what "active" is mapped to.'
    const publicText = `The delete workflow ended, but the user is still there ${state}. ${remedy}`
    throw new GatewayError('WORKFLOW_FAILED', text, { publicText })
  }

  #optionsFor(kind: ChangeKind): ReadOptions {
    const { users, ignored } = this.#parts.config
    return { ...this.#options, unknown: refuseUnknown(users.schema, kind, ignored) }
  }

  async #read(call: ScimCall, kind: ChangeKind): Promise<ScimResource> {
    const { schema } = this.#parts.config.users
    const resource = readResource(schema, await call.body(maxUserBody), this.#optionsFor(kind))
    requireAttributes(schema, resource)
    return resource
  }

  async #find(call: ScimCall): Promise<FoundUser> {
    const found = await this.#parts.lookups.userById(call.id)
    if (found === undefined) throw notFound('user', call.id)
    return found
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundUser): Promise<GatewayResponse> {
    const { userView, managers, config, lookups } = this.#parts
    const [nested = found] = await lookups.withIndirectGroups([found])
    const plain = await userView.resource(nested, call.base)
    const projection = projectionOf(call, config.users.schema)
    const [resource = plain] = managers.areShownBy(projection) ? await managers.shown([plain], call.base) : []
    return resourceAnswer(call, status, resource, found.user.version, projection)
  }

  /** Managers are looked up for the page that is shown, and before that only where the list asks for their names. */
  async search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    const { userView, managers } = this.#parts
    const known: KnownManagers = new Map()
    const withManager = async (found: FoundUser): Promise<ScimResource> => {
      const plain = await userView.resource(found, call.base)
      return (await managers.shown([plain], call.base, known))[0] ?? plain
    }
    if (managers.concerns(list)) return this.#page(list, withManager)
    const page = await this.#page(list, (found) => userView.resource(found, call.base))
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

/** A whole resource for the journal: which attributes it holds, and no value. */
const describe = (op: string, resource: JsonObject): JsonValue => Object.keys(resource).map((path) => ({ op, path }))
