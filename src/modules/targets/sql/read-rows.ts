import { GatewayError } from '#kernel/errors.ts'
import type { SqlDatabase } from '#protocols/sql/sql-database.ts'
import type { QueryRow, QueryTarget } from '#sdk/query-target.ts'
import { bindStatement, parseStatement, type StatementText } from './statement-text.ts'

/** What stands inside a `select` cannot change anything, and PostgreSQL is told so besides, for functions that would. */
export const readRows =
  (database: SqlDatabase): QueryTarget['readRows'] =>
  async (statement, values, limit) => {
    const { parts, names } = readStatement(statement)
    const whole = [...parts]
    whole[0] = `select * from (\n${whole[0] ?? ''}`
    whole[whole.length - 1] = `${whole.at(-1) ?? ''}\n) as found limit ${Math.trunc(limit)}`
    const bound = bindStatement({ parts: whole, names }, database.dialect, (name) => {
      if (Object.hasOwn(values, name)) return values[name] ?? null
      throw new GatewayError('BAD_REQUEST', `a statement asks for ":${name}", which has no value`)
    })
    const rows = await database.transaction(async (tx) => {
      if (database.dialect === 'postgres') await tx.run({ sql: 'set transaction read only', params: [] })
      return tx.query(bound)
    })
    return rows.map(toTexts)
  }

function readStatement(statement: string): StatementText {
  try {
    return parseStatement(statement)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new GatewayError('TARGET_FAILED', `a statement that cannot be used: it ${reason}`, { cause })
  }
}

function toTexts(row: Readonly<Record<string, unknown>>): QueryRow {
  const texts: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(row)) texts[name] = toText(value)
  return texts
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return value instanceof Date ? value.toISOString() : String(value)
}
