import type { Schema, SchemaAttribute } from './schema.ts'
import { commonAttributes } from './standard-schemas.ts'

/** A top-level attribute, in the resource itself or in the object of an extension. */
export interface AttributeRef {
  readonly attribute: SchemaAttribute
  readonly extension?: string | undefined
}

export interface AttributePath extends AttributeRef {
  readonly sub?: SchemaAttribute
}

/** `urn`, `urn:attribute`, `attribute` or either with `.sub`, in any letter case. */
type ResolvedName =
  | { readonly kind: 'schema'; readonly schema: Schema; readonly extension?: string | undefined }
  | ({ readonly kind: 'attribute' } & AttributePath)

interface Namespace {
  readonly urn: string
  readonly schema: Schema
  readonly extension?: string | undefined
  readonly attributes: ReadonlyMap<string, AttributeRef>
  /** A known misspelling of another namespace's URN. */
  readonly mistyped: boolean
}

/** A resource type's core schema and extensions, compiled for look-up by name. */
export class ResourceSchema {
  readonly core: Schema
  readonly extensions: readonly Schema[]
  readonly #refs: AttributeRef[] = []
  readonly #own = new Map<string, AttributeRef>()
  readonly #unqualified = new Map<string, AttributeRef>()
  readonly #subAttributes = new Map<SchemaAttribute, ReadonlyMap<string, SchemaAttribute>>()
  readonly #elements = new Map<SchemaAttribute, SchemaAttribute>()
  /** The longest URN first, since one can be the beginning of another. */
  readonly #namespaces: readonly Namespace[]

  constructor(core: Schema, extensions: readonly Schema[] = []) {
    this.core = core
    this.extensions = extensions
    const namespaces = [
      this.#namespace(core, undefined, [...commonAttributes, ...core.attributes]),
      ...extensions.map((extension) => this.#namespace(extension, extension.id, extension.attributes)),
    ]
    const known = new Set(namespaces.map(({ urn }) => urn))
    const mistyped = namespaces
      .map((namespace) => ({ ...namespace, urn: withoutLastColon(namespace.urn), mistyped: true }))
      .filter(({ urn }) => !known.has(urn))
    this.#namespaces = [...namespaces, ...mistyped].sort((a, b) => b.urn.length - a.urn.length)
  }

  #namespace(schema: Schema, extension: string | undefined, list: readonly SchemaAttribute[]): Namespace {
    const attributes = extension === undefined ? this.#own : new Map<string, AttributeRef>()
    for (const attribute of list) {
      const ref = extension === undefined ? { attribute } : { attribute, extension }
      const key = attribute.name.toLowerCase()
      attributes.set(key, ref)
      this.#refs.push(ref)
      // Clients leave the URN out; the core schema, then earlier extensions, take precedence.
      if (!this.#unqualified.has(key)) this.#unqualified.set(key, ref)
      const subs = attribute.subAttributes.map((sub) => [sub.name.toLowerCase(), sub] as const)
      this.#subAttributes.set(attribute, new Map(subs))
      if (attribute.type !== 'complex')
        this.#elements.set(attribute, { ...attribute, name: 'value', multiValued: false })
    }
    const urn = schema.id.toLowerCase()
    return { urn, schema, attributes, mistyped: false, extension }
  }

  /** Every top-level attribute, including the common ones. */
  attributes(): Iterable<AttributeRef> {
    return this.#refs
  }

  subAttribute(attribute: SchemaAttribute, name: string): SchemaAttribute | undefined {
    return this.#subAttributes.get(attribute)?.get(name.toLowerCase())
  }

  /** The attribute of a name inside `attribute[...]`: a sub-attribute, or `value` for the elements of a list of plain values. */
  elementAttribute(attribute: SchemaAttribute, name: string): SchemaAttribute | undefined {
    if (attribute.type === 'complex') return this.subAttribute(attribute, name)
    return attribute.multiValued && name.toLowerCase() === 'value' ? this.#elements.get(attribute) : undefined
  }

  /**
   * Undefined for an unknown name. With `strict`, attributes of extensions need their exact URN (RFC 7644 3.10).
   */
  resolve(name: string, strict = false): ResolvedName | undefined {
    const lower = name.toLowerCase()
    if (!lower.includes(':')) return this.#within(strict ? this.#own : this.#unqualified, lower)
    for (const { urn, schema, extension, attributes, mistyped } of this.#namespaces) {
      if (!lower.startsWith(urn) || (mistyped && strict)) continue
      if (lower.length === urn.length) {
        return { kind: 'schema', schema, extension }
      }
      const found = lower[urn.length] === ':' ? this.#within(attributes, lower.slice(urn.length + 1)) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Undefined for an unknown name or that of a whole schema. */
  resolveAttribute(name: string, strict = false): AttributePath | undefined {
    const resolved = this.resolve(name, strict)
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

/** `...:enterprise:2.0User`, as in the documentation of one large client. */
const withoutLastColon = (urn: string): string => urn.replace(/:([^:]*)$/, '$1')

/** The internal attribute of the built-in mapping: named as the SCIM attribute is written in a filter. */
export function internalName({ extension, attribute, sub }: AttributePath): string {
  const name = extension === undefined ? attribute.name : `${extension}:${attribute.name}`
  return sub === undefined ? name : `${name}.${sub.name}`
}

/** A key for one attribute or sub-attribute. */
export const pathKey = ({ extension, attribute, sub }: AttributePath): string =>
  `${extension ?? ''}|${attribute.name}|${sub?.name ?? ''}`

/** Whether the path is the core schema's attribute of this name; extensions may have an attribute of the same name. */
export const isCore = ({ extension, attribute }: AttributePath, name: string): boolean =>
  extension === undefined && attribute.name === name
