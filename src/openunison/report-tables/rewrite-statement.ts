import type { SqlToken } from '#protocols/sql/sql-tokens.ts'
import { formerTable, type ReplacedTable } from './former-tables.ts'

/** A piece of the statement for each database; a placeholder has its name instead. */
export type Piece = { readonly postgres: string; readonly sqlite: string } | { readonly place: string }

interface Rewriting {
  readonly tokens: readonly SqlToken[]
  readonly tables: ReadonlyMap<number, ReplacedTable>
}

/**
 * The statement for the databases: tables of OpenUnison become our views, functions of MariaDB those of PostgreSQL
 * and SQLite, and PostgreSQL's ages those of SQLite, where their shape is known. All else stays as it was read.
 * Throws an Error that says what is wrong.
 */
export function rewriteStatement(tokens: readonly SqlToken[], tables: readonly ReplacedTable[]): Piece[] {
  return rewrite({ tokens, tables: new Map(tables.map((table) => [table.at, table])) }, 0, tokens.length)
}

function rewrite(rewriting: Rewriting, from: number, to: number): Piece[] {
  const { tokens, tables } = rewriting
  const pieces: Piece[] = []
  for (let at = from; at < to; ) {
    const token = tokens[at]
    if (token === undefined) break
    const table = tables.get(at)
    const known = token.kind === 'word' && isSign(tokens[at + 1], '(') ? knownFunctions[token.value] : undefined
    if (table !== undefined) {
      pieces.push(both(`(${formerTable(table.name)?.select?.(table.use) ?? ''})`))
      if (table.alias === undefined) pieces.push(both(`as ${table.name}`))
      at++
    } else if (known !== undefined) {
      const end = closing(tokens, at + 1)
      const made = known(argumentsOf(rewriting, at + 2, end))
      if (made === undefined) throw new Error(`calls "${token.value}" in a form that is not known here`)
      pieces.push(...made)
      at = end + 1
    } else if (isSign(token, '::') && tokens[at + 1]?.value === 'timestamp') {
      pieces.push({ postgres: ':: timestamp', sqlite: '' })
      at += 2
    } else {
      pieces.push(token.kind === 'place' ? { place: token.value } : both(token.sql))
      at++
    }
  }
  return pieces
}

interface Argument {
  readonly tokens: readonly SqlToken[]
  readonly pieces: readonly Piece[]
}

/** Undefined for arguments that it does not know. */
type KnownFunction = (given: readonly Argument[]) => readonly Piece[] | undefined

const knownFunctions: Readonly<Partial<Record<string, KnownFunction>>> = {
  if: ([condition, yes, no, ...rest]) =>
    condition === undefined || yes === undefined || no === undefined || rest.length > 0
      ? undefined
      : [both('case when'), ...condition.pieces, both('then'), ...yes.pieces, both('else'), ...no.pieces, both('end')],
  curdate: ([first, ...rest]) =>
    first?.tokens.length === 0 && rest.length === 0
      ? [{ postgres: "cast(now() at time zone 'UTC' as date)", sqlite: "date('now')" }]
      : undefined,
  datediff: ([later, earlier, ...rest]) =>
    later === undefined || earlier === undefined || rest.length > 0 ? undefined : days(later, earlier),
  /** As a text that compares with the times of the views. */
  date_sub: ([day, span, ...rest]) => {
    const [interval, number, unit, ...more] = span?.tokens ?? []
    const isKnown = interval?.value === 'interval' && unit?.value === 'day' && more.length + rest.length === 0
    if (day === undefined || !isKnown || number?.kind !== 'number' || !/^\d{1,5}$/.test(number.value)) return undefined
    return [
      { postgres: 'to_char(cast(', sqlite: 'date(' },
      ...day.pieces,
      { postgres: `as date) - ${number.value}, 'YYYY-MM-DD')`, sqlite: `, '-${number.value} days')` },
    ]
  },
  /** PostgreSQL's own; SQLite gets days. */
  age: ([first, second, ...rest]) => {
    if (first === undefined || first.tokens.length === 0 || rest.length > 0) return undefined
    const start = { postgres: 'age(', sqlite: '(julianday(' }
    if (second === undefined) {
      return [
        { ...start, sqlite: "(julianday(date('now')) - julianday(" },
        ...first.pieces,
        { postgres: ')', sqlite: '))' },
      ]
    }
    const whole = [first, second].every(
      ({ tokens: [word] }) => word?.value === 'current_date' || word?.value === 'date',
    )
    return [
      whole ? { ...start, sqlite: 'cast(julianday(' } : start,
      ...first.pieces,
      { postgres: ',', sqlite: ') - julianday(' },
      ...second.pieces,
      { postgres: ')', sqlite: whole ? ') as integer)' : '))' },
    ]
  },
  extract: ([only, ...rest]) => {
    const [field, from, what] = only?.tokens ?? []
    if (only === undefined || rest.length > 0) return undefined
    const isAge = /^'?epoch'?$/i.test(field?.value ?? '') && from?.value === 'from' && what?.value === 'age'
    if (!isAge) return [both('extract('), ...only.pieces, both(')')]
    return [
      { postgres: 'extract(epoch from', sqlite: '(' },
      ...only.pieces.slice(2),
      { postgres: ')', sqlite: '* 86400)' },
    ]
  },
}

const days = (later: Argument, earlier: Argument): Piece[] => [
  { postgres: '(cast(', sqlite: 'cast(julianday(date(' },
  ...later.pieces,
  { postgres: 'as date) - cast(', sqlite: ')) - julianday(date(' },
  ...earlier.pieces,
  { postgres: 'as date))', sqlite: ')) as integer)' },
]

const both = (sql: string): Piece => ({ postgres: sql, sqlite: sql })

const isSign = (token: SqlToken | undefined, value: string): boolean => token?.kind === 'sign' && token.value === value

/** The place of the parenthesis that closes the one at `open`; the statement was read, so there is one. */
function closing(tokens: readonly SqlToken[], open: number): number {
  let depth = 0
  for (let at = open; at < tokens.length; at++) {
    if (isSign(tokens[at], '(')) depth++
    if (isSign(tokens[at], ')') && --depth === 0) return at
  }
  throw new Error('ends too early')
}

/** Between two places, separated by commas that are in no further parentheses. */
function argumentsOf(rewriting: Rewriting, from: number, to: number): Argument[] {
  const { tokens } = rewriting
  const given: Argument[] = []
  let start = from
  for (let at = from; at <= to; at++) {
    if (isSign(tokens[at], '(')) at = closing(tokens, at)
    if (at !== to && !isSign(tokens[at], ',')) continue
    given.push({ tokens: tokens.slice(start, at), pieces: rewrite(rewriting, start, at) })
    start = at + 1
  }
  return given
}
