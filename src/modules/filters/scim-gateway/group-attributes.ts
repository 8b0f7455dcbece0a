import { Attributes } from '#identity/attributes.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { readAttribute, type ScimResource, sameValue, writeAttribute } from '#protocols/scim/resource.ts'
import { type AttributeRef, pathKey, type ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { withHiddenValues } from './hidden-values.ts'
import { readStored, type SchemaMapping } from './schema-mapping.ts'

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

  /** The internal attributes of a group that is to be as the resource says, without those that nothing can store. */
  of(resource: JsonObject, unstorable: readonly string[]): Attributes {
    const attributes = new Attributes()
    this.#mapping.store(resource, attributes)
    for (const name of unstorable) attributes.delete(name)
    for (const { ref, internal } of this.#named) {
      const value = readAttribute(resource, ref)
      if (value !== undefined) attributes.set(internal, [value].flat().map(String))
    }
    const name = resource['displayName']
    if (this.displayed !== undefined && typeof name === 'string') attributes.set(this.displayed, [name])
    return attributes
  }

  /**
   * What brings a group from one resource to another. Stored values that clients can't see stay; undefined when nothing
   * changes.
   */
  change(
    stored: Attributes,
    before: JsonObject,
    after: JsonObject,
    unstorable: readonly string[],
  ): { readonly attributes: Attributes; readonly cleared: readonly string[] } | undefined {
    const old = this.of(before, unstorable)
    const fresh = this.of(after, unstorable)
    const attributes = new Attributes()
    let changed = false
    for (const name of new Set([...old.names(), ...fresh.names()])) {
      const visible = old.values(name)
      const wanted = fresh.values(name)
      const held = stored.values(name)
      const same = sameValue(visible, wanted)
      const values =
        same && held.length > 0 ? held : withHiddenValues(this.#mapping, name, { stored: held, visible, wanted })
      attributes.set(name, values)
      changed ||= !same
    }
    if (!changed) return undefined
    return { attributes, cleared: old.names().filter((name) => !attributes.has(name)) }
  }

  /** Puts what the group holds into the resource. A stored value that does not fit is left out and logged. */
  show(resource: ScimResource, held: Attributes): void {
    this.#mapping.show(resource, held, (attribute, error) => this.#unfit(attribute, error))
    for (const { ref, internal } of this.#named) {
      const values = held.values(internal)
      if (values.length === 0) continue
      try {
        const raw = ref.attribute.multiValued ? values : (values[0] ?? null)
        const report = (error: unknown): void => this.#unfit(ref.attribute.name, error)
        writeAttribute(resource, ref, readStored(this.#schema, ref.attribute, raw, report))
      } catch (error) {
        this.#unfit(ref.attribute.name, error)
      }
    }
  }

  #unfit(attribute: string, error: unknown): void {
    this.#log.warn('a stored value does not fit its SCIM attribute', { attribute, err: error })
  }
}
