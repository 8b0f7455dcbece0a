import { type ScimErrorType, scimError } from '#protocols/scim/scim-error.ts'

export type Token =
  | { readonly kind: '(' | ')' | '[' | ']' }
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'string'; readonly value: string }

/** The text in parts. Throws when a string is not closed or not JSON, and tells where, since what it holds may be secret. */
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
      if (end < 0) throw scimError(errorType, `The text that starts at character ${at + 1} has no closing quote.`)
      tokens.push({ kind: 'string', value: readString(text, at, end, errorType) })
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

function readString(text: string, start: number, end: number, errorType: ScimErrorType): string {
  try {
    return String(JSON.parse(text.slice(start, end)))
  } catch (cause) {
    throw scimError(
      errorType,
      `The text that starts at character ${start + 1} is not a JSON string. Check its backslashes.`,
      { cause },
    )
  }
}
