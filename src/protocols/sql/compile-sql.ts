import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { SqlDialect, SqlStatement, SqlValue } from '#protocols/sql/sql-database.ts'

/** Kysely as a compiler only: it quotes names, numbers parameters and never runs anything. */
const builders: Readonly<Record<SqlDialect, Kysely<unknown>>> = {
  sqlite: new Kysely<unknown>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  }),
  postgres: new Kysely<unknown>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  }),
}

export function compileSql(statement: RawBuilder<unknown> | SqlStatement, dialect: SqlDialect): SqlStatement {
  if (!('compile' in statement)) return statement
  const { sql, parameters } = statement.compile(builders[dialect])
  return { sql, params: parameters as readonly SqlValue[] }
}
