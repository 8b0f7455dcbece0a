import { isLoopbackHost } from './address.ts'

/** Shorter values are replaced only where they are quoted as a whole. */
const shortestWord = 6
/** Shorter values are words and numbers that messages have anyway. */
const shortestQuoted = 4
const flags: ReadonlySet<string> = new Set(['true', 'false'])
/** From this length on, a value is also found within a longer word. */
const shortestPart = 16
/** From this length on, a value that a message cuts off is found by its first half. */
const shortestCut = 24
/** A message has no more of a value. */
const longestPiece = 1_000
const mostLines = 200
const mostValues = 5_000

/** It replaced a value before. */
const placeholder = '#\\[[\\w.-]+\\]'
/** Where a word begins, also after an escaped character. */
const wordStart = '(?:(?<![a-z0-9])|(?<=%[0-9a-f]{2}|\\\\[bfnrt]|\\\\u[0-9a-f]{4}))'

/**
 * Values of secrets and of the environment, with the text that people see instead. They are found in upper and lower
 * case, as parts of the names of variables, URL-encoded, JSON-escaped and in base64.
 */
export class SecretValues {
  readonly #shown = new Map<string, string>()
  #compiled: { readonly pattern: RegExp; readonly shown: readonly string[] } | undefined

  /** The first text that is given for a value counts. */
  add(value: string, shown: string): void {
    const known = this.#shown.get(value)
    // Values in use are the newest, so that only those of old configurations are forgotten.
    this.#shown.delete(value)
    this.#shown.set(value, known ?? shown)
    if (known !== undefined) return
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > mostValues && oldest !== undefined) this.#shown.delete(oldest)
    this.#compiled = undefined
  }

  /** Whether the value is found anywhere; very short ones are not. */
  hides(value: string): boolean {
    return piecesOf(value).length > 0
  }

  /** The text with what is shown instead of each value. */
  without(text: string): string {
    if (this.#shown.size === 0) return text
    this.#compiled ??= compile(this.#shown)
    const { pattern, shown } = this.#compiled
    return text.replace(pattern, (found, ...groups: unknown[]) => {
      return shown[groups.findIndex((group) => group !== undefined)] ?? found
    })
  }
}

function compile(values: ReadonlyMap<string, string>): { pattern: RegExp; shown: readonly string[] } {
  const pieces = Array.from(values, ([value, shown]) => piecesOf(value).map((piece) => [piece, shown] as const))
    .flat()
    .sort(([a], [b]) => b.length - a.length)
  const patterns = pieces.map(([piece]) => `(${piecePattern(piece)})`)
  return {
    pattern: new RegExp([placeholder, ...patterns].join('|'), 'gi'),
    shown: pieces.map(([, shown]) => shown),
  }
}

/** The value and the parts of it that messages of other systems quote: lines of a key, and the host and credentials of an address. */
function piecesOf(value: string): string[] {
  const lines = value.trim().split(/[\r\n]+/, mostLines)
  if (lines.length > 1) return lines.filter((line) => line.length >= shortestPart && !line.startsWith('-----'))
  const { hostname = '', username = '', password = '', pathname = '', search = '' } = URL.parse(value) ?? {}
  const credentials = [username, password].filter((part) => part.length >= shortestWord)
  const path = hostname === '' || pathname.length + search.length < shortestPart ? [] : [`${pathname}${search}`]
  return [...lines, hostname, ...credentials, ...path].filter(
    (piece) => piece.length >= shortestQuoted && !flags.has(piece.toLowerCase()) && !isLoopbackHost(piece),
  )
}

function piecePattern(piece: string): string {
  const chars = Array.from(piece.toWellFormed())
  const whole = formsOf(chars.slice(0, longestPiece))
  if (piece.length < shortestWord) return `(?<=["'\`])${whole}(?=["'\`])`
  const encoded = base64Forms(piece)
  if (piece.length < shortestPart) return [wordPattern(piece, whole), ...encoded].join('|')
  if (piece.length < shortestCut) return [whole, ...encoded].join('|')
  const half = Math.min(chars.length, longestPiece) >> 1
  const start = formsOf(chars.slice(0, half))
  const rest = formsOf(chars.slice(half, longestPiece))
  return [`${start}(?:${rest}|[^\\s"'\`…]*(?=["'\`…]|$))`, ...encoded].join('|')
}

/** A value that isn't a part of a longer word. */
function wordPattern(value: string, forms: string): string {
  const start = /^[a-z0-9]/i.test(value) ? wordStart : ''
  return `${start}${forms}${/[a-z0-9]$/i.test(value) ? '(?![a-z0-9])' : ''}`
}

/** The text with `shown` instead of the value, however short, where that isn't a part of a longer word. */
export function withoutWord(text: string, value: string, shown: string): string {
  const word = wordPattern(value, formsOf(Array.from(value.toWellFormed()).slice(0, longestPiece)))
  return text.replace(new RegExp(`${placeholder}|(${word})`, 'gi'), (found, word?: string) => (word ? shown : found))
}

/** Names of variables have `_` instead of other characters. */
const formsOf = (chars: readonly string[]): string =>
  chars
    .map((char) => {
      if (/^[a-z0-9]$/i.test(char)) return char
      const escaped = JSON.stringify(char).slice(1, -1)
      const forms = new Set([char, '_', encodeURIComponent(char), escaped, ...(char === ' ' ? ['+'] : [])])
      return `(?:${Array.from(forms, RegExp.escape).join('|')})`
    })
    .join('')

/** The characters in which the value alone decides, whatever is encoded before and after it. */
const base64Forms = (text: string): string[] =>
  [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(text.slice(0, longestPiece))])
    const encoded = bytes.toString('base64').slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6))
    return encoded.replaceAll('+', '[+-]').replaceAll('/', '[/_]')
  })

const inUse = new Set<SecretValues>()

/** Keeps the values out of every error, log line and diagnosis of this process, until the returned function is called. */
export function hideSecrets(values: SecretValues): () => void {
  inUse.add(values)
  return () => inUse.delete(values)
}

/** The text with the names of all values that this process must not show. */
export function withoutSecrets(text: string): string {
  let shown = text
  for (const values of inUse) shown = values.without(shown)
  return shown
}

/** What an error says, for a place that people read. */
export const shownReason = (error: unknown): string =>
  withoutSecrets(error instanceof Error ? error.message : String(error))
