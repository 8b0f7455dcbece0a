import { type FilterFunction, FunctionExpressionType, JSONPathEnvironment, type JSONValue } from 'json-p3'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import { compilePattern, type SafePattern } from './safe-pattern.ts'

/** Returns the values that a path finds, in order. */
export type JsonPath = (document: JsonValue) => readonly JsonValue[]

/**
 * Compiles an RFC 9535 query; throws an Error with the reason. A path without `$` starts at the root, as in older
 * dialects. The two forms that nearly every configuration uses skip the general implementation.
 */
export function compileJsonPath(text: string): JsonPath {
  const path = text.startsWith('$') ? text : text.startsWith('[') ? `$${text}` : `$.${text}`
  const query = environment.compile(path)
  const [, wildcard, name] = /^\$(\[\*\])?\.([A-Za-z_][A-Za-z0-9_]*)$/.exec(path) ?? []
  if (name !== undefined) {
    return wildcard === undefined
      ? (document) => memberOf(document, name)
      : (document) => childrenOf(document).flatMap((child) => memberOf(child, name))
  }
  return (document) => query.query(document as JSONValue).values() as JsonValue[]
}

const nothing: readonly JsonValue[] = []

function memberOf(value: JsonValue, name: string): readonly JsonValue[] {
  if (!isJsonObject(value) || !Object.hasOwn(value, name)) return nothing
  const member = value[name]
  return member === undefined ? nothing : [member]
}

function childrenOf(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value
  return isJsonObject(value) ? Object.values(value) : nothing
}

/** `match` and `search` in linear time, since their texts come from outside. */
function patternFunction(test: (text: string, pattern: string) => boolean): FilterFunction {
  return {
    argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
    returnType: FunctionExpressionType.LogicalType,
    call: (text: unknown, pattern: unknown) =>
      typeof text === 'string' && typeof pattern === 'string' && test(text, pattern),
  }
}

const maxPatterns = 100
const patterns = new Map<string, SafePattern | undefined>()

/** Undefined for an invalid pattern; RFC 9535 lets that match nothing. */
function patternOf(source: string): SafePattern | undefined {
  if (patterns.has(source)) return patterns.get(source)
  let pattern: SafePattern | undefined
  try {
    pattern = compilePattern(source)
  } catch {
    pattern = undefined
  }
  if (patterns.size >= maxPatterns) patterns.clear()
  patterns.set(source, pattern)
  return pattern
}

const environment = new JSONPathEnvironment()
environment.functionRegister.set(
  'match',
  patternFunction((text, pattern) => patternOf(pattern)?.matches(text) ?? false),
)
environment.functionRegister.set(
  'search',
  patternFunction((text, pattern) => patternOf(`(?s:.*?)(?:${pattern})`)?.matchesStart(text) ?? false),
)
