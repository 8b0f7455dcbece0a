import { parseDocument } from 'yaml'
import type { Issues } from '#kernel/issues.ts'
import type { JsonValue } from '#kernel/json.ts'
import { extendResourceSchema, type ReportProblem, readSchema } from '#protocols/scim/read-schema.ts'
import type { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import type { Schema, SchemaAttribute } from '#protocols/scim/schema.ts'
import type { Params } from '#sdk/params.ts'

const maxLength = 256 * 1024

/**
 * The base with the schemas that the parameter declares, each as JSON or YAML text. One with the id of the core schema or
 * of an extension that is there adds attributes to it; any other is an extension. What is wrong is reported at the
 * parameter, and left out.
 */
export function readSchemas(params: Params, name: string, base: ResourceSchema, issues: Issues): ResourceSchema {
  let schema = base
  for (const [i, text] of params.values(name).entries()) {
    if (text === '') continue
    const at = params.pathOf(name, i)
    const report: ReportProblem = (path, message) => {
      issues.error(at, `"${name}": ${path.length === 0 ? message : `${path.join('.')}: ${message}`}`)
    }
    const declared = readText(text, report)
    if (declared === undefined) continue
    const promised = declared.attributes.filter(isUnique)
    for (const { name: attribute } of promised) {
      issues.warning(at, `"${name}": values of "${attribute}" are not kept unique; its "uniqueness" is told as none`)
    }
    const kept = { ...declared, attributes: declared.attributes.map(notUnique) }
    schema = extendResourceSchema(schema, [kept], ([, ...path], message) => report(path, message))
  }
  return schema
}

/** Only a target could promise it, and none is asked to. */
const isUnique = ({ uniqueness, subAttributes }: SchemaAttribute): boolean =>
  uniqueness !== 'none' || subAttributes.some(isUnique)

const notUnique = (attribute: SchemaAttribute): SchemaAttribute => ({
  ...attribute,
  uniqueness: 'none',
  subAttributes: attribute.subAttributes.map(notUnique),
})

function readText(text: string, report: ReportProblem): Schema | undefined {
  if (text.length > maxLength) {
    report([], `the schema is longer than ${maxLength} characters`)
    return undefined
  }
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: true, version: '1.2' })
  const [problem] = document.errors
  if (problem !== undefined) {
    report([], `the schema is neither JSON nor YAML: ${problem.message}`)
    return undefined
  }
  return readSchema(plainValue(document), report)
}

/** Null, which is no schema, for a text that unfolds beyond all measure. */
function plainValue(document: ReturnType<typeof parseDocument>): JsonValue {
  try {
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return null
  }
}
