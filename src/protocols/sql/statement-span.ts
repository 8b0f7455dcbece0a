import type { Tracer } from '#kernel/tracing.ts'

type System = 'postgresql' | 'sqlite'

/** Runs a statement in a span. Its text has places for values; the values are not part of the span. */
export function traceStatement<T>(tracer: Tracer, system: System, sql: string, run: () => T): T {
  const name = summaryOf(sql)
  const attributes = { 'db.system.name': system, 'db.query.summary': name, 'db.query.text': sql }
  return tracer.span({ name, kind: 'client', parent: 'current', attributes }, run)
}

/** Runs a transaction in a span, which includes the waits for a connection and for the commit. */
export function traceTransaction<T>(tracer: Tracer, system: System, run: () => T): T {
  const attributes = { 'db.system.name': system }
  return tracer.span({ name: 'transaction', kind: 'client', parent: 'current', attributes }, run)
}

const longest = 2000

/** The operation and its first table, such as `insert runs`. */
function summaryOf(sql: string): string {
  const text = sql.slice(0, longest)
  const operation = /[a-z]+/i.exec(text)?.[0].toLowerCase() ?? 'statement'
  const table = /\b(?:from|into|update)\s+"?(\w+)/i.exec(text)?.[1]
  return table === undefined ? operation : `${operation} ${table}`
}
