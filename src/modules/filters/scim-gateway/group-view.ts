import type { ScimResource } from '#protocols/scim/resource.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { FoundGroup, Lookups } from './lookups.ts'
import { resourceMeta } from './resource-meta.ts'

/** Makes SCIM resources of groups. */
export class GroupView {
  readonly #config: GatewayConfig
  readonly #lookups: Lookups

  constructor(config: GatewayConfig, lookups: Lookups) {
    this.#config = config
    this.#lookups = lookups
  }

  /** `members` only where the group was read with them. */
  async resource(found: FoundGroup, base: string, members: boolean): Promise<ScimResource> {
    const { id, group } = found
    const { schema, displayAttribute } = this.#config.groups
    const display = displayAttribute === undefined ? undefined : group.attributes?.first(displayAttribute)
    const resource: ScimResource = { schemas: [schema.core.id], id, displayName: display ?? group.name }
    if (members) {
      const ids = await this.#lookups.memberIds(found)
      if (ids.length > 0) resource['members'] = ids.map((member) => memberElement(member, base))
    }
    resource['meta'] = resourceMeta('Group', `${base}/Groups/${encodeURIComponent(id)}`, group)
    return resource
  }
}

const memberElement = (id: string, base: string) => ({
  value: id,
  $ref: `${base}/Users/${encodeURIComponent(id)}`,
  type: 'User',
})
