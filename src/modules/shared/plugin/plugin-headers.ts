import { isForbiddenKey, type JsonValue } from '#kernel/json.ts'
import { validateHeaderName, validateHeaderValue } from '#kernel/node-http.ts'
import type { PluginAnswerReader } from '#modules/shared/plugin/plugin-answer.ts'

/** What the server alone decides, since it says where an answer ends. */
const reserved: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const maxHeaders = 64
const maxCharacters = 16 * 1024

/** Headers that a plug-in answered, with names in lower case. Throws for what would not be one header of the answer. */
export function readHeaders(
  value: JsonValue | undefined,
  reader: PluginAnswerReader,
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = Object.create(null)
  if (value === undefined || value === null) return headers
  let count = 0
  let characters = 0
  for (const [given, content] of Object.entries(reader.object(value, 'headers'))) {
    const name = given.toLowerCase()
    if (reserved.has(name) || isForbiddenKey(name)) throw reader.malformed(`the header "${given}" cannot be set`)
    if (Object.hasOwn(headers, name)) throw reader.malformed(`the header "${given}" is there twice`)
    const values = typeof content === 'string' ? [content] : reader.texts(content, `headers.${given}`)
    for (const one of values) {
      if (!isHeader(name, one)) throw reader.malformed(`the header "${given}" has a name or value that is not allowed`)
      characters += name.length + one.length
    }
    count += values.length
    if (count > maxHeaders || characters > maxCharacters) throw reader.malformed('there are too many headers')
    headers[name] = typeof content === 'string' ? content : values
  }
  return headers
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
