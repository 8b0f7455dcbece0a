import { parseDocument } from 'yaml'
import type { Issues } from '#kernel/issues.ts'
import type { JsonValue } from '#kernel/json.ts'
import { readSchema } from '#protocols/scim/read-schema.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema } from '#protocols/scim/schema.ts'
import type { Params } from '#sdk/params.ts'

const maxLength = 256 * 1024

/**
 * The base with the schemas that the parameter declares, each as JSON or YAML text. One with the id of the core schema
 * adds attributes to it; any other is an extension. What is wrong is reported at the parameter, and left out.
 */
export function readSchemas(params: Params, name: string, base: ResourceSchema, issues: Issues): ResourceSchema {
  let schema = base
  for (const [i, text] of params.values(name).entries()) {
    if (text === '') continue
    const report = (message: string): void => issues.error(params.pathOf(name, i), `"${name}": ${message}`)
    const declared = readText(text, report)
    if (declared !== undefined) schema = withSchema(schema, declared, report)
  }
  return schema
}

function readText(text: string, report: (message: string) => void): Schema | undefined {
  if (text.length > maxLength) {
    report(`the schema is longer than ${maxLength} characters`)
    return undefined
  }
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: true, version: '1.2' })
  const [problem] = document.errors
  if (problem !== undefined) {
    report(`the schema is neither JSON nor YAML: ${problem.message}`)
    return undefined
  }
  return readSchema(plainValue(document), (path, message) =>
    report(path.length === 0 ? message : `${path.join('.')}: ${message}`),
  )
}

/** Null, which is no schema, for a text that unfolds beyond all measure. */
function plainValue(document: ReturnType<typeof parseDocument>): JsonValue {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return null
  }
}

function withSchema(base: ResourceSchema, declared: Schema, report: (message: string) => void): ResourceSchema {
  const { core, extensions } = base
  const id = declared.id.toLowerCase()
  if (id !== core.id.toLowerCase()) {
    const known = extensions.find((extension) => extension.id.toLowerCase() === id)
    if (known === undefined) return new ResourceSchema(core, [...extensions, declared])
    report(`there is a schema "${known.id}" already`)
    return base
  }
  const taken = declared.attributes.filter(({ name }) => base.resolveAttribute(`${core.id}:${name}`) !== undefined)
  for (const { name } of taken) report(`the core schema has an attribute "${name}" already`)
  const added = declared.attributes.filter((attribute) => !taken.includes(attribute))
  return new ResourceSchema({ ...core, attributes: [...core.attributes, ...added] }, extensions)
}
