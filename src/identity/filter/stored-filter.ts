import type { CompareFilter, Filter } from '#identity/filter/ast.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'

/** Deeper than any filter that people write. */
const maxDepth = 100

const comparisons: readonly CompareFilter['kind'][] = [
  'equal',
  'approximate',
  'greaterOrEqual',
  'lessOrEqual',
  'greater',
  'less',
]

/**
 * A filter for storage. RFC 4515 text does not fit: it is limited to what people write, and can't have every
 * attribute name of a token.
 */
export const storeFilter = (filter: Filter): string => JSON.stringify(filter)

/** Undefined for anything else. */
export function restoreFilter(stored: string): Filter | undefined {
  try {
    return read(JSON.parse(stored) as JsonValue, 0)
  } catch {
    return undefined
  }
}

function read(stored: JsonValue | undefined, depth: number): Filter | undefined {
  if (!isJsonObject(stored) || depth > maxDepth) return undefined
  const { kind, attribute, caseExact, value } = stored
  if (kind === 'and' || kind === 'or') {
    const filters = readList(stored['filters'], (one) => read(one, depth + 1))
    return filters && { kind, filters }
  }
  if (kind === 'not') {
    const filter = read(stored['filter'], depth + 1)
    return filter && { kind, filter }
  }
  if (typeof attribute !== 'string') return undefined
  if (kind === 'present') return { kind, attribute }
  const exact = caseExact === undefined ? {} : { caseExact: caseExact === true }
  if (kind === 'substring') {
    const { initial, final } = stored
    const any = readList(stored['any'], (one) => (typeof one === 'string' ? one : undefined))
    return (
      any && {
        kind,
        attribute,
        any,
        ...(typeof initial === 'string' ? { initial } : {}),
        ...(typeof final === 'string' ? { final } : {}),
        ...exact,
      }
    )
  }
  const comparison = comparisons.find((known) => known === kind)
  if (comparison === undefined || typeof value !== 'string') return undefined
  return { kind: comparison, attribute, value, ...exact }
}

function readList<T>(stored: JsonValue | undefined, readOne: (one: JsonValue) => T | undefined): T[] | undefined {
  if (!Array.isArray(stored)) return undefined
  const list = (stored as readonly JsonValue[]).map(readOne)
  return list.every((one) => one !== undefined) ? list : undefined
}
