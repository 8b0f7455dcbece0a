export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The body of a response. A shell that prints it begins its next line after it. */
export const jsonBody = (value: unknown): string => `${JSON.stringify(value)}\n`

const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype'])

/** True for property names that reach JavaScript's own properties. Input must not use them as names. */
export const isForbiddenKey = (name: string): boolean => forbiddenKeys.has(name)

/** For `JSON.stringify`: the same text for values that differ only in the order of their keys. */
export function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
