import { type ApiDocument, type Json, list, member, record, text } from './api-document.ts'

/** A schema as a tree of its members. */
export interface SchemaNode {
  /** Such as `string`, `Approval[]` or `string | null`. */
  readonly type: string
  readonly description: string
  /** Such as `maxLength: 80`. */
  readonly limits: readonly string[]
  readonly members: readonly SchemaMember[]
  /** It has members that are not listed: the schema contains itself, or is too deep or too large. */
  readonly isCut: boolean
}

export interface SchemaMember {
  /** The property; of an alternative, its number. */
  readonly name: string
  readonly kind: 'property' | 'any name' | 'alternative'
  readonly required: boolean
  readonly node: SchemaNode
}

type Schemas = ApiDocument['schemas']

const maxDepth = 6
const maxNodes = 600
const limitNames = [
  'format',
  'const',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'default',
]

/** Reads a schema; references are resolved, each once on the way from the root. */
export const schemaTree = (schema: Json, schemas: Schemas): SchemaNode => new Reader(schemas).node(schema, [])

class Reader {
  readonly #schemas: Schemas
  #nodes = 0

  constructor(schemas: Schemas) {
    this.#schemas = schemas
  }

  /** `path` are the references from the root to this schema. */
  node(schema: Json, path: readonly string[], depth = 0): SchemaNode {
    this.#nodes++
    const { schema: whole, name, description } = resolved(schema, this.#schemas)
    const within = name === undefined ? path : [...path, name]
    const isLoop = name !== undefined && path.includes(name)
    const isArray = member(whole, 'type') === 'array' || member(whole, 'items') !== undefined
    const base = { description: description || text(member(whole, 'description')), limits: limitsOf(whole) }
    if (isArray) {
      const item = this.node(member(whole, 'items'), within, depth)
      const type = item.type.includes(' ') ? `(${item.type})[]` : `${item.type}[]`
      return { ...item, ...base, limits: [...base.limits, ...item.limits], type }
    }
    const alternatives = alternativesOf(whole)
    const some = alternatives.filter((one) => member(one, 'type') !== 'null')
    const [only] = some
    if (only !== undefined && some.length === 1) {
      const one = this.node(only, within, depth)
      const type = alternatives.length > 1 ? `${one.type} | null` : one.type
      return { ...one, type, description: base.description || one.description }
    }
    const type = name ?? typeOf(whole, this.#schemas)
    const membersOf = (): readonly SchemaMember[] =>
      some.length > 0 && some.some((one) => hasMembers(resolved(one, this.#schemas).schema))
        ? some.map((one, i) => this.#member(String(i + 1), 'alternative', one, within, depth))
        : this.#properties(whole, within, depth)
    if (!isLoop && depth < maxDepth && this.#nodes < maxNodes) {
      return { ...base, type, members: membersOf(), isCut: false }
    }
    return { ...base, type, members: [], isCut: hasMembers(whole) || some.length > 0 }
  }

  #properties(schema: Json, path: readonly string[], depth: number): readonly SchemaMember[] {
    const required = list(member(schema, 'required'))
    const properties = Object.entries(record(member(schema, 'properties'))).map(([name, one]) =>
      this.#member(name, 'property', one, path, depth, required.includes(name)),
    )
    const others = member(schema, 'additionalProperties')
    return Object.keys(record(others)).length === 0
      ? properties
      : [...properties, this.#member('*', 'any name', others, path, depth)]
  }

  #member(
    name: string,
    kind: SchemaMember['kind'],
    schema: Json,
    path: readonly string[],
    depth: number,
    required = false,
  ): SchemaMember {
    return { name, kind, required, node: this.node(schema, path, depth + 1) }
  }
}

const refStart = '#/components/schemas/'
const maxReferences = 20

/** The schema behind references, with the name of the last and a description that is beside the first. */
export function resolved(schema: Json, schemas: Schemas): { schema: Json; name?: string; description: string } {
  let current = schema
  let name: string | undefined
  const description = member(schema, '$ref') === undefined ? '' : text(member(schema, 'description'))
  for (let i = 0; i < maxReferences; i++) {
    const ref = text(member(current, '$ref'))
    if (!ref.startsWith(refStart)) return { schema: current, description, ...(name === undefined ? {} : { name }) }
    name = ref.slice(refStart.length)
    current = member(schemas, name)
  }
  return { schema: undefined, description, ...(name === undefined ? {} : { name }) }
}

export const alternativesOf = (schema: Json): readonly Json[] => [
  ...list(member(schema, 'anyOf')),
  ...list(member(schema, 'oneOf')),
]

const hasMembers = (schema: Json): boolean =>
  Object.keys(record(member(schema, 'properties'))).length > 0 ||
  Object.keys(record(member(schema, 'additionalProperties'))).length > 0

/** The type of a schema that has no name. */
function typeOf(schema: Json, schemas: Schemas): string {
  const alternatives = alternativesOf(schema)
  if (alternatives.length > 0) {
    const types = alternatives.map((one) => {
      const { schema: whole, name } = resolved(one, schemas)
      return name ?? (text(member(whole, 'type')) || 'any')
    })
    return [...new Set(types)].join(' | ')
  }
  const values = list(member(schema, 'enum'))
  if (values.length > 0) return values.map((one) => JSON.stringify(one)).join(' | ')
  const type = member(schema, 'type')
  return Array.isArray(type) ? type.map(text).join(' | ') : text(type) || 'any'
}

const limitsOf = (schema: Json): readonly string[] =>
  limitNames.flatMap((name) => {
    const value = member(schema, name)
    if (value === undefined || (name === 'minLength' && value === 0)) return []
    return [`${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`]
  })
