import { resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadResult } from '#config/load.ts'
import { formatIssue } from '#config/located-issue.ts'
import type { TokenKeyRings } from '#engine/keys/token-key-rings.ts'
import { createRuntime, type Runtime } from '#engine/runtime.ts'
import { type KeyKeeper, leaseMillis, noKeyMeter, type PassOutcome } from '#engine/sts/publish/key-keeper.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { suggestion } from '#kernel/suggest.ts'
import type { Configuration } from '#sdk/configuration.ts'
import type { TokenIssuer } from '#sdk/token-keys.ts'
import type { CommandIo } from '#server/commands/commands.ts'
import { type ConfigPlaces, loadOnce } from '#server/commands/load-once.ts'
import { createServices } from '#server/services.ts'
import { createKeyKeeper, keyIssuers } from '#server/token-keys.ts'
import type { Storage } from '#storage/open.ts'

export interface KeyPlaces extends ConfigPlaces {
  readonly data: string
}

export interface KeyTools {
  readonly rings: TokenKeyRings
  readonly keeper: KeyKeeper
  readonly issuers: readonly TokenIssuer[]
}

const busyMillis = 500

/** Works on the keys of a configuration's endpoints. Throws an Error whose lines are the problems of the configuration. */
export async function withKeyTools<T>(
  places: KeyPlaces,
  storage: Storage,
  work: (tools: KeyTools) => Promise<T>,
): Promise<T> {
  const { value, scope } = await buildScoped(async (scope) => work(await openTools(places, storage, scope)))
  await scope.close()
  return value
}

async function openTools(places: KeyPlaces, storage: Storage, scope: Scope): Promise<KeyTools> {
  const dataFolder = resolve(places.data)
  const { loaded, secrets } = await loadOnce(places, true, scope)
  const configuration = usable(loaded)
  const services = createServices({
    storage,
    configFolder: configuration.folder,
    dataFolder,
    secrets,
    clock: systemClock,
    log: silentLogger,
    environment: process.env,
  })
  const issuers = keyIssuers(configuration)
  const rings = services.tokenKeys
  rings.configure(issuers)
  let runtime: Promise<Runtime> | undefined
  const keeper = createKeyKeeper({
    rings,
    store: storage.keys,
    dataFolder,
    clock: systemClock,
    log: silentLogger,
    meter: noKeyMeter,
    useTarget: async (name, use) => {
      // Targets are opened only where documents go to one.
      runtime ??= createRuntime(configuration, services).then((made) => scope.own(made))
      return use((await runtime).target(name))
    },
  })
  return { rings, keeper, issuers }
}

function usable({ configuration, issues }: LoadResult): Configuration {
  if (configuration !== undefined) return configuration
  throw new Error(['the configuration has errors', ...issues.map(formatIssue)].join('\n'))
}

/** Throws an Error where there is no such endpoint, or none at all. */
export function chosenIssuers(issuers: readonly TokenIssuer[], name: string | undefined): readonly TokenIssuer[] {
  const chosen = name === undefined ? issuers : issuers.filter(({ endpoint }) => endpoint === name)
  if (chosen.length > 0) return chosen
  const names = issuers.map(({ endpoint }) => endpoint)
  const unknown = (given: string): string =>
    `no endpoint "${given}"${suggestion(given, names)}; there are ${names.join(', ')}`
  throw new Error(name === undefined ? 'no token endpoints are configured' : unknown(name))
}

/** Writes and reads everything now; waits for another process that does, or that was killed while it did. */
export async function publishNow(
  keeper: Pick<KeyKeeper, 'pass'>,
  issuer: TokenIssuer,
  io: Pick<CommandIo, 'stderr'>,
): Promise<PassOutcome> {
  const end = performance.now() + leaseMillis + 10_000
  for (let reported = false; performance.now() < end; reported = true) {
    const outcome = await keeper.pass(issuer, true)
    if (outcome !== undefined) return outcome
    if (!reported) io.stderr(`Another process publishes for "${issuer.endpoint}". Waiting for at most two minutes.`)
    await delay(busyMillis)
  }
  throw new Error(`another process keeps publishing for "${issuer.endpoint}"`)
}
