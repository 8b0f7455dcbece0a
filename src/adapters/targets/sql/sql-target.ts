import sql from 'sql-template-tag'
import { GatewayError } from '#kernel/errors.ts'
import { oneLine } from '#kernel/text/one-line.ts'
import { openDatabase } from '#protocols/sql/open-database.ts'
import type { SqlDatabase } from '#protocols/sql/sql-database.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import type { QueryRow, QueryTarget } from '#sdk/target/query-target.ts'
import type { StorableAttributes, Target } from '#sdk/target/target.ts'
import { readLayout } from './layout.ts'
import { StatementUsers, statementLookups } from './statement-users.ts'
import { bindStatement, parseStatement, type StatementsConfig, type StatementText } from './statements.ts'
import { type OpenGroups, tableGroups } from './table-groups.ts'
import { type OpenTables, searchSpaces, tableLookups } from './table-lookups.ts'
import { TableUsers } from './table-users.ts'
import type { Tables } from './tables.ts'
import { type HashPassword, passwordsOf, usersOf } from './user-store.ts'

export interface SqlTargetConfig {
  readonly url: string
  readonly user: string | undefined
  readonly password: string | undefined
  readonly maxConnections: number
  readonly timeoutMillis: number
  readonly searchLimit: number
  readonly hashPassword: HashPassword
  /** Refuses every change. */
  readonly readOnly: boolean
  readonly schema:
    | { readonly kind: 'tables'; readonly tables: Tables<string> }
    | { readonly kind: 'statements'; readonly statements: StatementsConfig }
}

type Host = Pick<ModuleHost, 'name' | 'log'>

/** Rejects if the schema does not match the configuration. A database that does not answer is tried again later. */
export async function openSqlTarget(config: SqlTargetConfig, host: Host): Promise<Target> {
  const { url, user, password, timeoutMillis, maxConnections, schema } = config
  const database = await openDatabase({
    url,
    user,
    password,
    timeoutMillis,
    maxConnections,
    onIdleLoss: (error) => host.log.warn('an idle database connection was lost', { error: error.message }),
  })
  try {
    const target =
      schema.kind === 'tables'
        ? await tablesTarget(database, schema.tables, config, host)
        : await statementsTarget(database, schema.statements, config, host.name)
    const queries: Pick<QueryTarget, 'readRows' | 'stopsReads'> = {
      readRows: readRows(database),
      stopsReads: database.dialect === 'postgres',
    }
    return withNamedFailures(host.name, { ...target, ...queries, close: () => database.close() })
  } catch (error) {
    await database.close()
    throw error
  }
}

async function tablesTarget(
  database: SqlDatabase,
  tables: Tables<string>,
  config: SqlTargetConfig,
  { log }: Host,
): Promise<Target> {
  let defaults: ReadonlyMap<string, string> = new Map()
  const open = onceReached(async (): Promise<OpenTables> => {
    const layout = await readLayout(database, tables)
    for (const table of await reusingTables(database, tables)) log.warn(...reuseWarning(table))
    const accounts = new TableUsers(layout)
    defaults = accounts.defaults
    return { layout, accounts, ...searchSpaces(layout) }
  })
  const accounts = async () => (await open()).accounts
  const groups = async (): Promise<OpenGroups> => {
    const { layout, groups: rows } = await open()
    const { own, members } = layout.groups ?? {}
    if (rows === undefined || own === undefined || members === undefined)
      throw new GatewayError('INTERNAL', 'no groups')
    return { rows, own, members }
  }
  const { users } = tables
  await unlessUnreachable(open)
  return {
    ...usersOf(database, accounts, config.readOnly),
    ...tableLookups(database, tables, open, config.searchLimit),
    ...(tables.groups?.own === undefined || config.readOnly ? {} : tableGroups(database, groups)),
    ...(users.password === undefined || config.readOnly ? {} : passwordsOf(database, accounts, config.hashPassword)),
    storable: onceReached(async () => {
      const { layout, accounts } = await open()
      const names = (columns: Iterable<string> = []) => new Set(Array.from(columns, (name) => name.toLowerCase()))
      const groups = names(layout.groups?.own?.columns.keys())
      return { users: accounts.attributes, groups, single: { users: names(layout.users.columns.keys()), groups } }
    }),
    defaultValue: (attribute) => defaults.get(attribute.toLowerCase()),
    renamesUsers: users.id !== users.name && tables.groups?.userRef !== users.name,
    keepsVersions: users.version !== undefined,
  }
}

const reuseWarning = (table: string): [string, Record<string, string>] => [
  'SQLite may give the id of a deleted row to a new one, which SCIM clients take for the old one; declare the key as "integer primary key autoincrement"',
  { table },
]

/** SQLite reuses the greatest key of a table whose key isn't AUTOINCREMENT. */
async function reusingTables(database: SqlDatabase, { users, groups }: Tables<string>): Promise<readonly string[]> {
  if (database.dialect !== 'sqlite') return []
  const keyed = [users, ...(groups?.own === undefined ? [] : [groups.own])].filter(({ id, name }) => id !== name)
  const found: string[] = []
  for (const {
    table: { table },
    id,
  } of keyed) {
    const [row] = await database.query(sql`select m.sql as text from sqlite_master m
      join pragma_table_info(m.name) c on c.name = ${id} and c.pk = 1 and lower(c.type) = 'integer'
      where m.type = 'table' and m.name = ${table}`)
    if (row !== undefined && !/\bautoincrement\b/i.test(String(row['text']))) found.push(table)
  }
  return found
}

async function statementsTarget(
  database: SqlDatabase,
  config: StatementsConfig,
  { searchLimit, hashPassword, readOnly }: SqlTargetConfig,
  name: string,
): Promise<Target> {
  const accounts = new StatementUsers(config, name)
  const check = onceReached(async () => {
    for (const [statement, text] of config.statements) {
      await database.check(bindStatement(text, database.dialect, () => null)).catch((cause: unknown) => {
        if (!(cause instanceof GatewayError) || cause.code !== 'TARGET_FAILED') throw cause
        throw new Error(`the statement ${statement} is not understood: ${cause.message}`, { cause })
      })
    }
    return accounts
  })
  await unlessUnreachable(check)
  const statementAttributes: StorableAttributes = { users: accounts.attributes, groups: new Set() }
  return {
    ...usersOf(database, check, readOnly),
    ...(config.statements.has('searchUsers') ? statementLookups(database, accounts, config, searchLimit) : {}),
    ...(config.statements.has('setPassword') && !readOnly ? passwordsOf(database, check, hashPassword) : {}),
    storable: async () => statementAttributes,
    renamesUsers: accounts.renames,
    keepsVersions: false,
  }
}

/** Calls `open` until it succeeds once, and then returns the same result. */
function onceReached<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined
  return () => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined
      throw error instanceof GatewayError ? error : new GatewayError('TARGET_FAILED', String(error), { cause: error })
    })
    return opened
  }
}

async function unlessUnreachable(open: () => Promise<unknown>): Promise<void> {
  try {
    await open()
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    if (error.code === 'TARGET_UNREACHABLE' || error.code === 'TARGET_TIMEOUT') return
    throw error.cause instanceof Error && !(error.cause instanceof GatewayError) ? error.cause : error
  }
}

/** The same target, with its name in every error. */
function withNamedFailures<T extends Target>(name: string, target: T): T {
  const named = Object.entries(target).map(([key, member]) => {
    // This one is not asynchronous, and does not fail.
    if (typeof member !== 'function' || key === 'defaultValue') return [key, member]
    const call = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await member(...args)
      } catch (error) {
        throw namedFailure(name, error)
      }
    }
    return [key, call]
  })
  return Object.fromEntries(named) as T
}

function namedFailure(name: string, thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown
  const { code, message, ownText, attribute, retryAfter, headers, keyword, problems } = thrown
  // Triggers write messages too.
  return new GatewayError(code, `target "${name}": ${oneLine(message.slice(0, 2000), 1000)}`, {
    cause: thrown,
    publicText: ownText,
    attribute,
    headers,
    problems,
    retryAfter,
    keyword,
  })
}

/** A statement inside a `select` cannot write, and `read` keeps its functions from it. */
const readRows =
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
    const rows = await database.read(bound)
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
