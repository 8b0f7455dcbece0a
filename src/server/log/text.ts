import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { LogLevel } from '#kernel/logger.ts'

const levels = new Map([
  ['debug', ['DEBUG', '\u001b[36m']],
  ['info', ['INFO ', '\u001b[32m']],
  ['warn', ['WARN ', '\u001b[33m']],
  ['error', ['ERROR', '\u001b[31m']],
] as const satisfies [string, readonly [word: string, color: string]][])
const [dim, reset] = ['\u001b[2m', '\u001b[0m']
const maxValue = 300
const maxFields = 20

/** Colors are for terminals that support them, unless the user does not want any (no-color.org). */
export const hasColors = (environment: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean =>
  isTerminal && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb'

/**
 * A JSON line of the log as short lines for a person. Nothing from a caller can move the cursor, change colors or begin a
 * line: control and format characters are written as `\u001b`.
 */
export function logText(line: string, colored: boolean): string {
  const paint = (text: string, color: string): string => (colored && text !== '' ? `${color}${text}${reset}` : text)
  let entry: JsonValue
  try {
    entry = JSON.parse(line)
  } catch {
    return `${safe(line.trimEnd())}\n`
  }
  if (!isJsonObject(entry)) return `${safe(line.trimEnd())}\n`
  const { level, time, msg, ...fields } = entry
  const [word, color] = levels.get(String(level) as LogLevel) ?? ['INFO ', '']
  const [summary, rest] = isRequest(fields) ? requestText(msg, fields) : [plain(msg ?? ''), fields]
  const shown = Object.entries(rest).slice(0, maxFields)
  const details = shown.map(([name, value]) => `${safe(name)}=${valueText(value)}`).join(' ')
  const parts = [paint(clock(time), dim), paint(word, color), summary, paint(details, dim)]
  const stacks = level === 'error' ? Object.values(rest).flatMap(stackLines) : []
  return `${[parts.filter((part) => part !== '').join(' '), ...stacks.map((one) => paint(one, dim))].join('\n')}\n`
}

function clock(time: JsonValue | undefined): string {
  const at = new Date(typeof time === 'string' ? time : Number.NaN)
  if (Number.isNaN(at.getTime())) return '--:--:--'
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

const isRequest = ({ method, path, status, ms }: JsonObject): boolean =>
  method !== undefined && path !== undefined && status !== undefined && ms !== undefined

/** `GET 200 host/path (3 ms)`, after the message if it says more than that, and the other fields. */
function requestText(
  msg: JsonValue | undefined,
  { method, host, path, status, ms, requestId, ...rest }: JsonObject,
): [string, JsonObject] {
  const text = [method, status, `${String(host ?? '')}${String(path ?? '')}`].map((part) => plain(part ?? '')).join(' ')
  const before = msg === 'request' ? '' : `${plain(msg ?? '')}: `
  return [`${before}${text} (${Math.round(Number(ms))} ms)`, { ...rest, requestId: requestId ?? null }]
}

function valueText(value: JsonValue): string {
  if (isError(value)) return quoted(errorText(value))
  return typeof value === 'string' ? quoted(value) : plain(value)
}

const quoted = (text: string): string =>
  /^[\w.:/@,+-]+$/.test(text) ? plain(text) : `"${plain(text.replace(/["\\]/g, '\\$&'))}"`

function plain(value: JsonValue): string {
  const text = safe(typeof value === 'string' ? value : JSON.stringify(value))
  return text.length <= maxValue ? text : `${text.slice(0, maxValue - 1)}…`
}

const safe = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (char) => {
    const code = (char.codePointAt(0) ?? 0).toString(16)
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`
  })

const isError = (value: JsonValue | undefined): value is JsonObject =>
  isJsonObject(value) && typeof value['type'] === 'string' && typeof value['message'] === 'string'

function errorText({ type, message, cause }: JsonObject): string {
  const own = `${String(type)}: ${String(message)}`
  return isError(cause) ? `${own}, because of ${errorText(cause)}` : own
}

const maxFrames = 12

/** The frames of an error; its message, which may have line breaks, is in the first line. */
function stackLines(value: JsonValue): string[] {
  if (!isError(value) || typeof value['stack'] !== 'string') return []
  return value['stack']
    .split('\n')
    .filter((line) => line.startsWith('    at '))
    .slice(0, maxFrames)
    .map((line) => safe(line))
}
