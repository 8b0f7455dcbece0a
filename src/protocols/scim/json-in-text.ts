import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/** Longer texts are no one's complex value. */
const maxLength = 65_536

/** The JSON object that a text holds, as some clients send complex values; undefined when it holds none. */
export function jsonInText(text: string): JsonObject | undefined {
  if (text.length > maxLength || !/^\s*\{/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
