import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import type { Owner } from '#protocols/sql/sql-database.ts'

/** How many statements without a name stay prepared; the least recently used is removed first. */
const maxUnnamed = 100

interface PreparedText {
  readonly sql: string
  /** Set for the fixed statements of the program, which are kept prepared. */
  readonly name?: string | undefined
  /** Rows come as lists of their columns instead of as objects. */
  readonly asLists?: boolean
}

interface CacheOptions {
  /** Throws for a text that must not be prepared. */
  readonly check?: (database: DatabaseSync, text: string) => void
  /** Integers are read as bigint, so that any value of a column fits. */
  readonly readBigInts?: boolean
}

/** The prepared statements of one connection. */
export class StatementCache {
  readonly #database: DatabaseSync
  readonly #options: CacheOptions
  readonly #named = new Map<string, StatementSync>()
  readonly #unnamed = new BoundedCache<StatementSync>(maxUnnamed)

  constructor(database: DatabaseSync, options: CacheOptions = {}) {
    this.#database = database
    this.#options = options
  }

  get(text: PreparedText): StatementSync {
    const { sql, name } = text
    const known = name === undefined ? this.#unnamed.get(sql) : this.#named.get(name)
    if (known !== undefined) return known
    const statement = this.#prepare(text)
    if (name === undefined) this.#unnamed.set(sql, statement)
    else this.#named.set(name, statement)
    return statement
  }

  #prepare({ sql, asLists }: PreparedText): StatementSync {
    this.#options.check?.(this.#database, sql)
    const statement = this.#database.prepare(sql)
    if (asLists === true) statement.setReturnArrays(true)
    if (this.#options.readBigInts === true) statement.setReadBigInts(true)
    return statement
  }
}

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html). */
const environment = new Map([
  [7, 'is out of memory'],
  [8, 'cannot be written'],
  [10, 'had an input or output error'],
  [11, 'is damaged'],
  [13, 'is full'],
  [14, 'cannot be opened'],
  [26, 'is not an SQLite file'],
])
const codes = new Map<number, ErrorCode>([
  [1555, 'CONFLICT'], // primary key
  [2067, 'CONFLICT'], // unique
  [18, 'BAD_REQUEST'], // too big
])
/** A target's schema isn't ours. */
const foreignCodes = new Map<number, ErrorCode>([
  ...codes,
  [2579, 'CONFLICT'], // rowid
  [275, 'BAD_REQUEST'], // check
  [787, 'BAD_REQUEST'], // foreign key
  [1299, 'BAD_REQUEST'], // not null
  [3091, 'BAD_REQUEST'], // data type, in strict tables
])

function resultCode(thrown: unknown): number | undefined {
  const code: unknown = thrown instanceof Error ? Reflect.get(thrown, 'errcode') : undefined
  return typeof code === 'number' ? code : undefined
}

/** Another process is writing. */
export function isBusy(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === 5 || code === 6
}

/** The file is malformed. */
export function isDamaged(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === 11 || code === 26
}

const full = 13

/** An error of SQLite as a GatewayError; other errors are returned unchanged. Names the file, if it is given. */
export function sqliteError(thrown: unknown, owner: Owner = 'own', file?: string): unknown {
  const code = resultCode(thrown)
  if (code === undefined || !(thrown instanceof Error)) return thrown
  const { message } = thrown
  const error = (to: ErrorCode, text: string, retryAfter?: number): GatewayError =>
    new GatewayError(to, text, { cause: thrown, retryAfter })
  const known = (owner === 'own' ? codes : foreignCodes).get(code)
  if (known !== undefined) return error(known, message)
  if (isBusy(thrown)) return error('TARGET_UNREACHABLE', 'the database is locked by another process', 1)
  const trouble = environment.get(code & 0xff)
  if (trouble !== undefined) {
    const database = file === undefined ? 'the database' : `the database ${file}`
    const advice = (code & 0xff) === full ? '. Free some space on its disk' : ''
    return error('TARGET_UNREACHABLE', `${database} ${trouble}: ${message}${advice}`, 30)
  }
  return error(owner === 'own' ? 'INTERNAL' : 'TARGET_FAILED', message)
}
