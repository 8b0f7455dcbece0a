import type { SqlDialect } from '#storage/client/sql-client.ts'

/** Builds something once for each dialect that is used, such as the fixed statements of a store. */
export function perDialect<T>(build: (dialect: SqlDialect) => T): (dialect: SqlDialect) => T {
  const built = new Map<SqlDialect, T>()
  return (dialect) => {
    let value = built.get(dialect)
    if (value === undefined) {
      value = build(dialect)
      built.set(dialect, value)
    }
    return value
  }
}
