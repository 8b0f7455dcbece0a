/** A token of a SQL statement. */
export interface SqlToken {
  /**
   * `word`: a keyword or a name without quotes; `name`: one in double quotes or backticks; `text`: a string; `place`: a
   * placeholder; `sign`: everything else.
   */
  readonly kind: 'word' | 'name' | 'text' | 'number' | 'place' | 'sign'
  /** As written; a word in lower case, a name without its quotes, a placeholder without its colon. */
  readonly value: string
  /** The text for the database. Empty for a placeholder. */
  readonly sql: string
}

const maxLength = 20_000

/**
 * Only syntax that SQLite and PostgreSQL read alike: a text that only one of them treats as a comment or a string
 * could not be checked. MariaDB's backticks become double quotes.
 */
const patterns = [
  ['blank', /\s+|--[^\n]*|\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\//y],
  ['text', /'(?:[^']|'')*'/y],
  ['name', /"(?:[^"]|"")+"/y],
  ['backticks', /`[^`]+`/y],
  ['number', /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.$])/y],
  ['sign', /::|\|\||<>|!=|<=|>=|[-+*%=<>(),.]|\/(?!\*)/y],
  ['place', /:[A-Za-z]\w*|\?(?![\w?|&])/y],
  ['word', /[A-Za-z_]\w*(?![\w$'"])/y],
] as const

/** Throws an Error that says what is wrong, to be printed after the name of the field. */
export function sqlTokens(text: string): SqlToken[] {
  if (text.length > maxLength) throw new Error(`is longer than ${maxLength} characters`)
  const statement = text.trimEnd().replace(/;$/, '')
  const tokens: SqlToken[] = []
  for (let at = 0; at < statement.length; ) {
    const found = match(statement, at)
    if (found === undefined) throw new Error(notUnderstood(statement.slice(at)))
    at += found.written.length
    if (found.kind !== 'blank') tokens.push(token(found.kind, found.written))
  }
  return tokens
}

function match(statement: string, at: number) {
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at
    const written = pattern.exec(statement)?.[0]
    if (written !== undefined) return { kind, written }
  }
  return undefined
}

function token(kind: SqlToken['kind'] | 'backticks', written: string): SqlToken {
  switch (kind) {
    case 'word':
      return { kind, value: written.toLowerCase(), sql: written }
    case 'name':
      return { kind, value: written.slice(1, -1).replaceAll('""', '"'), sql: written }
    case 'backticks': {
      // MariaDB ignores the letter case of names; PostgreSQL does without quotes, for which it has none.
      const name = written.slice(1, -1)
      const value = /^\w+$/.test(name) ? name.toLowerCase() : name
      return { kind: 'name', value, sql: `"${value.replaceAll('"', '""')}"` }
    }
    case 'place':
      return { kind, value: written === '?' ? '' : written.slice(1), sql: '' }
    default:
      return { kind, value: written, sql: written }
  }
}

function notUnderstood(rest: string): string {
  if (rest.startsWith(';')) return 'must be one statement'
  if (rest.startsWith('/*')) return 'has a comment that does not end, or one within another'
  if (rest.startsWith("'") || rest.startsWith('"')) return 'has a quote that does not end'
  if (rest.startsWith('[')) return 'must have names in double quotes'
  if (rest.startsWith('`')) return 'has a quote that does not end'
  return `is not understood at "${rest.slice(0, 20)}"`
}
