import { Attributes } from '#identity/attributes.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import type { ScimFilter } from '#protocols/scim/filter/filter-ast.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { listResponse, parsePage } from '#protocols/scim/list-response.ts'
import { applyPatch, changedAttributes } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch } from '#protocols/scim/patch/parse-patch.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { readResource, requireAttributes } from '#protocols/scim/read-resource.ts'
import type { ReadOptions } from '#protocols/scim/read-value.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { type NameOf, translateFilter } from './filter-translation.ts'
import { fixedAttribute, mentions } from './fixed-attribute.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { changeMembers } from './group-members.ts'
import { inParallel } from './in-parallel.ts'
import { type FoundGroup, lookupWidth } from './lookups.ts'
import { pagedSearch, pageOf, type ResourcePage } from './paged-search.ts'
import { pathKey } from './path-key.ts'
import { answer, noContent, notFound, notSupported, projectionOf, readBody, type ScimCall } from './scim-call.ts'

/** Members in one request; the body's size bounds them first. */
const memberValues: ReadOptions = { readOnly: 'drop', maxValues: 100_000 }

/** `/Groups` and `/Groups/{id}`. */
export class GroupEndpoint {
  readonly #parts: GatewayParts
  readonly #nameOf: NameOf

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#nameOf = groupFilterNames(parts)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    const { groups } = this.#parts.config
    const projection = projectionOf(call, groups.schema)
    const members = projection?.wants('members') ?? true
    const found = await this.#find(call, members)
    const resource = await this.#parts.groupView.resource(found, call.base, members)
    const location = `${call.base}/Groups/${encodeURIComponent(found.id)}`
    return answer(200, projection === undefined ? resource : projection.apply(resource), { location })
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { query } = call.exchange.request
    const { schema } = this.#parts.config.groups
    const page = parsePage(query)
    const projection = projectionOf(call, schema)
    const text = query.get('filter')
    const filter = text === null || text === '' ? undefined : parseFilter(text, schema)
    const { resources, total } = await this.#search(call, filter, page, projection?.wants('members') ?? true)
    const shown = projection === undefined ? resources : resources.map(projection.apply)
    return answer(200, listResponse(shown, total, page.startIndex))
  }

  create(): Promise<GatewayResponse> {
    throw notSupported('This gateway does not create groups.')
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.groups
    const operations = parsePatch(schema, await readBody(call), memberValues)
    return this.#change(call, operations)
  }

  /** Members that are left out are removed; the name must be the group's own. */
  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { schema } = this.#parts.config.groups
    const sent = readResource(schema, await readBody(call), memberValues)
    requireAttributes(schema, sent)
    const operations: PatchOperation[] = schema.core.attributes.flatMap((attribute): PatchOperation[] => {
      const value = sent[attribute.name]
      if (value !== undefined) return [{ op: 'replace', target: { attribute }, value }]
      return attribute.required ? [] : [{ op: 'remove', target: { attribute } }]
    })
    await this.#change(call, operations)
    return this.get(call)
  }

  async #change(call: ScimCall, operations: readonly PatchOperation[]): Promise<GatewayResponse> {
    const { lock, groupView, config } = this.#parts
    const { schema } = config.groups
    const onMembers = operations.filter(({ target }) => target.attribute.name === 'members')
    const onGroup = operations.filter(({ target }) => target.attribute.name !== 'members')
    await lock.run(`group ${call.id.toLowerCase()}`, async () => {
      const found = await this.#find(call, false)
      const before = await groupView.resource(found, call.base, false)
      const { resource: after } = applyPatch(schema, before, onGroup)
      requireSameName(changedAttributes(schema, before, after).map(({ attribute }) => attribute.name))
      if (onMembers.length > 0) await changeMembers(this.#parts, call, found, onMembers)
    })
    const asked = call.exchange.request.query.has('attributes')
    return asked ? this.get(call) : noContent
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    const { lock, config } = this.#parts
    const name = config.workflows.deleteGroup
    if (name === undefined) throw notSupported('This gateway does not delete groups.')
    await lock.run(`group ${call.id.toLowerCase()}`, async () => {
      const { id, group } = await this.#find(call, false)
      const user = { userID: call.exchange.subject.uid, attributes: new Attributes(), groups: [] }
      await runWorkflow(this.#parts, call, { name, user, params: { groupname: group.name, groupid: id } })
    })
    return noContent
  }

  async #find(call: ScimCall, members: boolean): Promise<FoundGroup> {
    const found = await this.#parts.lookups.groupById(call.id, members)
    if (found === undefined) throw notFound('group', call.id)
    return found
  }

  async #search(
    call: ScimCall,
    filter: ScimFilter | undefined,
    page: ReturnType<typeof parsePage>,
    members: boolean,
  ): Promise<ResourcePage> {
    const { lookups } = this.#parts
    const onMembers = filter !== undefined && mentions(filter, 'members')
    const toResource = (found: FoundGroup) => this.#full(found, call, members || onMembers)
    const candidates = filter === undefined ? undefined : await this.#candidates(filter)
    if (filter !== undefined && candidates !== undefined) {
      const resources = await inParallel(candidates, lookupWidth, toResource)
      return pageOf(
        resources.filter((resource) => evaluateFilter(filter, resource)),
        page,
      )
    }
    if (onMembers) {
      throw scimError(
        'invalidFilter',
        'members can be filtered by eq only, alone or joined to other conditions by and.',
      )
    }
    const translation =
      filter === undefined ? { filter: undefined, exact: true } : translateFilter(filter, this.#nameOf)
    return pagedSearch({ search: (query) => lookups.searchGroups(query), toResource }, filter, translation, page)
  }

  /** The few groups that can match where the filter fixes the id or a member. */
  async #candidates(filter: ScimFilter): Promise<readonly FoundGroup[] | undefined> {
    const { lookups } = this.#parts
    const id = fixedAttribute(filter, 'id')
    if (id !== undefined) {
      const found = await lookups.groupById(id, false)
      return found === undefined ? [] : [found]
    }
    const member = fixedAttribute(filter, 'members', 'value')
    if (member === undefined) return undefined
    const found = await lookups.userById(member)
    return found === undefined ? [] : lookups.groupsOf(found)
  }

  /** Searches do not owe members, so they are read group by group where they are wanted. */
  async #full(found: FoundGroup, call: ScimCall, members: boolean): Promise<ScimResource> {
    const { lookups, groupView } = this.#parts
    const full = members ? ((await lookups.groupById(found.id, true)) ?? found) : found
    return groupView.resource(full, call.base, members)
  }
}

function requireSameName(changed: readonly string[]): void {
  if (changed.includes('displayName')) {
    throw scimError('mutability', 'displayName of a group cannot be changed through this gateway.')
  }
}

/** An attribute that groups here do not have never has a value. */
function groupFilterNames({ config, lookups }: GatewayParts): NameOf {
  return (path) => {
    const { name } = path.attribute
    const internal = config.groups.filterNames.get(pathKey(path))
    if (name === 'id') return lookups.names.groupId
    if (name === 'displayName') return internal === undefined ? lookups.names.groupName : [internal]
    if (internal !== undefined) return [internal]
    return name === 'meta' || name === 'schemas' || name === 'members' ? undefined : []
  }
}
