import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { listResponse, parsePage } from '#protocols/scim/list-response.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import { readResource, requireAttributes } from '#protocols/scim/read-resource.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { type NameOf, translateFilter } from './filter-translation.ts'
import { fixedAttribute } from './fixed-attribute.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import type { FoundUser } from './lookups.ts'
import { pagedSearch, pageOf, type ResourcePage } from './paged-search.ts'
import { pathKey } from './path-key.ts'
import { answer, noContent, notFound, notSupported, projectionOf, readBody, type ScimCall } from './scim-call.ts'
import { changedUser, loginOf, newUser } from './user-changes.ts'

/** The largest body of a request about one user. */
const maxUserBody = 1024 * 1024

/** Reads the current resource, gives the wanted one; throws to refuse. */
type Edit = (before: ScimResource) => ScimResource

/** `/Users` and `/Users/{id}`. */
export class UserEndpoint {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = userFilterNames(parts)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    return this.#show(call, 200, await this.#find(call))
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { query } = call.exchange.request
    const { schema } = this.#parts.config.users
    const page = parsePage(query)
    const projection = projectionOf(call, schema)
    const { resources, total } = await this.#search(call, query.get('filter'), page)
    const shown = projection === undefined ? resources : resources.map(projection.apply)
    return answer(200, listResponse(shown, total, page.startIndex))
  }

  async create(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const resource = readResource(schema, await readBody(call, maxUserBody))
    requireAttributes(schema, resource)
    const login = loginOf(resource)
    // Asked again inside the lock, so that of two requests for one login exactly one creates.
    const created = await this.#parts.lock.run(`login ${login.toLowerCase()}`, () =>
      this.#create(call, resource, login),
    )
    return this.#show(call, 201, created)
  }

  async #create(call: ScimCall, resource: ScimResource, login: string): Promise<FoundUser> {
    const { lookups, config } = this.#parts
    const user = await newUser(this.#parts, resource)
    for (const name of new Set([login, user.userID])) {
      if ((await lookups.userByLogin(name)) !== undefined) {
        throw scimError('uniqueness', 'There is already a user with this userName.')
      }
    }
    await runWorkflow(this.#parts, call, { name: config.workflows.user, user, ...passwordOf(resource) })
    const created = await lookups.userByLogin(user.userID)
    if (created !== undefined) return created
    throw new GatewayError('WORKFLOW_FAILED', `workflow "${config.workflows.user}" ended, but the user is not there`, {
      publicText: 'The workflow ended without creating the user.',
    })
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const operations = parsePatch(schema, await readBody(call, maxUserBody))
    return this.#change(call, (before) => applyPatch(schema, before, operations).resource)
  }

  /** What the client leaves out is cleared; what only the service sets stays. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.users
    const sent = readResource(schema, await readBody(call, maxUserBody))
    requireAttributes(schema, sent)
    return this.#change(call, (before) => {
      const after = { ...sent }
      for (const ref of schema.attributes()) {
        if (ref.attribute.mutability === 'readOnly') writeAttribute(after, ref, readAttribute(before, ref))
      }
      return after
    })
  }

  async #change(call: ScimCall, edit: Edit): Promise<GatewayResponse> {
    const { lock, userView, config } = this.#parts
    const changed = await lock.run(`user ${call.id.toLowerCase()}`, async () => {
      const found = await this.#find(call)
      const before = await userView.resource(found, call.base)
      const after = edit(before)
      const user = await changedUser(this.#parts, found.user, before, after)
      const password = passwordOf(after)
      if (user === undefined && password.password === undefined) return found
      await runWorkflow(this.#parts, call, { name: config.workflows.user, user: user ?? found.user, ...password })
      return this.#find(call)
    })
    return this.#show(call, 200, changed)
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    const { lock, config } = this.#parts
    const name = config.workflows.deleteUser
    if (name === undefined) throw notSupported('This gateway does not delete users.')
    await lock.run(`user ${call.id.toLowerCase()}`, async () => {
      const { user } = await this.#find(call)
      await runWorkflow(this.#parts, call, { name, user })
    })
    return noContent
  }

  async #find(call: ScimCall): Promise<FoundUser> {
    const found = await this.#parts.lookups.userById(call.id)
    if (found === undefined) throw notFound('user', call.id)
    return found
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundUser): Promise<GatewayResponse> {
    const resource = await this.#parts.userView.resource(found, call.base)
    const projection = projectionOf(call, this.#parts.config.users.schema)
    const location = `${call.base}/Users/${encodeURIComponent(found.id)}`
    return answer(status, projection === undefined ? resource : projection.apply(resource), { location })
  }

  async #search(call: ScimCall, text: string | null, page: ReturnType<typeof parsePage>): Promise<ResourcePage> {
    const { lookups, userView, config } = this.#parts
    const filter = text === null || text === '' ? undefined : parseFilter(text, config.users.schema)
    const toResource = (found: FoundUser): Promise<ScimResource> => userView.resource(found, call.base)
    const id = fixedAttribute(filter, 'id')
    const login = fixedAttribute(filter, 'userName')
    if (filter !== undefined && (id !== undefined || login !== undefined)) {
      const found = id === undefined ? await lookups.userByLogin(login ?? '') : await lookups.userById(id)
      const resource = found && (await toResource(found))
      return pageOf(resource !== undefined && evaluateFilter(filter, resource) ? [resource] : [], page)
    }
    const translation =
      filter === undefined ? { filter: undefined, exact: true } : translateFilter(filter, this.#nameOf)
    return pagedSearch({ search: (query) => lookups.searchUsers(query), toResource }, filter, translation, page)
  }
}

function passwordOf(resource: JsonObject): { password?: string } {
  const password = resource['password']
  return typeof password === 'string' && password !== '' ? { password } : {}
}

/** An attribute that this gateway neither shows nor filters by never has a value. */
function userFilterNames({ config, lookups }: GatewayParts): NameOf {
  const shown = new Set(Array.from(config.scimPaths.values(), ({ attribute }) => attribute))
  return (path) => {
    const { attribute } = path
    const internal = config.users.filterNames.get(pathKey(path))
    if (internal !== undefined) return [internal]
    if (attribute.name === 'userName') return lookups.names.login
    if (attribute.name === 'id') return lookups.names.userId
    if (attribute.name === 'meta' || attribute.name === 'schemas' || shown.has(attribute)) return undefined
    return []
  }
}
