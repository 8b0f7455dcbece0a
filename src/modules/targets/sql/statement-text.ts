import type { SqlDialect, SqlStatement, SqlValue } from '#protocols/sql/sql-database.ts'

/** A statement with places for named values. */
export interface StatementText {
  /** What stands before, between and behind the places. */
  readonly parts: readonly string[]
  readonly names: readonly string[]
}

const maxLength = 20_000

/** Quoted texts and names, comments and casts are passed over; what is left to find is a place or the statement's end. */
const tokens =
  /e'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|(\$\w*\$)[\s\S]*?\1|::|:([A-Za-z]\w*)|;/gi

/** One statement with places such as `:mail`. Throws an Error that says what is wrong. */
export function parseStatement(text: string): StatementText {
  if (text.length > maxLength) throw new Error(`is longer than ${maxLength} characters`)
  const statement = text.trim().replace(/;$/, '')
  const parts: string[] = []
  const names: string[] = []
  let done = 0
  for (const match of statement.matchAll(tokens)) {
    if (match[0] === ';') throw new Error('must be one statement')
    const name = match[2]
    if (name === undefined) continue
    parts.push(statement.slice(done, match.index))
    names.push(name)
    done = match.index + match[0].length
  }
  parts.push(statement.slice(done))
  if (statement === '') throw new Error('must be a statement')
  return { parts, names }
}

/** Values are bound, each to a place of its own, and are never part of the text. */
export function bindStatement(
  { parts, names }: StatementText,
  dialect: SqlDialect,
  value: (name: string) => SqlValue,
): SqlStatement {
  const sql = parts.reduce((text, part, i) => `${text}${dialect === 'postgres' ? `$${i}` : '?'}${part}`)
  return { sql, params: names.map(value) }
}
