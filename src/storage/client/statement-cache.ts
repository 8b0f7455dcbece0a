import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SqlQuery } from '#storage/client/sql-client.ts'

/** Statements with a text of their own that are kept prepared; the least recently used goes first. */
const maxDynamic = 100

/** Prepared statements of one SQLite connection: the program's own for good, the others for a while. */
export class StatementCache {
  readonly #database: DatabaseSync
  readonly #fixed = new Map<string, StatementSync>()
  readonly #dynamic = new Map<string, StatementSync>()
  readonly #check: ((database: DatabaseSync, text: string) => void) | undefined

  /** `check` throws for a text that is not to be prepared. */
  constructor(database: DatabaseSync, check?: (database: DatabaseSync, text: string) => void) {
    this.#database = database
    this.#check = check
  }

  get(query: SqlQuery<unknown>): StatementSync {
    if (query.name !== undefined) {
      let statement = this.#fixed.get(query.name)
      if (statement === undefined) {
        statement = this.#prepare(query)
        this.#fixed.set(query.name, statement)
      }
      return statement
    }
    const known = this.#dynamic.get(query.sql)
    const statement = known ?? this.#prepare(query)
    if (known !== undefined) this.#dynamic.delete(query.sql)
    else if (this.#dynamic.size >= maxDynamic) {
      const oldest = this.#dynamic.keys().next()
      if (!oldest.done) this.#dynamic.delete(oldest.value)
    }
    this.#dynamic.set(query.sql, statement)
    return statement
  }

  #prepare(query: SqlQuery<unknown>): StatementSync {
    this.#check?.(this.#database, query.sql)
    const statement = this.#database.prepare(query.sql)
    if (query.asLists === true) statement.setReturnArrays(true)
    return statement
  }
}
