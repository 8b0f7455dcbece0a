import { readPositional } from '#adapters/mappers/shared/mapper-parameters.ts'
import type { MappingSource } from '#identity/mapping/mapped-value.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { compileJsonPath, type JsonPath } from '#kernel/text/json-path.ts'
import { defineMapper } from '#sdk/mapper/mapper-module.ts'

/** The values that a JSON path finds in an attribute, as texts. */
export default defineMapper({
  className: 'mappers.JsonPathMapping',
  aliases: ['com.tremolosecurity.mappers.JsonPathMapping'],
  prepare: ([name = '', ...path], at, issues) => {
    // A path may contain commas, so everything after the attribute is the path.
    const given = readPositional(['attribute', 'path'], [name, path.join(',')], at, issues)
    if (given === undefined) return undefined
    const [attribute, text] = given
    let query: JsonPath
    try {
      query = compileJsonPath(text)
    } catch (error) {
      issues.error(at, `the JSON path "${text}" does not parse: ${error instanceof Error ? error.message : error}`)
      return undefined
    }
    const parts = partsIn(text)
    return {
      reads: [attribute],
      ...(parts && { parts }),
      create: () => ({ map: (source) => find(query, documentsOf(source, attribute), attribute) }),
    }
  },
})

/** `$.part`, `$[*].part` and `$[?@.other == 'x'].part` read these parts of an object or of its elements; any other path may read all. */
function partsIn(path: string): string[] | undefined {
  const [, condition = '', part = ''] =
    /^\$?(?:\[(?:\*|-?\d+|\?([^[\]]*))\])?\.?([A-Za-z$][\w$-]*)$/.exec(path.trim()) ?? []
  if (part === '') return undefined
  const compared = Array.from(condition.matchAll(/@\.([A-Za-z$][\w$-]*)/g), ([, name = '']) => name)
  return /@(?!\.[A-Za-z$])/.test(condition) ? undefined : [part, ...compared]
}

function find(query: JsonPath, documents: readonly JsonValue[], attribute: string): readonly string[] {
  try {
    return documents.flatMap(query).flatMap(toText)
  } catch (error) {
    throw new GatewayError('BAD_REQUEST', `the value of "${attribute}" is too complex for its JSON path`, {
      cause: error,
    })
  }
}

/** The attribute's JSON if the source has it, else each value that is JSON text. */
function documentsOf(source: MappingSource, attribute: string): readonly JsonValue[] {
  if (source.json !== undefined) {
    const document = source.json(attribute)
    return document === undefined ? [] : [document]
  }
  return source.values(attribute).flatMap((text) => {
    try {
      return [JSON.parse(text) as JsonValue]
    } catch {
      return []
    }
  })
}

function toText(value: JsonValue): readonly string[] {
  if (value === null) return []
  if (typeof value === 'string') return [value]
  return [typeof value === 'object' ? JSON.stringify(value) : String(value)]
}
