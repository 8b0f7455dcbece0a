import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import { commonAttributes } from '#protocols/scim/schemas/common-attributes.ts'

/** A top-level attribute and where its value lives: in the resource itself, or in an extension's object. */
export interface AttributeRef {
  readonly attribute: SchemaAttribute
  readonly extension?: string
}

export interface AttributePath extends AttributeRef {
  readonly sub?: SchemaAttribute
}

/** `urn`, `urn:attribute`, `attribute` or either with `.sub`. Letter case never counts. */
export type ResolvedName =
  | { readonly kind: 'schema'; readonly schema: Schema; readonly extension?: string }
  | ({ readonly kind: 'attribute' } & AttributePath)

interface Namespace {
  readonly schema: Schema
  readonly extension?: string
  readonly attributes: ReadonlyMap<string, AttributeRef>
}

/** A resource type's core schema and extensions, compiled for look-up by name. */
export class ResourceSchema {
  readonly core: Schema
  readonly extensions: readonly Schema[]
  readonly #namespaces = new Map<string, Namespace>()
  readonly #unqualified = new Map<string, AttributeRef>()
  readonly #subAttributes = new Map<SchemaAttribute, ReadonlyMap<string, SchemaAttribute>>()

  constructor(core: Schema, extensions: readonly Schema[] = []) {
    this.core = core
    this.extensions = extensions
    this.#add(core, undefined, [...commonAttributes, ...core.attributes])
    for (const extension of extensions) this.#add(extension, extension.id, extension.attributes)
  }

  #add(schema: Schema, extension: string | undefined, list: readonly SchemaAttribute[]): void {
    const attributes = new Map<string, AttributeRef>()
    for (const attribute of list) {
      const ref = extension === undefined ? { attribute } : { attribute, extension }
      const key = attribute.name.toLowerCase()
      attributes.set(key, ref)
      // Clients leave the URN out; the core schema, then earlier extensions, win.
      if (!this.#unqualified.has(key)) this.#unqualified.set(key, ref)
      const subs = attribute.subAttributes.map((sub) => [sub.name.toLowerCase(), sub] as const)
      this.#subAttributes.set(attribute, new Map(subs))
    }
    this.#namespaces.set(schema.id.toLowerCase(), {
      schema,
      attributes,
      ...(extension === undefined ? {} : { extension }),
    })
  }

  /** Every top-level attribute, the common ones included. */
  *attributes(): Iterable<AttributeRef> {
    for (const namespace of this.#namespaces.values()) yield* namespace.attributes.values()
  }

  subAttribute(attribute: SchemaAttribute, name: string): SchemaAttribute | undefined {
    return this.#subAttributes.get(attribute)?.get(name.toLowerCase())
  }

  /** Undefined when the schemas have no such name. */
  resolve(name: string): ResolvedName | undefined {
    const lower = name.toLowerCase()
    if (!lower.includes(':')) return this.#within(this.#unqualified, lower)
    for (const [urn, namespace] of this.#namespaces) {
      if (!lower.startsWith(urn)) continue
      if (lower.length === urn.length) {
        const { schema, extension } = namespace
        return { kind: 'schema', schema, ...(extension === undefined ? {} : { extension }) }
      }
      if (lower[urn.length] === ':') return this.#within(namespace.attributes, lower.slice(urn.length + 1))
    }
    return undefined
  }

  /** Undefined when the name is unknown or names a whole schema. */
  resolveAttribute(name: string): AttributePath | undefined {
    const resolved = this.resolve(name)
    return resolved?.kind === 'attribute' ? resolved : undefined
  }

  #within(attributes: ReadonlyMap<string, AttributeRef>, lower: string): ResolvedName | undefined {
    const dot = lower.indexOf('.')
    const ref = attributes.get(dot < 0 ? lower : lower.slice(0, dot))
    if (ref === undefined) return undefined
    if (dot < 0) return { kind: 'attribute', ...ref }
    const sub = this.subAttribute(ref.attribute, lower.slice(dot + 1))
    return sub === undefined ? undefined : { kind: 'attribute', ...ref, sub }
  }
}
