import { Gauge, Histogram, type Registry } from 'prom-client'
import type { PoolFigures } from '#database/sql-client.ts'

/** Metrics of the own database. */
export function createDatabaseMetrics(registry: Registry) {
  const registers = [registry]
  const transactions = new Histogram({
    name: 'gatehouse_database_transaction_seconds',
    help: 'Time of a transaction of the own database, from the wait for a connection to the commit or its failure.',
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 5, 30],
    registers,
  })
  return {
    transaction: (millis: number): void => transactions.observe(millis / 1000),
    /** From now on these connections are metrics; there are none in SQLite, whose figures are undefined. */
    watchPool(read: () => PoolFigures | undefined): void {
      new Gauge({
        name: 'gatehouse_database_connections',
        help: 'Connections to PostgreSQL, by state: busy or idle.',
        labelNames: ['state'],
        registers,
        collect() {
          const pool = read()
          if (pool === undefined) return
          this.set({ state: 'busy' }, pool.total - pool.idle)
          this.set({ state: 'idle' }, pool.idle)
        },
      })
      new Gauge({
        name: 'gatehouse_database_connections_max',
        help: 'Connections to PostgreSQL that this process may open.',
        registers,
        collect() {
          this.set(read()?.max ?? Number.NaN)
        },
      })
      new Gauge({
        name: 'gatehouse_database_waiting',
        help: 'Requests and tasks that wait for a free connection to PostgreSQL.',
        registers,
        collect() {
          this.set(read()?.waiting ?? Number.NaN)
        },
      })
    },
  }
}
