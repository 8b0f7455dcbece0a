import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { readMigrations } from '#database/migrations.ts'
import { columnName } from '#database/statement.ts'
import { kinds } from './export-format.ts'

/** docs/guides/upgrading.md says so to operators. */
const notMoved = [
  'collection_sizes',
  'attributes',
  'former_names',
  'sessions',
  'session_marks',
  'logins',
  'login_failures',
  'password_changes',
  'reservations',
  'pending_registrations',
  'issuer_records',
  'event_streams',
  'events',
  'timers',
  'mails',
  'job_runs',
  'replicas',
  'idempotency',
  'reconciliation_plans',
  'reconciliation_rows',
  'reconciliation_reports',
  'reconciliation_feeds',
  'portal_offers',
  'journal',
]
/** An import computes them. */
const computed: Readonly<Record<string, readonly string[]>> = { entries: ['key', 'number'] }

function columnsByTable(): Map<string, string[]> {
  const database = new DatabaseSync(':memory:')
  for (const { script } of readMigrations('sqlite')) database.exec(script)
  const tables = database
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
    .all()
  const columnsOf = (table: string): string[] =>
    database
      .prepare('select name from pragma_table_info(?)')
      .all(table)
      .map(({ name }) => String(name))
  return new Map(tables.map(({ name }) => [String(name), columnsOf(String(name))]))
}

test('every table is moved with all of its columns, or is listed as not moved', () => {
  const tables = columnsByTable()
  const moved = new Map(Object.values(kinds).map((kind) => [kind.table, kind]))
  expect([...tables.keys()].sort()).toEqual([...notMoved, ...moved.keys()].sort())
  for (const [table, { fields, fixed = {} }] of moved) {
    const written = [...Object.keys(fields), ...Object.keys(fixed)].map(columnName)
    expect([...written, ...(computed[table] ?? [])].sort(), table).toEqual(tables.get(table)?.sort())
  }
})

test('format 1 has these fields for ever; one that may be null can be added', () => {
  const required = Object.entries(kinds).map(([kind, { fields }]) => {
    const names = Object.entries(fields).filter(([, type]) => !type.endsWith('?'))
    return `${kind}: ${names.map(([name, type]) => `${name} ${type}`).join(', ')}`
  })
  expect(required).toMatchSnapshot()
})
