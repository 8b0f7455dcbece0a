import { onTestFinished } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import { readAddress } from '#storage/client/databases.ts'
import { PostgresClient } from '#storage/client/postgres.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { SqliteClient } from '#storage/client/sqlite.ts'
import { migrationConformance } from '#storage/conformance/migrations.ts'
import { sqlClientConformance } from '#storage/conformance/sql-client.ts'
import { onEachDatabase } from '#testing/databases.ts'

function connect(url: string): SqlClient {
  const { dialect, address } = readAddress(url)
  const client = dialect === 'sqlite' ? new SqliteClient(address) : new PostgresClient(address, silentLogger)
  onTestFinished(() => client.close())
  return client
}

onEachDatabase('client', (freshUrl) => {
  sqlClientConformance(async () => {
    const client = connect(await freshUrl())
    await client.migrate((_, runScript) => runScript('create table things (id text primary key, amount bigint)'))
    return client
  })
})

onEachDatabase('migrations', (freshUrl) => {
  migrationConformance(async () => {
    const url = await freshUrl()
    return () => connect(url)
  })
})
