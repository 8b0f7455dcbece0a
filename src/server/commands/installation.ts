import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import type { LoadResult } from '#config/load.ts'
import type { SecretSource } from '#config/secrets.ts'
import { loadAuditKeys } from '#engine/keys/audit-keys.ts'
import { createRuntime, type Runtime } from '#engine/runtime.ts'
import { systemClock } from '#kernel/clock.ts'
import { type Logger, silentLogger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import type { Configuration } from '#sdk/module/configuration.ts'
import { openConfigurationSource } from '#server/open-configuration-source.ts'
import { openDataFolder } from '#server/private-files.ts'
import { createServices } from '#server/services.ts'
import { openStorage, type Storage } from '#storage/open.ts'

/** The options of commands that work on the database of a gateway. */
export const databaseOptions = {
  data: { type: 'string', default: '.gatehouse' },
  database: { type: 'string' },
} as const

export const databaseUsage = `  --data DIR               Data folder of the gateway (default .gatehouse)
  --database URL           PostgreSQL database, instead of the one in the data folder (default $GATEHOUSE_DATABASE)`

/** For commands that read the directory only if a rule needs it. */
export const directoryUsage = `  --data DIR               Data folder of the gateway, for rules that read the directory
  --database URL           PostgreSQL database, likewise (default $GATEHOUSE_DATABASE)`

export const configUsage = '  --config SOURCE          Configuration folder, or kubernetes:NAMESPACE'
export const secretsUsage =
  '  --secrets DIR            Folder of secret files, NAME/KEY (default secrets/ in the configuration folder)'

export const databaseUrl = (given: string | undefined): string | undefined => given ?? process.env['GATEHOUSE_DATABASE']

export interface ConfigPlaces {
  readonly config: string
  readonly secrets?: string | undefined
}

/** Loads a configuration. Its secrets can be read until the scope ends. Throws if the source can't be reached. */
export async function loadOnce(
  { config, secrets: secretsFolder }: ConfigPlaces,
  strictSecrets: boolean,
  scope: Scope,
): Promise<{ readonly loaded: LoadResult; readonly secrets: SecretSource }> {
  const options = { config, secretsFolder, environment: process.env, catalog, strictSecrets, log: silentLogger }
  const source = scope.own(await openConfigurationSource(options))
  return { loaded: await source.load(), secrets: source.secrets }
}

/**
 * Opens the database of a gateway, running or not. Throws an Error if there is no database, unless `absent` is
 * `create`.
 */
export async function withDatabase<T>(
  place: { readonly data: string; readonly database?: string | undefined },
  work: (storage: Storage) => Promise<T>,
  absent: 'refuse' | 'create' = 'refuse',
): Promise<T> {
  const url = databaseUrl(place.database)
  closeToOthers(place.data, url, url === undefined && absent === 'create')
  if (url === undefined && absent === 'refuse' && !existsSync(join(place.data, 'gatehouse.db'))) {
    throw new Error(`there is no database in ${place.data}; set --data or --database as for the gateway`)
  }
  const where = url === undefined ? { dataFolder: place.data } : { url }
  const auditKeys = await loadAuditKeys({ environment: process.env, dataFolder: place.data }, 'command')
  const storage = openStorage({ ...where, clock: systemClock, log: silentLogger, auditKeys })
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

/** Makes the data folder and an embedded database private, and reports changes on stderr. */
export function closeToOthers(data: string, url: string | undefined, create = false): void {
  const log: Pick<Logger, 'warn'> = {
    warn: (message, fields = {}) => {
      process.stderr.write(`gatehouse: ${message}: ${Object.values(fields).flat().join(', ')}\n`)
    },
  }
  openDataFolder(data, { log, create, databaseUrl: url })
}

/** Starts the engine without listeners. Without a data folder, it works on an empty database that is deleted at the end. */
export async function openRuntime(
  configuration: Configuration,
  secrets: SecretSource,
  place: { readonly data?: string | undefined; readonly database?: string | undefined },
  scope: Scope,
): Promise<Runtime> {
  const url = databaseUrl(place.database)
  const dataFolder = place.data === undefined ? mkdtempSync(join(tmpdir(), 'gatehouse-explain-')) : resolve(place.data)
  if (place.data === undefined) scope.defer(() => rmSync(dataFolder, { recursive: true, force: true }))
  else closeToOthers(dataFolder, url)
  const storage = scope.own(
    openStorage({ dataFolder, ...(url === undefined ? {} : { url }), clock: systemClock, log: silentLogger }),
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
