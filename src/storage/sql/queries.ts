import { createHash } from 'node:crypto'
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  type LimitNode,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from 'kysely'
import type { SqlDialect, SqlQuery, SqlValue } from '#storage/client/sql-client.ts'
import type { Schema } from '#storage/sql/schema.ts'

export type Builder = Kysely<Schema>

/**
 * SQLite prepares a statement anew whenever a bare parameter of its limit is bound, since its plan may depend on it: for a
 * short statement that takes longer than running it. An expression is taken as it is.
 */
class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    this.append('limit +')
    this.visitNode(node.limit)
  }
}

/** Kysely as a compiler only: it writes the SQL of a dialect and never runs it. */
const builders: Readonly<Record<SqlDialect, Builder>> = {
  sqlite: new Kysely<Schema>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteCompiler(),
    },
  }),
  postgres: new Kysely<Schema>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }),
}

export const builderFor = (dialect: SqlDialect): Builder => builders[dialect]

interface Compilable<R> {
  compile(): CompiledQuery<R>
}

/** Stands for a value in a statement that is compiled before its values are known. */
class Marker {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** The place of a named value in a fixed statement. */
export type Place<A> = <K extends keyof A & string>(name: K) => RawBuilder<A[K]>

/** A statement compiled once, to be run with different values. */
export type Fixed<A, R> = (values: A) => SqlQuery<R>

/** A statement whose text never changes, compiled when it is first used: a process uses a part of them. */
export function fixed<A, R>(dialect: SqlDialect, build: (db: Builder, place: Place<A>) => Compilable<R>): Fixed<A, R> {
  let bind: Fixed<A, R> | undefined
  return (values) => {
    bind ??= compileFixed(dialect, build)
    return bind(values)
  }
}

function compileFixed<A, R>(dialect: SqlDialect, build: (db: Builder, place: Place<A>) => Compilable<R>): Fixed<A, R> {
  const compiled = build(builderFor(dialect), (name) => sql`${new Marker(name)}`).compile()
  const name = createHash('sha256').update(compiled.sql).digest('base64url').slice(0, 22)
  const slots = compiled.parameters.map((parameter) =>
    parameter instanceof Marker ? { name: parameter.name as keyof A } : { value: parameter as SqlValue },
  )
  return (values) => {
    const params = new Array<SqlValue>(slots.length)
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]
      if (slot !== undefined) params[i] = 'name' in slot ? (values[slot.name] as SqlValue) : slot.value
    }
    return { sql: compiled.sql, params, name }
  }
}

/** Compiles a statement whose text depends on the call. */
export function dynamic<R>(query: Compilable<R>): SqlQuery<R> {
  const compiled = query.compile()
  return { sql: compiled.sql, params: compiled.parameters as readonly SqlValue[], name: undefined }
}

/** The same query, with its rows as lists of type `L`, in the order of the columns. */
export const asLists = <L>({ sql, params, name }: SqlQuery<unknown>): SqlQuery<L> => ({
  sql,
  params,
  name,
  asLists: true,
})

const batchSizes = [64, 16, 8, 7, 6, 5, 4, 3, 2, 1]

/**
 * An insert of any number of rows as few statements of fixed sizes, so that the texts stay few and prepared. `build`
 * is given the places of a statement's rows, and inserts the columns in the order in which they are named.
 */
export function fixedInserts<Row extends Readonly<Record<string, SqlValue>>>(
  dialect: SqlDialect,
  columns: readonly (keyof Row & string)[],
  build: (db: Builder, rows: { [K in keyof Row]: RawBuilder<Row[K]> }[]) => Compilable<unknown>,
): (rows: readonly Row[]) => SqlQuery<unknown>[] {
  type Places = { [K in keyof Row]: RawBuilder<Row[K]> }
  const ofSize = batchSizes.map((size) => {
    const query = fixed<Record<string, SqlValue>, unknown>(dialect, (db, place) => {
      const rows = Array.from({ length: size }, () => Object.fromEntries(columns.map((name) => [name, place(name)])))
      return build(db, rows as Places[])
    })
    let known: SqlQuery<unknown> | undefined
    return { size, statement: () => (known ??= query({})) }
  })
  return (rows) => {
    const queries: SqlQuery<unknown>[] = []
    let done = 0
    for (const { size, statement } of ofSize) {
      while (rows.length - done >= size) {
        const { sql, name } = statement()
        const params: SqlValue[] = []
        for (const row of rows.slice(done, done + size))
          for (const column of columns) params.push(row[column] as SqlValue)
        queries.push({ sql, name, params })
        done += size
      }
    }
    return queries
  }
}

/**
 * A statement with a list of values in it, as few statements of fixed sizes; a list that fills none exactly is padded
 * with its last value, which an `in` does not mind.
 */
export function fixedLists<A extends object, V extends SqlValue, R>(
  dialect: SqlDialect,
  build: (db: Builder, place: Place<A>, list: RawBuilder<V>[]) => Compilable<R>,
): (values: A, list: readonly V[]) => SqlQuery<R>[] {
  const ofSize = batchSizes
    .map((size) => ({
      size,
      query: fixed<Record<string, SqlValue>, R>(dialect, (db, place) => {
        const list = Array.from({ length: size }, (_, i) => place(`:${i}`))
        return build(db, place as unknown as Place<A>, list as RawBuilder<V>[])
      }),
    }))
    .reverse()
  return (values, list) => {
    const queries: SqlQuery<R>[] = []
    for (let done = 0; done < list.length; ) {
      const chosen = ofSize.find(({ size }) => size >= list.length - done) ?? ofSize.at(-1)
      if (chosen === undefined) break
      const bound: Record<string, SqlValue> = { ...(values as Record<string, SqlValue>) }
      for (let i = 0; i < chosen.size; i++) bound[`:${i}`] = list[Math.min(done + i, list.length - 1)] ?? null
      queries.push(chosen.query(bound))
      done += chosen.size
    }
    return queries
  }
}
