import { Attributes } from '#identity/attributes.ts'
import type { NamedGroup } from '#identity/group.ts'
import { JsonDocument, type MappedValue, type MappingSource, toTexts } from '#identity/mapping/mapped-value.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { isoTime } from '#kernel/time.ts'
import { entityTag } from '#protocols/scim/entity-tag.ts'
import type { Projection } from '#protocols/scim/projection.ts'
import { addressAt, resourceAddress } from '#protocols/scim/resource-address.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/schema/resource.ts'
import {
  type AttributePath,
  type AttributeRef,
  pathKey,
  type ResourceSchema,
} from '#protocols/scim/schema/resource-schema.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { FoundGroup, FoundUser, Lookups, Member } from './lookups.ts'
import { ownOfGroups } from './mapping-config.ts'
import {
  type AttributeChange,
  attributeChange,
  jsonOrText,
  readStored,
  type SchemaMapping,
  type StoredValues,
} from './schema-mapping.ts'

interface MappedType {
  readonly schema: ResourceSchema
  readonly mapping: SchemaMapping
}

/** What all resources have in common: the built-in mapping, stored values and `meta`. */
class ResourceMapping {
  readonly #endpoint: string
  readonly #type: MappedType
  readonly #log: Logger

  constructor(endpoint: string, type: MappedType, log: Logger) {
    this.#endpoint = endpoint
    this.#type = type
    this.#log = log
  }

  /** Shows the stored values of the built-in mapping. */
  show(resource: ScimResource, stored: StoredValues): void {
    this.#type.mapping.show(resource, stored, this.#report)
  }

  /** A stored value that does not fit the attribute's type is left out and logged; the rest is still shown. */
  write(resource: ScimResource, path: AttributePath, raw: JsonValue): void {
    const { attribute, sub } = path
    const leaf = sub ?? attribute
    try {
      const value = readStored(this.#type.schema, leaf, raw, (error) => this.#report(leaf.name, error))
      if (value === undefined) return
      const whole = readAttribute(resource, path)
      const parts = isJsonObject(whole) ? whole : {}
      writeAttribute(resource, path, sub === undefined ? value : { ...parts, [sub.name]: value })
    } catch (error) {
      this.#report(leaf.name, error)
    }
  }

  /** Adds the schemas that have values, and `meta` (RFC 7643 3.1), with times and version if the store has them. */
  complete(resource: ScimResource, id: string, base: string, stored: Versioned): ScimResource {
    const { core, extensions } = this.#type.schema
    const present = extensions.filter((extension) => resource[extension.id] !== undefined)
    resource['schemas'] = [core.id, ...present.map((extension) => extension.id)]
    const { created, modified, version } = stored
    const meta: Record<string, string> = { resourceType: core.name }
    if (created !== undefined) meta['created'] = isoTime(created.getTime())
    if (modified !== undefined) {
      const unchanged = modified.getTime() === created?.getTime() ? meta['created'] : undefined
      meta['lastModified'] = unchanged ?? isoTime(modified.getTime())
    }
    meta['location'] = addressAt(base, this.#endpoint, id)
    if (version !== undefined) meta['version'] = entityTag(version)
    resource['meta'] = meta
    return resource
  }

  /** The internal attributes of the built-in mapping, without those that no target can store. */
  attributes(resource: JsonObject, unstorable: readonly string[]): Attributes {
    const attributes = new Attributes()
    this.#type.mapping.store(resource, attributes)
    for (const name of unstorable) attributes.delete(name)
    return attributes
  }

  readonly #report = (attribute: string, error: unknown): void => {
    this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
  }
}

interface Versioned {
  readonly version?: string | undefined
  readonly created?: Date | undefined
  readonly modified?: Date | undefined
}

/** Maps users to SCIM resources and back: by the built-in mapping if it is configured, then by the mapping lines. */
export class UserMapping {
  readonly #config: GatewayConfig
  readonly #common: ResourceMapping
  readonly #lines: { readonly toScim: Mapping; readonly toInternal: Mapping }
  readonly #lookups: Lookups
  /** The internal attributes of `active`, in lower case. */
  readonly #activeNames: ReadonlySet<string>
  /** By the built-in mapping. */
  readonly #showsGroups: boolean

  constructor(
    config: GatewayConfig,
    lines: { readonly toScim: Mapping; readonly toInternal: Mapping },
    log: Logger,
    lookups: Lookups,
  ) {
    this.#config = config
    this.#common = new ResourceMapping(config.users.type.endpoint, config.users, log)
    this.#lines = lines
    this.#lookups = lookups
    this.#showsGroups = config.users.showsGroups && !config.users.mapping.isEmpty
    const { active } = config.users
    const names = active === undefined ? [] : (config.users.mapping.locate(active)?.names ?? [])
    this.#activeNames = new Set(names.map((name) => name.toLowerCase()))
  }

  /** The internal attributes of a resource, without those that no target can store. */
  async attributes(resource: JsonObject, login: string, unstorable: readonly string[]): Promise<Attributes> {
    const { users, toInternal } = this.#config
    const attributes = this.#common.attributes(resource, unstorable)
    if (toInternal.produces.length === 0) return attributes
    for (const [name, value] of await this.#lines.toInternal.apply(scimSource(users.schema, resource, login))) {
      attributes.set(name, toTexts(value))
    }
    return attributes
  }

  /** Synchronous without mapping lines and lookups of groups, since lists convert hundreds of users. */
  resource(found: FoundUser, base: string): Awaitable<ScimResource> {
    const { id, user } = found
    const { users, toScim, scimPaths } = this.#config
    const resource: ScimResource = { schemas: [], id, [users.type.nameAttribute]: user.userID }
    return andThen(this.#showsGroups ? this.#lookups.memberships(found) : [], (groups) => {
      if (!users.mapping.isEmpty) {
        this.#common.show(resource, user.attributes)
        showGroups(resource, groups, found, base)
      }
      const lines = toScim.produces.length === 0 ? noLines : this.#lines.toScim.apply(this.#source(found))
      return andThen(lines, (values) => {
        for (const [name, mapped] of values) {
          const path = scimPaths.get(name)
          if (path !== undefined) this.#common.write(resource, path, rawValue(mapped, path))
        }
        return this.#common.complete(resource, id, base, user)
      })
    })
  }

  /** `active` as clients see it. */
  isActive(found: FoundUser): Awaitable<boolean | undefined> {
    const { toScim } = this.#config
    const activeOf = ({ active }: ScimResource): boolean | undefined =>
      typeof active === 'boolean' ? active : undefined
    if (toScim.produces.length > 0) return andThen(this.resource(found, ''), activeOf)
    const resource: ScimResource = {}
    const stored = Array.from(found.user.attributes).filter(([name]) => this.#activeNames.has(name.toLowerCase()))
    this.#common.show(resource, stored)
    return activeOf(resource)
  }

  /** The login serves as the value of its attribute if the store keeps it apart from them. */
  #source(found: FoundUser): MappingSource {
    const { userID, groups, attributes } = found.user
    const { loginAttribute } = this.#config.users
    return {
      userID,
      groups,
      memberships: (names) => this.#lookups.memberships(found, names),
      names: () => new Set([...attributes.names(), loginAttribute]),
      values: (name) => {
        const values = attributes.values(name)
        return values.length === 0 && name.toLowerCase() === loginAttribute.toLowerCase() ? [userID] : values
      },
    }
  }
}

const noLines: ReadonlyMap<string, MappedValue> = new Map()

function showGroups(
  resource: ScimResource,
  direct: readonly NamedGroup[],
  { indirectGroups = [] }: FoundUser,
  base: string,
): void {
  if (direct.length + indirectGroups.length === 0) return
  const element = ({ id, name }: NamedGroup, type: 'direct' | 'indirect') => ({
    value: id,
    $ref: resourceAddress(base, 'Group', id),
    display: name,
    type,
  })
  resource['groups'] = [
    ...direct.map((group) => element(group, 'direct')),
    ...indirectGroups.map((group) => element(group, 'indirect')),
  ]
}

/** Mapping lines store a complex value as JSON text, so such a text is parsed if the attribute is complex. */
function rawValue(mapped: MappedValue, { attribute, sub }: AttributePath): JsonValue {
  if (mapped instanceof JsonDocument) return mapped.value
  const leaf = sub ?? attribute
  const values = leaf.type === 'complex' ? mapped.flatMap((text) => jsonOrText(text, /^[{[]/)) : mapped
  return leaf.multiValued ? values : (values[0] ?? null)
}

/** A SCIM resource as the source of mapping lines: attributes by any spelling, as texts or, if complex, as JSON. */
function scimSource(schema: ResourceSchema, resource: JsonObject, login: string): MappingSource {
  const find = (name: string): JsonValue | undefined => {
    const path = schema.resolveAttribute(name)
    return path === undefined ? undefined : valueAt(resource, path)
  }
  return {
    userID: login,
    groups: [],
    values: (name) => textsOf(find(name)),
    json: find,
    names: () => Object.keys(resource),
  }
}

function valueAt(resource: JsonObject, path: AttributePath): JsonValue | undefined {
  const value = readAttribute(resource, path)
  const { sub } = path
  if (sub === undefined || value === undefined) return value
  if (Array.isArray(value))
    return value.flatMap((item: JsonValue) => (isJsonObject(item) ? (item[sub.name] ?? []) : []))
  return isJsonObject(value) ? value[sub.name] : undefined
}

/** The text of a complex value is its `value`. */
function textsOf(value: JsonValue | undefined): readonly string[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.flatMap(textsOf)
  if (isJsonObject(value)) return textsOf(value['value'])
  return [String(value)]
}

/**
 * Maps groups to SCIM resources and back. Apart from name and members, a group has the attributes that
 * `groupFilterScim2Ldap` names and, with the built-in mapping, all others of the schema.
 */
export class GroupMapping {
  /** The internal attribute of the displayName; undefined if the displayName is the name of the group. */
  readonly displayAttribute: string | undefined
  readonly #config: GatewayConfig
  readonly #common: ResourceMapping
  readonly #lookups: Lookups
  readonly #named: readonly { readonly ref: AttributeRef; readonly internal: string }[]

  constructor(config: GatewayConfig, lookups: Lookups, log: Logger) {
    const { schema, displayAttribute, lookupAttribute, filterNames } = config.groups
    const isName = displayAttribute?.toLowerCase() === lookupAttribute.toLowerCase()
    this.displayAttribute = isName ? undefined : displayAttribute
    this.#config = config
    this.#common = new ResourceMapping('/Groups', config.groups, log)
    this.#lookups = lookups
    this.#named = Array.from(schema.attributes()).flatMap((ref) => {
      const isOwn = ref.extension === undefined && ownOfGroups.has(ref.attribute.name)
      const internal = isOwn ? undefined : filterNames.get(pathKey(ref))
      return internal === undefined || ref.attribute.type === 'complex' ? [] : [{ ref, internal }]
    })
  }

  /** `true` shows all members, if the group was read with them; a list shows only these. */
  async resource(found: FoundGroup, base: string, members: boolean | readonly Member[]): Promise<ScimResource> {
    const { id, group } = found
    const { attributes = new Attributes() } = group
    const display = this.displayAttribute === undefined ? undefined : attributes.first(this.displayAttribute)
    const resource: ScimResource = { schemas: [], id, displayName: display ?? group.name }
    this.#common.show(resource, attributes)
    for (const { ref, internal } of this.#named) {
      const values = attributes.values(internal)
      if (values.length > 0) this.#common.write(resource, ref, ref.attribute.multiValued ? values : (values[0] ?? null))
    }
    const shown = members === true ? await this.#lookups.members(found, true) : members
    if (shown !== false && shown.length > 0) resource['members'] = this.memberElements(shown, base)
    return this.#common.complete(resource, id, base, group)
  }

  /** Elements of `members`, with the parts that the projection shows. */
  memberElements(members: readonly Member[], base: string, projection?: Projection): JsonValue {
    const elements = members.map((member) => memberElement(member, base))
    return projection?.apply({ members: elements })['members'] ?? elements
  }

  /** The internal attributes of a resource, without those that no target can store. */
  attributes(resource: JsonObject, unstorable: readonly string[]): Attributes {
    const attributes = this.#common.attributes(resource, unstorable)
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
