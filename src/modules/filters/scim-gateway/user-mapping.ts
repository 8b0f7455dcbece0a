import { Attributes } from '#identity/attributes.ts'
import { JsonDocument, type MappedValue, type MappingSource, toTexts } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributePath, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { FoundUser, Lookups } from './lookups.ts'
import { readStored } from './schema-mapping.ts'
import { resourceAddress, resourceMeta } from './scim-call.ts'

/** Maps users to SCIM resources and back: by the built-in mapping if it is configured, then by the mapping lines. */
export class UserMapping {
  readonly #config: GatewayConfig
  readonly #lines: { readonly toScim: Mapping; readonly toInternal: Mapping }
  readonly #log: Logger
  readonly #lookups: Pick<Lookups, 'groupIdIsName' | 'ids'>

  constructor(
    config: GatewayConfig,
    lines: { readonly toScim: Mapping; readonly toInternal: Mapping },
    log: Logger,
    lookups: Pick<Lookups, 'groupIdIsName' | 'ids'>,
  ) {
    this.#config = config
    this.#lines = lines
    this.#log = log
    this.#lookups = lookups
  }

  /** The internal attributes of a resource, without those that no target can store. */
  async attributes(resource: JsonObject, login: string, unstorable: readonly string[]): Promise<Attributes> {
    const { users, toInternal } = this.#config
    const attributes = new Attributes()
    users.mapping.store(resource, attributes)
    for (const name of unstorable) attributes.delete(name)
    if (toInternal.produces.length === 0) return attributes
    for (const [name, value] of await this.#lines.toInternal.apply(scimSource(users.schema, resource, login))) {
      attributes.set(name, toTexts(value))
    }
    return attributes
  }

  /** Synchronous without mapping lines, since lists convert hundreds of users; the mappers of lines may be asynchronous. */
  resource(found: FoundUser, base: string): ScimResource | Promise<ScimResource> {
    const { id, user } = found
    const { users, toScim, scimPaths } = this.#config
    const resource: ScimResource = { schemas: [users.schema.core.id], id, userName: user.userID }
    if (!users.mapping.isEmpty) {
      users.mapping.show(resource, user.attributes, this.#report)
      this.#showGroups(resource, found, base)
    }
    const location = resourceAddress(base, 'User', id)
    if (toScim.produces.length === 0) return this.#complete(resource, user, location)
    return this.#lines.toScim.apply(this.#source(user)).then((lines) => {
      for (const [name, mapped] of lines) {
        const path = scimPaths.get(name)
        if (path !== undefined) this.#write(resource, path, mapped)
      }
      return this.#complete(resource, user, location)
    })
  }

  #complete(resource: ScimResource, user: User, location: string): ScimResource {
    const { core, extensions } = this.#config.users.schema
    const present = extensions.filter(({ id }) => resource[id] !== undefined).map(({ id }) => id)
    if (present.length > 0) resource['schemas'] = [core.id, ...present]
    resource['meta'] = resourceMeta('User', location, user)
    return resource
  }

  #showGroups(resource: ScimResource, { user, indirectGroups = [] }: FoundUser, base: string): void {
    const { groups, groupIds } = user
    const { ids, groupIdIsName } = this.#lookups
    const direct = (groupIdIsName ? groups : groupIds) ?? []
    if (direct.length + indirectGroups.length === 0) return
    const element = (value: string, display: string, type: 'direct' | 'indirect') => ({
      value,
      $ref: resourceAddress(base, 'Group', value),
      display,
      type,
    })
    resource['groups'] = [
      ...direct.map((id, i) => element(ids.ofGroup(id), groups[i] ?? id, 'direct')),
      ...indirectGroups.map(({ id, name }) => element(id, name, 'indirect')),
    ]
  }

  /** The login serves as the value of its attributes if the store keeps it apart from them. */
  #source(user: User): MappingSource {
    const { loginAttribute, lookupAttribute } = this.#config.users
    const logins = [loginAttribute.toLowerCase(), lookupAttribute.toLowerCase()]
    return {
      userID: user.userID,
      groups: user.groups,
      ...(user.groupIds === undefined ? {} : { groupIds: user.groupIds }),
      names: () => new Set([...user.attributes.names(), loginAttribute]),
      values: (name) => {
        const values = user.attributes.values(name)
        return values.length === 0 && logins.includes(name.toLowerCase()) ? [user.userID] : values
      },
    }
  }

  /** A stored value that does not fit the attribute's type is left out and logged; the rest of the user is still shown. */
  #write(resource: ScimResource, path: AttributePath, mapped: MappedValue): void {
    const { attribute, sub } = path
    const leaf = sub ?? attribute
    try {
      const raw = rawValue(mapped, path)
      const value = readStored(this.#config.users.schema, leaf, raw, (error) => this.#report(leaf.name, error))
      if (value === undefined) return
      const whole = readAttribute(resource, path)
      const parts = isJsonObject(whole) ? whole : {}
      writeAttribute(resource, path, sub === undefined ? value : { ...parts, [sub.name]: value })
    } catch (error) {
      this.#report(leaf.name, error)
    }
  }

  readonly #report = (attribute: string, error: unknown): void => {
    this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
  }
}

/** Mapping lines store a complex value as JSON text, so such a text is parsed if the attribute is complex. */
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
