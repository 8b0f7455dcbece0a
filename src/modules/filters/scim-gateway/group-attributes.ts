import { Attributes } from '#identity/attributes.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { pathKey } from '#protocols/scim/path-key.ts'
import { readValue } from '#protocols/scim/read-value.ts'
import { readAttribute, type ScimResource, writeAttribute } from '#protocols/scim/resource.ts'
import type { AttributeRef, ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { type SchemaMapping, storedValues } from './schema-mapping.ts'

/** What the gateway makes of a group by itself. */
const ownAttributes = new Set(['schemas', 'id', 'meta', 'displayName', 'members'])

/**
 * The attributes that groups have beside name and members: each that `groupFilterScim2Ldap` gives an internal name, and
 * all others of the schema where the built-in mapping is used.
 */
export class GroupAttributes {
  /** The internal attribute that holds the displayName, where it is not the name itself. */
  readonly displayed: string | undefined
  readonly #schema: ResourceSchema
  readonly #mapping: SchemaMapping
  readonly #named: readonly { readonly ref: AttributeRef; readonly internal: string }[]
  readonly #log: Logger

  constructor({ groups }: GatewayConfig, log: Logger) {
    const { schema, displayAttribute, lookupAttribute } = groups
    const isName = displayAttribute?.toLowerCase() === lookupAttribute.toLowerCase()
    this.displayed = isName ? undefined : displayAttribute
    this.#schema = schema
    this.#mapping = groups.mapping
    this.#log = log
    this.#named = Array.from(schema.attributes()).flatMap((ref) => {
      const isOwn = ref.extension === undefined && ownAttributes.has(ref.attribute.name)
      const internal = isOwn ? undefined : groups.filterNames.get(pathKey(ref))
      return internal === undefined || ref.attribute.type === 'complex' ? [] : [{ ref, internal }]
    })
  }

  /** The internal attributes of a group that is to be as the resource says. */
  of(resource: JsonObject): Attributes {
    const attributes = new Attributes()
    this.#mapping.store(resource, attributes)
    for (const { ref, internal } of this.#named) {
      const value = readAttribute(resource, ref)
      if (value !== undefined) attributes.set(internal, [value].flat().map(String))
    }
    const name = resource['displayName']
    if (this.displayed !== undefined && typeof name === 'string') attributes.set(this.displayed, [name])
    return attributes
  }

  /** Puts what the group holds into the resource. A stored value that does not fit is left out and logged. */
  show(resource: ScimResource, held: Attributes): void {
    this.#mapping.show(resource, held, (attribute, error) => this.#unfit(attribute, error))
    for (const { ref, internal } of this.#named) {
      const values = held.values(internal)
      if (values.length === 0) continue
      try {
        const raw = ref.attribute.multiValued ? values : (values[0] ?? null)
        writeAttribute(resource, ref, readValue(this.#schema, ref.attribute, raw, storedValues))
      } catch (error) {
        this.#unfit(ref.attribute.name, error)
      }
    }
  }

  #unfit(attribute: string, error: unknown): void {
    this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
  }
}
