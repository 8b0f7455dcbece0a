import { Attributes } from '#identity/attributes.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import { type AttributeRef, pathKey } from '#protocols/scim/resource-schema.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { FoundGroup, Lookups, Member } from './lookups.ts'
import { ownOfGroups } from './mapping-config.ts'
import { type AttributeChange, attributeChange, readStored } from './schema-mapping.ts'
import { resourceAddress, resourceMeta } from './scim-call.ts'

/**
 * Maps groups to SCIM resources and back. Apart from name and members, a group has the attributes that
 * `groupFilterScim2Ldap` names and, with the built-in mapping, all others of the schema.
 */
export class GroupMapping {
  /** The internal attribute of the displayName; undefined if the displayName is the name of the group. */
  readonly displayAttribute: string | undefined
  readonly #config: GatewayConfig
  readonly #lookups: Lookups
  readonly #log: Logger
  readonly #named: readonly { readonly ref: AttributeRef; readonly internal: string }[]

  constructor(config: GatewayConfig, lookups: Lookups, log: Logger) {
    const { schema, displayAttribute, lookupAttribute, filterNames } = config.groups
    const isName = displayAttribute?.toLowerCase() === lookupAttribute.toLowerCase()
    this.displayAttribute = isName ? undefined : displayAttribute
    this.#config = config
    this.#lookups = lookups
    this.#log = log
    this.#named = Array.from(schema.attributes()).flatMap((ref) => {
      const isOwn = ref.extension === undefined && ownOfGroups.has(ref.attribute.name)
      const internal = isOwn ? undefined : filterNames.get(pathKey(ref))
      return internal === undefined || ref.attribute.type === 'complex' ? [] : [{ ref, internal }]
    })
  }

  /** `true` shows all members, if the group was read with them; a list shows only these. */
  async resource(found: FoundGroup, base: string, members: boolean | readonly Member[]): Promise<ScimResource> {
    const { id, group } = found
    const { schema } = this.#config.groups
    const display = this.displayAttribute === undefined ? undefined : group.attributes?.first(this.displayAttribute)
    const schemas = [schema.core.id]
    const resource: ScimResource = { schemas, id, displayName: display ?? group.name }
    if (group.attributes !== undefined) this.#show(resource, group.attributes)
    for (const extension of schema.extensions) if (resource[extension.id] !== undefined) schemas.push(extension.id)
    const shown = members === true ? await this.#lookups.members(found, true) : members
    if (shown !== false && shown.length > 0) resource['members'] = shown.map((member) => memberElement(member, base))
    resource['meta'] = resourceMeta('Group', resourceAddress(base, 'Group', id), group)
    return resource
  }

  /** A stored value that does not fit its attribute is left out and logged. */
  #show(resource: ScimResource, stored: Attributes): void {
    const { mapping, schema } = this.#config.groups
    const report = (attribute: string, error: unknown): void =>
      this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
    mapping.show(resource, stored, report)
    for (const { ref, internal } of this.#named) {
      const { attribute } = ref
      const values = stored.values(internal)
      if (values.length === 0) continue
      try {
        const raw = attribute.multiValued ? values : (values[0] ?? null)
        const value = readStored(schema, attribute, raw, (error) => report(attribute.name, error))
        writeAttribute(resource, ref, value)
      } catch (error) {
        report(attribute.name, error)
      }
    }
  }

  /** The internal attributes of a resource, without those that no target can store. */
  attributes(resource: JsonObject, unstorable: readonly string[]): Attributes {
    const attributes = new Attributes()
    this.#config.groups.mapping.store(resource, attributes)
    for (const name of unstorable) attributes.delete(name)
    for (const { ref, internal } of this.#named) {
      const value = readAttribute(resource, ref)
      if (value !== undefined) attributes.set(internal, [value].flat().map(String))
    }
    const { displayName } = resource
    if (this.displayAttribute !== undefined && typeof displayName === 'string') {
      attributes.set(this.displayAttribute, [displayName])
    }
    return attributes
  }

  change(stored: Attributes, before: JsonObject, after: JsonObject, unstorable: readonly string[]): AttributeChange {
    const old = this.attributes(before, unstorable)
    const fresh = this.attributes(after, unstorable)
    const names = new Set([...old.names(), ...fresh.names()])
    return attributeChange(this.#config.groups.mapping, names, stored, old, fresh)
  }
}

const memberElement = ({ id, type, display }: Member, base: string): JsonObject => ({
  value: id,
  $ref: resourceAddress(base, type, id),
  type,
  ...(display === undefined ? {} : { display }),
})
