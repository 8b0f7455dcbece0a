import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { etagHeader, notModified, requireMatch } from './conditional.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { changeGroup, findGroup, noteChange } from './group-changes.ts'
import { GroupCreation } from './group-creation.ts'
import { createEdit, describeEdit, type GroupEdit, putEdit, readGroup, readPatch } from './group-edit.ts'
import { GroupSearch } from './group-search.ts'
import { groupKey, runGroupWorkflow } from './group-workflow.ts'
import { type ListRequest, listAnswer, parseListRequest, type ResourcePage } from './list-request.ts'
import type { FoundGroup } from './lookups.ts'
import { resourceAnswer } from './resource-answer.ts'
import { noContent, notSupported, projectionOf, type ScimCall } from './scim-call.ts'

/** `/Groups` and `/Groups/{id}`. */
export class GroupEndpoint {
  readonly #parts: GatewayParts
  readonly #search: GroupSearch
  readonly #creation: GroupCreation

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#search = new GroupSearch(parts)
    this.#creation = new GroupCreation(parts)
  }

  async get(call: ScimCall): Promise<GatewayResponse> {
    if (call.ifNoneMatch !== undefined) {
      const { group } = await findGroup(this.#parts, call.id, false)
      const unchanged = notModified(call, group.version)
      if (unchanged !== undefined) return unchanged
    }
    return this.#show(call, 200, await findGroup(this.#parts, call.id, this.#wantsMembers(call)))
  }

  async list(call: ScimCall): Promise<GatewayResponse> {
    const { groups, client } = this.#parts.config
    const list = parseListRequest(call, groups.schema, client)
    return listAnswer(call, list, await this.search(call, list))
  }

  search(call: ScimCall, list: ListRequest): Promise<ResourcePage> {
    return this.#search.page(call, list)
  }

  async create(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    if (config.workflows.createGroup === undefined)
      throw notSupported('Groups cannot be created: this gateway has no groupCreateWorkflow.')
    const sent = readGroup(config, await call.body(), 'create')
    const edit = noted(call, createEdit(config, sent))
    return this.#show(call, 201, await this.#creation.create(call, sent, edit, this.#wantsMembers(call)))
  }

  async patch(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = noted(call, readPatch(config, await call.body()))
    const shown = config.client.groupPatch === 'resource' || call.query.has('attributes')
    const changed = await changeGroup(this.#parts, call, edit, shown && this.#wantsMembers(call))
    return shown ? this.#show(call, 200, changed) : { ...noContent, headers: etagHeader(changed.group.version) }
  }

  async replace(call: ScimCall): Promise<GatewayResponse> {
    const { config } = this.#parts
    const edit = noted(call, putEdit(config, readGroup(config, await call.body(), 'put')))
    return this.#show(call, 200, await changeGroup(this.#parts, call, edit, this.#wantsMembers(call)))
  }

  async delete(call: ScimCall): Promise<GatewayResponse> {
    const { lock, config, lookups } = this.#parts
    const name = config.workflows.deleteGroup
    if (name === undefined) throw notSupported('Groups cannot be deleted: this gateway has no groupDeleteWorkflow.')
    await lock.run(groupKey(lookups.ids.groupForm(call.id)), async () => {
      const { id, group } = await findGroup(this.#parts, call.id, false)
      const version = requireMatch(call, group.version)
      await runGroupWorkflow(this.#parts, call, {
        name,
        params: {
          groupname: group.name,
          groupid: group.id,
          ...(version === undefined ? {} : { groupversion: version }),
        },
      })
      const left = await lookups.groupById(id, false)
      if (left !== undefined && left.group.version === group.version) {
        throw new GatewayError('WORKFLOW_FAILED', `workflow "${name}" ended, but the group is still there`, {
          publicText: `The delete workflow "${name}" ended, but the group is still there. Have the workflow delete the group.`,
        })
      }
      noteChange(call, { kind: 'delete', id, attributes: [] })
    })
    return noContent
  }

  #wantsMembers(call: ScimCall): boolean {
    return projectionOf(call, this.#parts.config.groups.schema)?.wants('members') ?? true
  }

  async #show(call: ScimCall, status: 200 | 201, found: FoundGroup): Promise<GatewayResponse> {
    const resource = await this.#parts.groupView.resource(found, call.base, this.#wantsMembers(call))
    const projection = projectionOf(call, this.#parts.config.groups.schema)
    return resourceAnswer(call, status, resource, found.group.version, projection)
  }
}

function noted(call: ScimCall, edit: GroupEdit): GroupEdit {
  call.notes.operations = describeEdit(edit) satisfies JsonValue
  return edit
}
