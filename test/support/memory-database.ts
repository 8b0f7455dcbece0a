import { onTestFinished } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { LazyClient } from '#storage/client/lazy-client.ts'
import { migrate, readMigrations } from '#storage/client/migrate.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { inMemory, SqliteClient } from '#storage/client/sqlite.ts'

/** An empty database in memory, with all tables; it ends with the test. */
export function memoryDatabase(): SqlClient {
  const client = new LazyClient('sqlite', async () => {
    const opened = new SqliteClient(inMemory)
    await migrate(opened, readMigrations('sqlite'), systemClock, silentLogger)
    return opened
  })
  onTestFinished(() => client.close())
  return client
}
