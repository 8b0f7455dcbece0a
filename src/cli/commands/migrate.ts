import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type CommandOutput, defineCommand, type Values } from '#cli/command-line/command-line.ts'
import { closeToOthers, databaseUrl } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { readAddress, readSchemaAt } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { systemClock } from '#kernel/clock.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { openStorage } from '#server/composition/stores.ts'

const options = {
  ...databaseOptions,
  'dry-run': { about: 'Print the migrations that would run, and change nothing' },
  ...outputOption,
} as const

export const migrateCommand = defineCommand({
  name: 'migrate',
  about: 'Bring the tables of the database to this version. A gateway does the same when it starts.',
  usage: '[--dry-run] [options]',
  options,
  notes: `All pending migrations run, or none. Take a backup first: a migration can't be undone.
Exit code 3: the database belongs to a newer version, or its migrations were changed.`,
  examples: ['gatehouse migrate --dry-run', 'gatehouse migrate --data /var/lib/gatehouse'],
  run: runMigrate,
})

async function runMigrate(values: Values<typeof options>, _: readonly string[], io: CommandOutput): Promise<void> {
  const given = databaseUrl(values.database)
  const url = given ?? `sqlite:${join(values.data, 'gatehouse.db')}`
  const { dialect, address } = readAddress(url)
  if (dialect === 'sqlite' && !existsSync(address)) {
    refuseLeftover(dirname(address))
    throw new Error(`${address} does not exist; set --data or --database as for the gateway. A first start creates it`)
  }
  closeToOthers(values.data, given)
  const { applied, pending } = await readSchemaAt(url, silentLogger)
  const current = applied.at(-1) ?? 'none: it has no tables of Gatehouse'
  io.stdout(`Schema of the database: ${current}`)
  if (pending.length === 0) {
    io.stdout('Nothing to do: it is the schema of this version')
    io.result({ before: applied.at(-1), pending: [], ran: [] })
    return
  }
  if (values['dry-run']) {
    for (const { name } of pending) io.stdout(`Would run ${name}`)
    io.stdout('Nothing was changed')
    io.result({ before: applied.at(-1), pending: pending.map(({ name }) => name), ran: [] })
    return
  }
  // Another version of the only gateway of an SQLite file would continue on tables that it does not know.
  const lock = await lockInstance({ url, dataFolder: values.data, waitMillis: 0 })
  try {
    const ran: unknown[] = []
    const log: Logger = { ...silentLogger, info: (_, fields = {}) => ran.push(fields['migration']) }
    const storage = openStorage({ url, clock: systemClock, log })
    try {
      await new Progress().during('Migrating the database', storage.ready())
    } finally {
      await storage.close()
    }
    for (const name of ran) io.stdout(`Ran ${name}`)
    io.stdout('The database has the schema of this version')
    io.result({ before: applied.at(-1), pending: [], ran })
  } finally {
    await lock.close?.()
  }
}
