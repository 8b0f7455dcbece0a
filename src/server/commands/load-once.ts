import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import type { LoadResult } from '#config/load.ts'
import type { SecretSource } from '#config/secrets.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import { openConfigurationSource } from '#server/open-configuration-source.ts'

export interface ConfigPlaces {
  readonly config: string
  readonly secrets?: string | undefined
}

/** What a command works on. The secrets can be read until the scope ends. Throws when the source cannot be reached. */
export async function loadOnce(
  { config, secrets: secretsFolder }: ConfigPlaces,
  strictSecrets: boolean,
  scope: Scope,
): Promise<{ readonly loaded: LoadResult; readonly secrets: SecretSource }> {
  const options = { config, secretsFolder, environment: process.env, catalog, strictSecrets, log: silentLogger }
  const source = scope.own(await openConfigurationSource(options))
  return { loaded: await source.load(), secrets: source.secrets }
}
