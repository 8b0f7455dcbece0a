import { resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import type { CommandIo, CommandOutput, RunCommand } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  operatorName,
  required,
  terminalLine,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { withConfiguration, withDatabase } from '#cli/command-line/installation.ts'
import { configOption, databaseOptions, outputOption, secretsOption } from '#cli/command-line/options.ts'
import { webhookKeys } from '#config/configuration/sts-webhook.ts'
import type { TokenIssuer } from '#config/configuration/token-keys.ts'
import { type KeyKeeper, leaseMillis, noKeyMeter, type PassOutcome } from '#features/sts/publish/key-keeper.ts'
import {
  destinationName,
  type Publication,
  readBackName,
  readPublications,
  sourceName,
} from '#features/sts/publish/publication.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { suggestion } from '#kernel/suggest.ts'
import { copiesLiveUntil, type KeyRing, keyIn, mayActivateAt, type RingKey, readRing } from '#keys/key-ring.ts'
import { followSeconds, isJustRotated, type TokenKeyRings } from '#keys/token-key-rings.ts'
import { createRuntime, type Runtime } from '#server/composition/runtime.ts'
import { createServices } from '#server/composition/services.ts'
import type { Storage } from '#server/composition/stores.ts'
import { createKeyKeeper, keyIssuers } from '#server/composition/token-keys.ts'

/** Also the options of `sts publish`. */
export const publishOptions = {
  ...configOption,
  ...databaseOptions,
  ...secretsOption,
  endpoint: { value: 'NAME', about: 'Only this endpoint' },
  ...outputOption,
} as const
type PublishValues = Values<typeof publishOptions>

const options = {
  ...publishOptions,
  now: {
    about: 'rotate: do not wait until every verifier can know the key; some may refuse its tokens for a time',
  },
  yes: { about: 'revoke: confirm' },
  by: { value: 'NAME', about: 'rotate, revoke: name of the operator, for the audit (default the system user)' },
} as const
type KeyValues = Values<typeof options>

/** Also an action of `sts`. */
export const publishAction = {
  usage: '--config SOURCE [--endpoint NAME] [options]',
  about: 'Publish the documents now and read them back. Exit code 1 if that fails',
  run: publish,
} as const

const keys = defineCommand({
  name: 'keys',
  about: 'List, rotate, revoke and publish the keys of token endpoints.',
  options,
  actions: {
    list: {
      usage: '[--endpoint NAME] [options]',
      about: 'Show the keys and when their documents were published. Exit code 1 if publishing fails',
      run: list,
    },
    rotate: {
      usage: '--config SOURCE --endpoint NAME [--now] [options]',
      about: 'Create the next key. It signs when every verifier can know it; with --now, at once',
      run: rotate,
    },
    revoke: {
      usage: 'KID --config SOURCE --yes [options]',
      arguments: ['KID'],
      about: 'Remove a leaked key at once and let another key sign',
      run: revoke,
    },
    publish: publishAction,
  },
  examples: ['gatehouse keys list', 'gatehouse keys rotate --config config --endpoint aws'],
})

/** A kid may start with a dash, so it is moved after everything that could be an option. */
export const keysCommand: RunCommand = (args, io) => {
  const [first, second, ...rest] = args
  const isRevocation = first === 'revoke' && second !== undefined && !second.startsWith('--')
  return keys(isRevocation ? ['revoke', ...rest, '--', second] : args, io)
}

/** Long enough for the errors of a destination. */
const lineWidth = 1000

function list(values: KeyValues, _: readonly string[], io: CommandOutput): Promise<number> {
  const { endpoint } = values
  return withDatabase(values, async ({ keys: store }) => {
    const ofEndpoints = (await store.list()).filter((each) => each.endpoint !== webhookKeys)
    const stored = ofEndpoints.filter((each) => endpoint === undefined || each.endpoint === endpoint)
    const known = ofEndpoints.map((each) => each.endpoint)
    if (endpoint !== undefined && stored.length === 0) refuseUnknown(endpoint, known, 'endpoints with keys')
    const shown = stored.map((each) => ({
      endpoint: each.endpoint,
      ring: readRing(each.endpoint, each.ring),
      publications: readPublications(each.publications),
    }))
    await io.list(shown, {
      lines: (each) => keyLines(each).map((line) => terminalLine(line, lineWidth)),
      json: wireKeys,
      noun: 'keys',
      hint: 'The gateway creates them when it starts with sts.endpoints.',
    })
    return shown.every(isPublished) ? 0 : 1
  })
}

/** Throws an Error that names those that exist. */
function refuseUnknown(endpoint: string | undefined, known: readonly string[], what: string): never {
  if (endpoint === undefined || known.length === 0) throw new Error(`there are no ${what}`)
  throw new Error(`no endpoint "${endpoint}"${suggestion(endpoint, known)}; the ${what} are ${known.join(', ')}`)
}

function rotate(values: KeyValues, _: readonly string[], io: CommandOutput): Promise<number> {
  required(values.config, 'config')
  const endpoint = required(values.endpoint, 'endpoint')
  return withKeyTools(values, io, async ({ rings, keeper, issuers }) => {
    const [issuer] = chosenIssuers(issuers, endpoint)
    if (issuer === undefined) return 1
    const present = await rings.tend(endpoint)
    const by = operatorName(values.by)
    const isJoined = (ring: KeyRing): boolean => values.now === true && isJustRotated(ring, Date.now())
    const isWaiting = values.now && keyIn(present, 'next') !== undefined
    const ring =
      isWaiting || isJoined(present) ? present : await rings.rotate(endpoint, by, values.now ? 'join' : 'refuse')
    const published = await publishNow(keeper, issuer, io)
    if (isJoined(ring)) {
      const code = printKeys([{ endpoint, ...published }], io)
      note(io, [joinedNote(ring)])
      return code
    }
    if (!values.now) return printKeys([{ endpoint, ...published }], io)
    const kid = keyIn(ring, 'next')?.kid ?? ''
    if (issuer.destinations.some((place) => published.publications.get(destinationName(place))?.failures !== 0)) {
      printKeys([{ endpoint, ...published }], io)
      throw new Error(
        'the next key was not published everywhere, so it does not sign yet; fix the destinations that FAILED and try again',
      )
    }
    await rings.activate(endpoint, kid, by)
    const code = printKeys([{ endpoint, ...(await publishNow(keeper, issuer, io)) }], io)
    note(io, [`${kid} signs now. All gateways follow within ${followSeconds} seconds.`])
    note(io, [`Verifiers with a cached copy of the documents may refuse its tokens ${copies(published.ring)}.`])
    return code
  })
}

const joinedNote = (ring: KeyRing): string => {
  const { kid, activated } = keyIn(ring, 'active') ?? { kid: '', activated: null }
  return `${kid} signs since ${time(activated)}: it replaced another key just now, so this call made no further one. All gateways follow within ${followSeconds} seconds.`
}

function revoke(values: KeyValues, [kid = '']: readonly string[], io: CommandOutput): Promise<number> {
  required(values.config, 'config')
  if (!values.yes) throw new WrongUsage(`verifiers will refuse all tokens that ${kid} signed; add --yes to revoke it`)
  return withKeyTools(values, io, async ({ rings, keeper, issuers, store }) => {
    const stored = (await store.list()).filter(({ endpoint }) => endpoint !== webhookKeys)
    // Issuers of different hosts may share a configured key.
    const owners = stored
      .map(({ endpoint, ring }) => ({ endpoint, ring: readRing(endpoint, ring) }))
      .filter(({ endpoint, ring }) => endpoint === (values.endpoint ?? endpoint) && keyOf(ring, kid) !== undefined)
    if (owners.length === 0) {
      throw new Error(
        `no endpoint${values.endpoint === undefined ? '' : ` "${values.endpoint}"`} has the key ${kid}; run "gatehouse keys list" to see the keys`,
      )
    }
    const configured = owners.map(({ endpoint, ring }) => {
      const issuer = issuers.find((each) => each.endpoint === endpoint)
      if (issuer === undefined) throw new Error(`endpoint "${endpoint}" has the key but is not configured`)
      return { endpoint, ring, issuer }
    })
    // Publishing may wait or fail, and must not delay or hide a revocation.
    for (const { endpoint, ring } of configured) {
      note(io, revocationNotes(kid, ring, await rings.revoke(endpoint, kid, operatorName(values.by))))
    }
    const published: EndpointKeys[] = []
    for (const { endpoint, issuer } of configured) {
      published.push({ endpoint, ...(await publishNow(keeper, issuer, io)) })
    }
    return printKeys(published, io)
  })
}

const keyOf = (ring: KeyRing, kid: string): RingKey | undefined => ring.keys.find((key) => key.kid === kid)

function revocationNotes(kid: string, before: KeyRing, after: KeyRing): string[] {
  const signs = keyIn(after, 'active')?.kid ?? ''
  const lines = [
    `Revoked ${kid}. All gateways stop using it within ${followSeconds} seconds; a gateway that cannot reach the database, within five minutes.`,
    `Verifiers with a cached copy of the documents accept tokens of ${kid} ${copies(after)}. If that is too long, remove the trust there.`,
  ]
  if (keyIn(before, 'active')?.kid === signs) return lines
  return [...lines, `${signs} signs now. Verifiers with a cached copy may refuse its tokens for as long.`]
}

function copies(ring: KeyRing): string {
  const until = copiesLiveUntil(ring, Date.now())
  if (until === undefined)
    return 'until their copy expires, which is unknown because the documents were never read back'
  return `until ${new Date(until).toISOString()}`
}

/** With `--output json`, notes go to stderr. */
function note(io: CommandOutput, lines: readonly string[]): void {
  for (const line of lines) (io.isJson ? io.stderr : io.stdout)(terminalLine(line, lineWidth))
}

function publish(values: PublishValues, _: readonly string[], io: CommandOutput): Promise<number> {
  required(values.config, 'config')
  return withKeyTools(values, io, async ({ keeper, issuers }) => {
    const published: EndpointKeys[] = []
    for (const issuer of chosenIssuers(issuers, values.endpoint)) {
      published.push({ endpoint: issuer.endpoint, ...(await publishNow(keeper, issuer, io)) })
    }
    return printKeys(published, io)
  })
}

function printKeys(endpoints: readonly EndpointKeys[], io: CommandOutput): number {
  for (const each of endpoints) {
    for (const line of keyLines(each)) io.stdout(terminalLine(line, lineWidth))
  }
  io.result(endpoints.map(wireKeys))
  return endpoints.every(isPublished) ? 0 : 1
}

/** The stored keys and publications of an endpoint. */
interface EndpointKeys {
  readonly endpoint: string
  readonly ring: KeyRing
  readonly publications: ReadonlyMap<string, Publication>
}

/** The keys in the order of their lives, then the publications. Private parts are not shown. */
function keyLines({ endpoint, ring, publications }: EndpointKeys): string[] {
  const order = ['next', 'active', 'retiring'] as const
  const keys = order.flatMap((state) => ring.keys.filter((key) => key.state === state))
  const lines = keys.map((key) => `  ${key.state.padEnd(8)} ${key.kid} ${key.alg}  ${keyNote(key, ring)}`)
  const places = [...publications].map(([name, publication]) => `  ${placeLine(name, publication)}`)
  return [endpoint, ...lines, ...places]
}

function wireKeys({ endpoint, ring, publications }: EndpointKeys) {
  const activatesAt = mayActivateAt(ring)
  return {
    endpoint,
    keys: ring.keys.map(({ kid, alg, state, given, custody, created, visible, activated, gone }) => ({
      kid,
      alg,
      state,
      given,
      custody,
      created: time(created),
      visibleSince: time(visible),
      activated: time(activated),
      ...(state === 'next' ? { activatesAt: time(activatesAt ?? null) } : {}),
      goneAt: time(gone),
    })),
    publications: Object.fromEntries(
      [...publications].map(([name, { done, failures, error, retryAt }]) => [
        name,
        { done: time(done), failures, error, retryAt: time(retryAt) },
      ]),
    ),
  }
}

const isPublished = ({ publications }: EndpointKeys): boolean =>
  [...publications.values()].every(({ failures }) => failures === 0)

function keyNote(key: RingKey, ring: KeyRing): string {
  const kept = key.custody === null ? '' : `, in ${key.custody.key} version ${key.custody.version}`
  const given = `${key.given ? ', given' : ''}${kept}`
  if (key.state === 'active') return `signs since ${time(key.activated)}${given}`
  if (key.state === 'retiring') return `removed from the documents at ${time(key.gone)}`
  const at = mayActivateAt(ring)
  if (at === undefined) return `waits until the issuer shows it${given}`
  return `published since ${time(key.visible)}, signs from ${time(at)}${given}`
}

function placeLine(name: string, { done, failures, error, retryAt }: Publication): string {
  if (name === sourceName) return `key source: REJECTED, keeping the keys above: ${error}`
  const what = name === readBackName ? 'read back from the issuer' : `published to ${name}`
  if (failures === 0) return `${what}: ${time(done) ?? 'never'}`
  const last = done === null ? 'never succeeded' : `last succeeded at ${time(done)}`
  const often = failures === 1 ? 'once' : `${failures} times`
  return `${what}: FAILED ${often}, ${last}, next attempt at ${time(retryAt)}: ${error}`
}

const time = (millis: number | null): string | null => (millis === null ? null : new Date(millis).toISOString())

interface KeyTools {
  readonly rings: TokenKeyRings
  readonly keeper: KeyKeeper
  readonly issuers: readonly TokenIssuer[]
  readonly store: Storage['keys']
}

const busyMillis = 500

/** Opens the database and the keys of the configured endpoints. */
function withKeyTools(
  values: PublishValues,
  io: CommandIo,
  work: (tools: KeyTools) => Promise<number>,
): Promise<number> {
  const dataFolder = resolve(values.data)
  return withDatabase(values, (storage) =>
    withConfiguration(
      values,
      io,
      ({ configuration, secrets, scope }) => {
        const [clock, log] = [systemClock, silentLogger]
        const { folder: configFolder } = configuration
        const services = createServices({
          storage,
          configFolder,
          dataFolder,
          secrets,
          clock,
          log,
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
          clock,
          log,
          meter: noKeyMeter,
          useTarget: async (name, use) => {
            // Targets are opened only if documents are published to one.
            runtime ??= createRuntime(configuration, services).then((made) => scope.own(made))
            return use((await runtime).target(name))
          },
        })
        return work({ rings, keeper, issuers, store: storage.keys })
      },
      true,
    ),
  )
}

/** Throws an Error if the endpoint does not exist, or if there is none. */
function chosenIssuers(issuers: readonly TokenIssuer[], name: string | undefined): readonly TokenIssuer[] {
  const chosen = name === undefined ? issuers : issuers.filter(({ endpoint }) => endpoint === name)
  if (chosen.length > 0) return chosen
  const names = issuers.map(({ endpoint }) => endpoint)
  return refuseUnknown(name, names, 'token endpoints in the configuration')
}

/** Publishes and reads back now; waits for another process that publishes, or that was killed while it did. */
async function publishNow(
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
