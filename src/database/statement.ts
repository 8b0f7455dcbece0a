import { createHash } from 'node:crypto'
import type { Sql } from 'sql-template-tag'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import type { SqlDialect, SqlValue } from '#protocols/sql/sql-database.ts'
import type { DatabaseReader, DatabaseTransaction, SqlClient, SqlQuery } from './sql-client.ts'

/** The few phrases that SQLite and PostgreSQL write differently. */
export interface DialectText {
  readonly name: SqlDialect
  /** The database's clock, in milliseconds since 1970: one clock for all processes. */
  readonly now: string
  /** Row locks. SQLite has one writer, so it needs none. */
  readonly forUpdate: string
  readonly forNoKeyUpdate: string
  readonly forUpdateSkipLocked: string
}

export const dialectTexts: Readonly<Record<SqlDialect, DialectText>> = {
  sqlite: {
    name: 'sqlite',
    now: "cast(unixepoch('subsec') * 1000 as integer)",
    forUpdate: '',
    forNoKeyUpdate: '',
    forUpdateSkipLocked: '',
  },
  postgres: {
    name: 'postgres',
    now: 'cast(extract(epoch from now()) * 1000 as bigint)',
    forUpdate: 'for update',
    forNoKeyUpdate: 'for no key update',
    forUpdateSkipLocked: 'for update skip locked',
  },
}

/** SQL with `:name` as a placeholder for a value; a function where the dialects differ. */
type StatementText = string | ((on: DialectText) => string)

interface Compiled {
  readonly sql: string
  /** Names the prepared statement. */
  readonly name: string
  /** The value of each placeholder, by name. */
  readonly places: readonly string[]
}

/**
 * One statement of the program. `P` is the type of its values, `R` that of its rows. Both databases get the same
 * text, keep it prepared, and get values separately.
 */
export class Statement<P extends object = object, R = never> {
  readonly #text: StatementText
  readonly #compiled = new Map<SqlDialect, Compiled>()

  constructor(text: StatementText) {
    this.#text = text
  }

  all(reader: DatabaseReader, values: P): Awaitable<R[]> {
    return reader.query(this.query(reader.dialect, values))
  }

  first(reader: DatabaseReader, values: P): Awaitable<R | undefined> {
    return andThen(reader.query(this.query(reader.dialect, values)), ([row]) => row)
  }

  /** Returns how many rows were changed. */
  run(tx: DatabaseTransaction, values: P): Awaitable<number> {
    return tx.run(this.query(tx.dialect, values))
  }

  /** See `DatabaseTransaction.send`. */
  send(tx: DatabaseTransaction, values: P): void {
    tx.send(this.query(tx.dialect, values))
  }

  /** The statement with its values, for callers that change how it is run. */
  query(dialect: SqlDialect, values: P): SqlQuery<R> {
    const { sql, name, places } = this.#compile(dialect)
    const given = values as Readonly<Record<string, SqlValue>>
    return { sql, name, params: places.map((place) => given[place] as SqlValue) }
  }

  #compile(dialect: SqlDialect): Compiled {
    let compiled = this.#compiled.get(dialect)
    if (compiled === undefined) {
      compiled = compile(this.#text, dialect)
      this.#compiled.set(dialect, compiled)
    }
    return compiled
  }
}

/** For statements without values or rows, write `statement(…)`; else `statement<Values, Row>(…)`. */
export const statement = <P extends object = object, R = never>(text: StatementText): Statement<P, R> =>
  new Statement<P, R>(text)

/** Quoted texts are copied unchanged; `::` is a cast, not a placeholder. */
const placePattern = /'[^']*'|"[^"]*"|::|(\b(?:limit|offset)\s+)?:([a-zA-Z]\w*)/g

function compile(text: StatementText, dialect: SqlDialect): Compiled {
  const places: string[] = []
  const written = typeof text === 'string' ? text : text(dialectTexts[dialect])
  const sql = written.replace(placePattern, (whole, limit: string | undefined, place: string | undefined) => {
    if (place === undefined) return whole
    places.push(place)
    if (dialect === 'postgres') return `${limit ?? ''}$${places.length}`
    // SQLite prepares a statement again whenever a bare parameter of a limit is bound; an expression avoids that.
    return limit === undefined ? '?' : `${limit}+?`
  })
  return { sql, places, name: createHash('sha256').update(sql).digest('base64url').slice(0, 22) }
}

/**
 * A statement whose text depends on the call, composed of fragments of `sql-template-tag`. It isn't kept prepared, since
 * such texts are many.
 */
export const dynamic = <R>(dialect: SqlDialect, composed: Sql): SqlQuery<R> => ({
  sql: dialect === 'postgres' ? composed.text : composed.sql,
  params: composed.values as SqlValue[],
  name: undefined,
})

const batchSizes = [64, 16, 8, 7, 6, 5, 4, 3, 2, 1]

/**
 * An insert of any number of rows, as few statements of fixed sizes: the texts stay few and prepared. `after` follows the
 * values, such as `on conflict do nothing`; `R` is a row of its `returning`.
 */
export class RowInsert<Row extends object, R = never> {
  readonly #columns: readonly (keyof Row & string)[]
  readonly #ofSize: readonly { readonly size: number; readonly insert: Statement<object, R> }[]

  constructor(table: string, columns: readonly (keyof Row & string)[], after = '') {
    this.#columns = columns
    this.#ofSize = batchSizes.map((size) => {
      const rows = Array.from({ length: size }, (_, row) => `(${columns.map((name) => `:${name}_${row}`).join(', ')})`)
      const text = `insert into ${table} (${columns.map(columnName).join(', ')}) values ${rows.join(', ')} ${after}`
      return { size, insert: statement(text) }
    })
  }

  /** See `DatabaseTransaction.send`. */
  run(tx: DatabaseTransaction, rows: readonly Row[]): void {
    for (const query of this.#queries(tx.dialect, rows)) tx.send(query)
  }

  /** Returns what `returning` names of the rows that were inserted. */
  async all(tx: DatabaseTransaction, rows: readonly Row[]): Promise<R[]> {
    const returned: R[] = []
    for (const query of this.#queries(tx.dialect, rows)) returned.push(...(await tx.query(query)))
    return returned
  }

  *#queries(dialect: SqlDialect, rows: readonly Row[]): Generator<SqlQuery<R>> {
    for (let done = 0; done < rows.length; ) {
      const left = rows.length - done
      const chosen = this.#ofSize.find(({ size }) => size <= left)
      if (chosen === undefined) return
      const { size, insert } = chosen
      const { sql, name } = insert.query(dialect, {})
      const params: SqlValue[] = []
      for (const row of rows.slice(done, done + size)) {
        for (const column of this.#columns) params.push(row[column] as SqlValue)
      }
      yield { sql, name, params }
      done += size
    }
  }
}

/**
 * A statement with a list of values, written `in (:list)`, as few statements of fixed sizes. A list that fills none is
 * padded with its last value, which makes no difference to `in`.
 */
export class ListStatement<P extends object, V extends SqlValue, R = never> {
  readonly #ofSize: readonly { readonly size: number; readonly statement: Statement<object, R> }[]

  constructor(text: StatementText) {
    this.#ofSize = batchSizes.toReversed().map((size) => {
      const list = Array.from({ length: size }, (_, i) => `:list_${i}`).join(', ')
      const write = (on: DialectText): string =>
        (typeof text === 'string' ? text : text(on)).replaceAll(/:list\b/g, () => list)
      return { size, statement: statement<object, R>(write) }
    })
  }

  async all(reader: DatabaseReader, values: P, list: readonly V[]): Promise<R[]> {
    const rows: R[] = []
    for (const query of this.#queries(reader.dialect, values, list)) rows.push(...(await reader.query(query)))
    return rows
  }

  /** Returns how many rows were changed. */
  async run(tx: DatabaseTransaction, values: P, list: readonly V[]): Promise<number> {
    let changed = 0
    for (const query of this.#queries(tx.dialect, values, list)) changed += await tx.run(query)
    return changed
  }

  *#queries(dialect: SqlDialect, values: P, list: readonly V[]): Generator<SqlQuery<R>> {
    for (let done = 0; done < list.length; ) {
      const left = list.length - done
      const chosen = this.#ofSize.find(({ size }) => size >= left) ?? this.#ofSize.at(-1)
      if (chosen === undefined) return
      const bound = { ...values } as Record<string, unknown>
      for (let i = 0; i < chosen.size; i++) bound[`list_${i}`] = list[Math.min(done + i, list.length - 1)]
      yield chosen.statement.query(dialect, bound)
      done += chosen.size
    }
  }
}

/** `runId` is the property of the column `run_id`. */
export const columnName = (property: string): string =>
  property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The columns of a row's properties, for `select` and `returning`: `id, run_id as "runId"`. */
export const columns = (properties: readonly string[], table?: string): string =>
  properties
    .map((property) => {
      const column = columnName(property)
      return `${table === undefined ? '' : `${table}.`}${column}${column === property ? '' : ` as "${property}"`}`
    })
    .join(', ')

/** `(id, run_id) values (:id, :runId)`, for an insert of one row. */
export const inserted = (properties: readonly string[]): string =>
  `(${properties.map(columnName).join(', ')}) values (${properties.map((property) => `:${property}`).join(', ')})`

type WithoutNulls<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null>
}

/** A copy of the row without the members that are null. */
export const withoutNulls = <T extends object>(row: T): WithoutNulls<T> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as WithoutNulls<T>

export const dateOrNull = (millis: number | null): Date | null => (millis === null ? null : new Date(millis))

/** How many rows one transaction deletes, so that others do not wait long. */
export const deletedAtOnce = 1_000

/** Runs a statement that deletes at most `deletedAtOnce` rows until it deletes fewer; returns how many in all. */
export async function deleteInParts<P extends object>(
  client: SqlClient,
  statement: Statement<P>,
  values: P,
): Promise<number> {
  let deleted = 0
  for (;;) {
    const some = await client.transaction((tx) => statement.run(tx, values))
    deleted += some
    if (some < deletedAtOnce) return deleted
  }
}
