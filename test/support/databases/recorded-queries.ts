import type { SqlClient, SqlQuery } from '#database/sql-client.ts'

/** A client that keeps the statements that were run outside of transactions. */
export function recordedQueries(client: SqlClient): {
  readonly client: SqlClient
  readonly queries: SqlQuery<unknown>[]
} {
  const queries: SqlQuery<unknown>[] = []
  const query: SqlClient['query'] = (one) => {
    queries.push(one)
    return client.query(one)
  }
  return {
    queries,
    client: new Proxy(client, {
      get: (target, member) => {
        if (member === 'query') return query
        const value: unknown = Reflect.get(target, member)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }),
  }
}
