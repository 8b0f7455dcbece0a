import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import type { Configuration } from '#config/configuration/configuration.ts'
import { formatIssue, plainLine } from '#config/context/located-issue.ts'
import type { SecretSource } from '#config/context/secrets.ts'
import { summarize } from '#config/load/set-aside.ts'
import { openConfigurationSource } from '#config/watch/open-source.ts'
import type { MigrationPolicy } from '#database/migrations.ts'
import { systemClock } from '#kernel/clock.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { openDataFolder } from '#server/composition/private-files.ts'
import { createRuntime, type Runtime } from '#server/composition/runtime.ts'
import { createServices } from '#server/composition/services.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { type CommandIo, required } from './command-line.ts'

export const databaseUrl = (given: string | undefined): string | undefined => given ?? process.env['GATEHOUSE_DATABASE']

interface ConfigPlaces {
  readonly config?: string | undefined
  readonly secrets?: string | undefined
}

interface LoadedConfiguration {
  readonly configuration: Configuration
  /** They can be read until the scope ends. */
  readonly secrets: SecretSource
  readonly scope: Scope
}

/**
 * Loads a configuration for the work, and prints its errors. Returns 1 if nothing of it can be served. Throws
 * WrongUsage without `--config`, and an Error if the source can't be reached.
 */
export async function withConfiguration<T>(
  { config, secrets: secretsFolder }: ConfigPlaces,
  io: CommandIo,
  work: (loaded: LoadedConfiguration) => Promise<T>,
  strictSecrets = false,
): Promise<T | 1> {
  const options = {
    config: required(config, 'config'),
    secretsFolder,
    environment: process.env,
    catalog,
    strictSecrets,
  }
  const scope = new Scope()
  try {
    const source = scope.own(await openConfigurationSource({ ...options, log: silentLogger }))
    const loaded = await source.load()
    const { configuration, issues } = loaded
    const shown = issues.filter(({ level }) => level === 'error' || configuration === undefined)
    for (const line of [...shown.map(formatIssue), ...summarize(loaded)]) io.stderr(line)
    return configuration === undefined ? 1 : await work({ configuration, secrets: source.secrets, scope })
  } finally {
    await scope.close()
  }
}

/**
 * Opens the database of a gateway, running or not. Throws an Error if there is no database, unless `absent` is
 * `create`, which also seals an empty audit if the keys of the installation are known, and SchemaMismatch if migrations are pending: only `migrate` and `serve` change an existing schema.
 */
export async function withDatabase<T>(
  place: { readonly data: string; readonly database?: string | undefined },
  work: (storage: Storage) => Promise<T>,
  absent: 'refuse' | 'create' = 'refuse',
  migrations: MigrationPolicy = 'refuse',
): Promise<T> {
  const url = databaseUrl(place.database)
  closeToOthers(place.data, url, url === undefined && absent === 'create')
  if (url === undefined && absent === 'refuse' && !existsSync(join(place.data, 'gatehouse.db'))) {
    refuseLeftover(place.data)
    throw new Error(`there is no database in ${place.data}; set --data or --database as for the gateway`)
  }
  const where = url === undefined ? { dataFolder: place.data } : { url }
  const auditKeys = await loadAuditKeys({ environment: process.env, dataFolder: place.data }, 'command')
  const storage = openStorage({ ...where, clock: systemClock, log: silentLogger, auditKeys, migrations })
  try {
    await storage.ready()
    if (absent === 'create' && auditKeys.length > 0) await sealNewAudit(storage)
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** As the first start of a gateway does, so that an entry from before it is authenticated too. */
async function sealNewAudit({ audit }: Storage): Promise<void> {
  const { tokens, others } = await audit.size()
  if (tokens + others === 0) await audit.authenticate()
}

/** Makes the data folder and an embedded database private, and reports changes on stderr. */
export function closeToOthers(data: string, url: string | undefined, create = false): void {
  const log: Pick<Logger, 'warn'> = {
    warn: (message, fields = {}) => {
      process.stderr.write(`${plainLine(`gatehouse: ${message}: ${Object.values(fields).flat().join(', ')}`)}\n`)
    },
  }
  openDataFolder(data, { log, create, databaseUrl: url })
}

/** Starts the engine without listeners. Without a data folder, it works on an empty database that is deleted at the end. */
export async function openRuntime(
  { configuration, secrets, scope }: LoadedConfiguration,
  place: { readonly data?: string | undefined; readonly database?: string | undefined },
): Promise<Runtime> {
  const url = databaseUrl(place.database)
  const dataFolder = place.data === undefined ? mkdtempSync(join(tmpdir(), 'gatehouse-explain-')) : resolve(place.data)
  if (place.data === undefined) scope.defer(() => rmSync(dataFolder, { recursive: true, force: true }))
  else closeToOthers(dataFolder, url)
  const storage = scope.own(
    openStorage({
      dataFolder,
      url,
      clock: systemClock,
      log: silentLogger,
      migrations: 'refuse',
    }),
  )
  await storage.ready()
  const parts = {
    storage,
    configFolder: configuration.folder,
    dataFolder,
    secrets,
    clock: systemClock,
    log: silentLogger,
    environment: process.env,
  }
  return scope.own(await createRuntime(configuration, createServices(parts)))
}
