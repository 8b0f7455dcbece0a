import { join } from 'node:path'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { startMeasured } from './gateway.ts'
import { PostgresCosts } from './postgres-costs.ts'
import { costOf, databaseText } from './request-cost.ts'
import { exchangeOf, writeStsConfiguration } from './sts.ts'
import { startBenchCluster } from './sts-cluster.ts'
import { number, rate, row } from './table.ts'

/** One token exchange on PostgreSQL, with its audit record. */
export async function measureTokenCosts(folder: string): Promise<void> {
  const database = await startPostgres({ durable: true })
  const cluster = await startBenchCluster()
  const costs = await PostgresCosts.open(database.url)
  try {
    const config = writeStsConfiguration(join(folder, 'capacity-sts'), cluster)
    const gateway = await startMeasured(config, join(folder, 'capacity-sts-data'), database.url)
    try {
      const tokens = Array.from({ length: 200 }, () => cluster.token())
      for (const algorithm of ['RS256', 'ES256'] as const) {
        const exchanges = tokens.map((token) => exchangeOf(gateway.port, token, algorithm))
        const before = await costs.bytes('audit', 'audit_contexts')
        const request = (n: number): string => exchanges[n % exchanges.length] ?? ''
        const { cost, count } = await costOf(gateway, costs, 64, request, 200)
        row(`token exchange, ${algorithm}, PostgreSQL`, rate(cost.perSecond, cost.gatewayMicros), databaseText(cost))
        const each = ((await costs.bytes('audit', 'audit_contexts')) - before) / count
        row(`stored by a token exchange, ${algorithm}`, `audit ${number(each)} bytes`)
      }
    } finally {
      await gateway.stop()
    }
  } finally {
    await costs.close()
    await cluster.close()
    await database.stop()
  }
}
