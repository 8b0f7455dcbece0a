import { GatewayError } from '#kernel/errors.ts'
import { httpLimits } from '#server/http-limits.ts'

const bad = (detail: string): GatewayError =>
  new GatewayError('BAD_REQUEST', detail, { publicText: 'The address of the request is malformed.' })

/**
 * A request's path in the one form that URLs are matched on (RFC 3986 6.2.2): escapes of unreserved characters are
 * decoded and the others upper-cased. Broken escapes, dot segments, control characters and back-slashes are refused,
 * so that no two spellings of a path can be taken for different things by different parts.
 */
export function normalizePath(raw: string): string {
  if (raw.length > httpLimits.pathCharacters) throw new GatewayError('URI_TOO_LONG', `path of ${raw.length} characters`)
  if (!raw.startsWith('/')) throw bad('the path does not start with a slash')
  const path = raw.includes('%') ? decodeUnreserved(raw) : raw
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (/[\x00-\x20\x7f\\]/.test(path)) throw bad('the path has a character that must be escaped')
  if (path.includes('/.') && /\/\.\.?(?:\/|$)/.test(path)) throw bad('the path has a dot segment')
  return path
}

/** Of a path that normalizePath refuses: the whole segments before the first doubtful one. */
export function soundBeginning(raw: string): string {
  const sound = /^(?:\/[\w~!$&'()*+,;=:@-][\w.~!$&'()*+,;=:@-]*)*(?=[/?]|$)/.exec(
    raw.slice(0, httpLimits.pathCharacters),
  )
  return sound?.[0] ?? ''
}

function decodeUnreserved(raw: string): string {
  if (/%(?![0-9a-fA-F]{2})/.test(raw)) throw bad('the path has a broken escape')
  const path = raw.replace(/%[0-9a-fA-F]{2}/g, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase()
  })
  if (path.includes('%00')) throw bad('the path has a NUL character')
  try {
    decodeURIComponent(path)
  } catch (cause) {
    throw new GatewayError('BAD_REQUEST', 'the path is not UTF-8', { cause })
  }
  return path
}
