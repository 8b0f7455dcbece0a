import { JsonDocument, type MappedValue, type MappingSource } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath } from '#protocols/scim/resource-schema.ts'
import type { Mapping } from '#sdk/mapping.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { FoundUser, Lookups } from './lookups.ts'
import { resourceAddress } from './resource-address.ts'
import type { ResourceIds } from './resource-ids.ts'
import { resourceMeta } from './resource-meta.ts'
import { readStored } from './schema-mapping.ts'

/** Makes SCIM resources of users, by the built-in mapping where it is asked for, then by `tremolo2scim`. */
export class UserView {
  readonly #config: GatewayConfig
  /** Undefined where there are no lines. */
  readonly #toScim: Mapping | undefined
  readonly #log: Logger
  /** Groups are told by their names, which are their ids. */
  readonly #groupIdIsName: boolean
  readonly #ids: ResourceIds

  constructor(
    config: GatewayConfig,
    toScim: Mapping,
    log: Logger,
    { groupIdIsName, ids }: Pick<Lookups, 'groupIdIsName' | 'ids'>,
  ) {
    this.#ids = ids
    this.#config = config
    this.#toScim = config.toScim.produces.length === 0 ? undefined : toScim
    this.#log = log
    this.#groupIdIsName = groupIdIsName
  }

  /** At once where there are no lines; mappers of lines may take their time. */
  resource(found: FoundUser, base: string): ScimResource | Promise<ScimResource> {
    const { id, user } = found
    const { schema, mapping } = this.#config.users
    const resource: ScimResource = { schemas: [schema.core.id], id, userName: user.userID }
    if (!mapping.isEmpty) {
      mapping.show(resource, user.attributes, this.#report)
      this.#showGroups(resource, found, base)
    }
    const location = resourceAddress(base, 'User', id)
    if (this.#toScim === undefined) return this.#complete(resource, user, location)
    return this.#toScim.apply(this.#source(user)).then((lines) => {
      for (const [name, mapped] of lines) {
        const path = this.#config.scimPaths.get(name)
        if (path !== undefined) this.#write(resource, path, mapped)
      }
      return this.#complete(resource, user, location)
    })
  }

  #complete(resource: ScimResource, user: User, location: string): ScimResource {
    const { core, extensions } = this.#config.users.schema
    const held = extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
    if (held.length > 0) resource['schemas'] = [core.id, ...held]
    resource['meta'] = resourceMeta('User', location, user)
    return resource
  }

  #showGroups(resource: ScimResource, { user, indirectGroups = [] }: FoundUser, base: string): void {
    const { groups, groupIds } = user
    const ids = (this.#groupIdIsName ? groups : groupIds) ?? []
    if (ids.length + indirectGroups.length === 0) return
    const element = (value: string, display: string, type: 'direct' | 'indirect') => ({
      value,
      $ref: resourceAddress(base, 'Group', value),
      display,
      type,
    })
    resource['groups'] = [
      ...ids.map((id, i) => element(this.#ids.ofGroup(id), groups[i] ?? id, 'direct')),
      ...indirectGroups.map(({ id, name }) => element(id, name, 'indirect')),
    ]
  }

  /** The login answers for its attributes where the store keeps it apart from them. */
  #source(user: User): MappingSource {
    const { loginAttribute, lookupAttribute } = this.#config.users
    const login = loginAttribute.toLowerCase()
    const lookup = lookupAttribute.toLowerCase()
    return {
      userID: user.userID,
      groups: user.groups,
      ...(user.groupIds === undefined ? {} : { groupIds: user.groupIds }),
      names: () => new Set([...user.attributes.names(), loginAttribute]),
      values: (name) => {
        const values = user.attributes.values(name)
        if (values.length > 0) return values
        const lower = name.toLowerCase()
        return lower === login || lower === lookup ? [user.userID] : values
      },
    }
  }

  /** A stored value that is not of the attribute's type is left out and logged; it must not hide the whole user. */
  #write(resource: ScimResource, path: AttributePath, mapped: MappedValue): void {
    const { attribute, sub } = path
    const leaf = sub ?? attribute
    try {
      const raw = rawValue(mapped, path)
      const value = readStored(this.#config.users.schema, leaf, raw, (error) => this.#report(leaf.name, error))
      if (value === undefined) return
      if (sub === undefined) writeAttribute(resource, path, value)
      else writeAttribute(resource, path, { ...objectOf(readAttribute(resource, path)), [sub.name]: value })
    } catch (error) {
      this.#report(leaf.name, error)
    }
  }

  readonly #report = (attribute: string, error: unknown): void => {
    this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
  }
}

/** A document as it is; texts as JSON where the attribute is complex and they hold JSON, which is how such values are stored. */
function rawValue(mapped: MappedValue, { attribute, sub }: AttributePath): JsonValue {
  if (mapped instanceof JsonDocument) return mapped.value
  const leaf = sub ?? attribute
  const values = leaf.type === 'complex' ? mapped.flatMap((text) => storedJson(text) ?? text) : mapped
  return leaf.multiValued ? values : (values[0] ?? null)
}

function storedJson(text: string): JsonValue | undefined {
  if (!text.startsWith('{') && !text.startsWith('[')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {})
