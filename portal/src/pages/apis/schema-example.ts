import { type ApiDocument, type Json, list, member, record, text } from './api-document.ts'
import { alternativesOf, resolved } from './schema-tree.ts'

type Schemas = ApiDocument['schemas']

const maxDepth = 6
const maxMembers = 400

/** A value that fits the schema, made of its examples and types. With `brief`, without optional members. */
export function schemaExample(schema: Json, schemas: Schemas, { brief = false } = {}): Json {
  let members = 0
  const exampleOf = (given: Json, path: readonly string[], depth: number): Json => {
    const { schema: whole, name } = resolved(given, schemas)
    const [example] = list(member(whole, 'examples'))
    for (const known of [example, member(whole, 'const'), member(whole, 'default'), list(member(whole, 'enum'))[0]]) {
      if (known !== undefined) return known
    }
    if (depth > maxDepth || members > maxMembers || (name !== undefined && path.includes(name))) return emptyOf(whole)
    const within = name === undefined ? path : [...path, name]
    const [alternative] = alternativesOf(whole).filter((one) => member(one, 'type') !== 'null')
    if (alternative !== undefined) return exampleOf(alternative, within, depth + 1)
    if (member(whole, 'type') === 'array') return [exampleOf(member(whole, 'items'), within, depth + 1)]
    const properties = Object.entries(record(member(whole, 'properties')))
    if (properties.length === 0) return emptyOf(whole)
    const required = list(member(whole, 'required'))
    const shown = properties.filter(([property]) => !brief || required.includes(property))
    members += shown.length
    return Object.fromEntries(shown.map(([property, one]) => [property, exampleOf(one, within, depth + 1)]))
  }
  return exampleOf(schema, [], 0)
}

function emptyOf(schema: Json): Json {
  const given = member(schema, 'type')
  const type = Array.isArray(given) ? given[0] : given
  switch (text(type)) {
    case 'string':
      return member(schema, 'format') === 'date-time' ? '2030-12-31T12:00:00Z' : 'string'
    case 'integer':
    case 'number': {
      const minimum = member(schema, 'minimum')
      return typeof minimum === 'number' ? minimum : 0
    }
    case 'boolean':
      return true
    case 'array':
      return []
    case 'null':
      return null
    default:
      return {}
  }
}
