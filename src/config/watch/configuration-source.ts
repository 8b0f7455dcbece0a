import { join, resolve } from 'node:path'
import { SecretSource } from '#config/context/secrets.ts'
import { type LoadOptions, type LoadResult, loadConfiguration } from '#config/load/load.ts'
import type { KnownObjects } from '#config/sources/stored-objects.ts'
import { hideSecrets, SecretValues } from '#kernel/secret-values.ts'
import { type ConfigWatch, watchConfiguration } from './folder-watch.ts'

export interface SourceListener {
  /** The hash of the known configuration; a result with the same hash is not reported. */
  readonly hash: string
  onChange(result: LoadResult): Promise<void> | void
  onError(error: unknown): void
}

/** `refused` because of errors, `failed` without any. */
export type LoadOutcome = 'applied' | 'refused' | 'failed'

/** Where a configuration comes from: a folder, or a namespace of a cluster. */
export interface ConfigurationSource {
  /** The base of relative file names. */
  readonly folder: string
  /** For keys that are looked up while the gateway runs. */
  readonly secrets: SecretSource
  /** Objects of the database, which every later load has too. */
  readonly stored: KnownObjects
  /** Reads everything again. Throws if the source can't be reached, never for its content. */
  load(): Promise<LoadResult>
  watch(listener: SourceListener): ConfigWatch
  /** Reports the outcome of a loaded configuration. Never throws. */
  settled(result: LoadResult, outcome: LoadOutcome): Promise<void>
  close(): Promise<void>
}

export interface SourceOptions
  extends Pick<LoadOptions, 'catalog' | 'environment' | 'strictSecrets' | 'keepObjects' | 'ownPlaces' | 'listenUrl'> {
  /** A folder of YAML. */
  readonly config: string
  readonly secretsFolder?: string | undefined
}

export function folderSource({ config, secretsFolder, ...options }: SourceOptions): ConfigurationSource {
  const folder = resolve(config)
  const places = { folder, secretsFolder: resolve(secretsFolder ?? join(folder, 'secrets')) }
  const secretValues = new SecretValues()
  const showAgain = hideSecrets(secretValues)
  const stored: KnownObjects = { list: [] }
  const loading: LoadOptions = { ...options, ...places, secretValues, stored }
  return {
    folder,
    stored,
    secrets: new SecretSource(places.secretsFolder, options.environment, secretValues),
    load: () => loadConfiguration(loading),
    watch: (listener) => watchConfiguration({ ...loading, ...listener }),
    settled: async () => {},
    close: async () => showAgain(),
  }
}
