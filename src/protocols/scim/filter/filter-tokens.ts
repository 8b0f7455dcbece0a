import { quoted, type ScimErrorType, scimError } from '#protocols/scim/scim-error.ts'

export type Token =
  | { readonly kind: '(' | ')' | '[' | ']' }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }

/** The text in parts. Throws when a string is not closed or not JSON. */
export function tokenize(text: string, errorType: ScimErrorType): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const char = text[at] ?? ''
    if (char === ' ' || char === '\t') {
      at++
    } else if (char === '(' || char === ')' || char === '[' || char === ']') {
      tokens.push({ kind: char })
      at++
    } else if (char === '"') {
      const end = stringEnd(text, at)
      if (end < 0) throw scimError(errorType, `A string is not closed: ${quoted(text.slice(at))}.`)
      tokens.push({ kind: 'string', value: readString(text.slice(at, end), errorType) })
      at = end
    } else {
      const start = at
      while (at < text.length && !isDelimiter(text[at] ?? '')) at++
      tokens.push({ kind: 'word', text: text.slice(start, at) })
    }
  }
  return tokens
}

const isDelimiter = (char: string): boolean => ' \t()[]"'.includes(char)

/** The position behind the closing quote; -1 without one. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
  return -1
}

function readString(literal: string, errorType: ScimErrorType): string {
  try {
    return String(JSON.parse(literal))
  } catch (cause) {
    throw scimError(errorType, `Not a JSON string: ${quoted(literal)}.`, { cause })
  }
}
