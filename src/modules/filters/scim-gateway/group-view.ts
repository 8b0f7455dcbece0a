import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { ScimResource } from '#protocols/scim/resource.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { GroupAttributes } from './group-attributes.ts'
import type { FoundGroup, Lookups, Member } from './lookups.ts'
import { resourceAddress } from './resource-address.ts'
import { resourceMeta } from './resource-meta.ts'

/** Makes SCIM resources of groups. */
export class GroupView {
  readonly attributes: GroupAttributes
  readonly #config: GatewayConfig
  readonly #lookups: Lookups

  constructor(config: GatewayConfig, lookups: Lookups, log: Logger) {
    this.attributes = new GroupAttributes(config, log)
    this.#config = config
    this.#lookups = lookups
  }

  /** With all members only where the group was read with them; a list shows just these. */
  async resource(found: FoundGroup, base: string, members: boolean | readonly Member[]): Promise<ScimResource> {
    const { id, group } = found
    const { schema } = this.#config.groups
    const { displayed } = this.attributes
    const display = displayed === undefined ? undefined : group.attributes?.first(displayed)
    const schemas = [schema.core.id]
    const resource: ScimResource = { schemas, id, displayName: display ?? group.name }
    if (group.attributes !== undefined) this.attributes.show(resource, group.attributes)
    for (const extension of schema.extensions) if (resource[extension.id] !== undefined) schemas.push(extension.id)
    const shown = members === true ? await this.#lookups.members(found, true) : members
    if (shown !== false && shown.length > 0) resource['members'] = shown.map((member) => memberElement(member, base))
    resource['meta'] = resourceMeta('Group', resourceAddress(base, 'Group', id), group)
    return resource
  }
}

const memberElement = ({ id, type, display }: Member, base: string): JsonObject => ({
  value: id,
  $ref: resourceAddress(base, type, id),
  type,
  ...(display === undefined ? {} : { display }),
})
