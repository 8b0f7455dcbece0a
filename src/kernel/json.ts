export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype'])

/** True for property names that reach into JavaScript's own machinery; they are refused wherever input names a property. */
export const isForbiddenKey = (name: string): boolean => forbiddenKeys.has(name)
