import { userInfo } from 'node:os'
import { copiesLiveUntil, type KeyRing, keyIn, type RingKey } from '#engine/keys/key-ring.ts'
import { readRing } from '#engine/keys/ring-record.ts'
import { followSeconds } from '#engine/keys/token-key-rings.ts'
import { destinationName, readPublications } from '#engine/sts/publish/publication.ts'
import { suggestion } from '#kernel/suggest.ts'
import { webhookKeys } from '#sdk/sts-webhook.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { type EndpointKeys, isInOrder, keyJson, keyLines } from '#server/commands/key-lines.ts'
import { chosenIssuers, publishNow, withKeyTools } from '#server/commands/key-tools.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'
import type { Storage } from '#storage/open.ts'

const keysUsage = `Usage: gatehouse keys list [--endpoint NAME] [OPTIONS]
       gatehouse keys rotate --config DIR --endpoint NAME [--now] [OPTIONS]
       gatehouse keys revoke KID --config DIR --yes [OPTIONS]
       gatehouse keys publish --config DIR [--endpoint NAME] [OPTIONS]

list     Print the keys of token endpoints and the state of publishing; exit code 1 if something failed
rotate   Create the next key of an endpoint; it signs once every verifier can know it, with --now at once
revoke   Forget a key at once and let another sign; for a key that leaked
publish  Write the documents of endpoints now, and read them back; exit code 1 if that fails

${databaseUsage}
  --config DIR      rotate, revoke and publish: the folder of YAML, or kubernetes:NAMESPACE
  --secrets DIR     files for secrets (secrets/ of the configuration)
  --endpoint NAME   this one only
  --now             rotate: do not wait until every verifier can know the key; some may refuse its tokens for a time
  --yes             revoke: confirm it; required
  --by NAME         rotate and revoke: the operator's name, for the audit (the system user)
  --json            print JSON`

const options = {
  ...databaseOptions,
  config: { type: 'string' },
  secrets: { type: 'string' },
  endpoint: { type: 'string' },
  now: { type: 'boolean' },
  yes: { type: 'boolean' },
  by: { type: 'string' },
  json: { type: 'boolean' },
} as const

export type KeyValues = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (storage: Storage, values: KeyValues, io: CommandIo) => Promise<number>

/** A kid may start with a dash, so it is moved behind everything that could be an option. */
function read([first, second, ...rest]: string[], usage: string, known: readonly string[], io: CommandIo) {
  const isRevocation = first === 'revoke' && second !== undefined && !second.startsWith('--')
  const args = [first, second].flatMap((word) => (word === undefined ? [] : [word]))
  const names = [`one of ${known.join(', ')}`]
  if (!isRevocation) return readArguments([...args, ...rest], { usage, options, positionals: 1, names }, io)
  return readArguments(['revoke', ...rest, '--', second], { usage, options, positionals: 2 }, io)
}

/** A line of an error is not cut. */
const wide = 1000

class WrongUsage extends Error {}

/** `gatehouse keys list|rotate|revoke|publish`. */
export const keysCommand: RunCommand = (args, io) =>
  runKeyAction({ command: 'keys', names: ['list', 'rotate', 'revoke', 'publish'], usage: keysUsage }, args, io)

interface KeyCommand {
  readonly command: string
  /** The actions that it runs here. */
  readonly names: readonly string[]
  /** All that it has; those above when absent. */
  readonly known?: readonly string[]
  readonly usage: string
}

/** Runs one of the actions under the name of a command. */
export async function runKeyAction(
  { command, names, known = names, usage }: KeyCommand,
  args: string[],
  io: CommandIo,
): Promise<number> {
  const [first = ''] = args
  if (first !== '' && !first.startsWith('-') && !names.includes(first)) {
    io.stderr(terminalLine(`gatehouse ${command}: unknown action "${first}"${suggestion(first, known)}`, wide))
    io.stderr(usage)
    return 2
  }
  const given = read(args, usage, known, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  try {
    const name = positionals[0] ?? ''
    const action = names.includes(name) ? actions.get(name) : undefined
    if (action === undefined) throw new WrongUsage(`unknown action "${name}"`)
    const run = action(values, positionals[1])
    return await withDatabase(values, (storage) => run(storage, values, io))
  } catch (error) {
    for (const line of (error instanceof Error ? error.message : String(error)).split('\n')) {
      io.stderr(terminalLine(`gatehouse ${command}: ${line}`, wide))
    }
    if (!(error instanceof WrongUsage)) return 1
    io.stderr(usage)
    return 2
  }
}

/** Usage is checked before the database is opened. */
type Prepare = (values: KeyValues, kid: string | undefined) => Action

const actions: ReadonlyMap<string, Prepare> = new Map<string, Prepare>([
  ['list', () => list],
  ['revoke', (values, kid) => revoke(...confirmed(values, kid))],
  ['rotate', (values) => rotate(required(values.config, 'config'), required(values.endpoint, 'endpoint'))],
  ['publish', (values) => publish(required(values.config, 'config'))],
])

const list: Action = async ({ keys }, { endpoint, json }, io) => {
  const ofEndpoints = (await keys.list()).filter((each) => each.endpoint !== webhookKeys)
  const stored = ofEndpoints.filter((each) => endpoint === undefined || each.endpoint === endpoint)
  if (stored.length === 0) throw new Error(noKeys(endpoint, ofEndpoints))
  return printKeys(
    stored.map((each) => ({
      endpoint: each.endpoint,
      ring: readRing(each.endpoint, each.ring),
      publications: readPublications(each.publications),
    })),
    json,
    io,
  )
}

function noKeys(endpoint: string | undefined, stored: readonly { readonly endpoint: string }[]): string {
  if (stored.length === 0) return 'there are no keys yet; a gateway creates them when it starts with sts.endpoints'
  const names = stored.map((each) => each.endpoint)
  return `no keys of "${endpoint}"${suggestion(endpoint ?? '', names)}; there are keys of ${names.join(', ')}`
}

const rotate =
  (config: string, endpoint: string): Action =>
  (storage, values, io) =>
    withKeyTools({ ...values, config }, storage, async ({ rings, keeper, issuers }) => {
      const [issuer] = chosenIssuers(issuers, endpoint)
      if (issuer === undefined) return 1
      const present = await rings.tend(endpoint)
      const by = operator(values)
      const isWaiting = values.now === true && keyIn(present, 'next') !== undefined
      const waiting = values.now === true ? 'take' : 'refuse'
      const kid = keyIn(isWaiting ? present : await rings.rotate(endpoint, by, waiting), 'next')?.kid ?? ''
      const published = await publishNow(keeper, issuer, io)
      if (values.now !== true) return printKeys([{ endpoint, ...published }], values.json, io)
      if (issuer.destinations.some((place) => published.publications.get(destinationName(place))?.failures !== 0)) {
        printKeys([{ endpoint, ...published }], values.json, io)
        throw new Error(
          'the next key was not published everywhere, so it does not sign yet; correct what FAILED, and try again',
        )
      }
      await rings.activate(endpoint, kid, by)
      const code = printKeys([{ endpoint, ...(await publishNow(keeper, issuer, io)) }], values.json, io)
      note(values, io, [`${kid} signs from now on; all gateways follow within ${followSeconds} seconds.`])
      note(values, io, [`Verifiers that keep a copy of the documents may refuse its tokens ${copies(published.ring)}.`])
      return code
    })

const revoke =
  (config: string, kid: string): Action =>
  (storage, values, io) =>
    withKeyTools({ ...values, config }, storage, async ({ rings, keeper, issuers }) => {
      const stored = (await storage.keys.list()).filter(({ endpoint }) => endpoint !== webhookKeys)
      // Issuers of different hosts may share a given key.
      const owners = stored
        .map(({ endpoint, ring }) => ({ endpoint, ring: readRing(endpoint, ring) }))
        .filter(({ endpoint, ring }) => endpoint === (values.endpoint ?? endpoint) && keyOf(ring, kid) !== undefined)
      if (owners.length === 0) {
        throw new Error(
          `no endpoint${values.endpoint === undefined ? '' : ` "${values.endpoint}"`} has the key ${kid}; gatehouse keys list prints the keys`,
        )
      }
      const configured = owners.map(({ endpoint, ring }) => {
        const issuer = issuers.find((each) => each.endpoint === endpoint)
        if (issuer === undefined) throw new Error(`endpoint "${endpoint}", which has the key, is not configured`)
        return { endpoint, ring, issuer }
      })
      // Publishing may wait or fail, and must not delay or hide a revocation.
      for (const { endpoint, ring } of configured) {
        note(values, io, revocationNotes(kid, ring, await rings.revoke(endpoint, kid, operator(values))))
      }
      let code = 0
      for (const { endpoint, issuer } of configured) {
        code = Math.max(code, printKeys([{ endpoint, ...(await publishNow(keeper, issuer, io)) }], values.json, io))
      }
      return code
    })

const keyOf = (ring: KeyRing, kid: string): RingKey | undefined => ring.keys.find((key) => key.kid === kid)

function revocationNotes(kid: string, before: KeyRing, after: KeyRing): string[] {
  const signs = keyIn(after, 'active')?.kid ?? ''
  const lines = [
    `${kid} is revoked. All gateways stop using it within ${followSeconds} seconds; one that cannot reach the database, within five minutes.`,
    `Verifiers that keep a copy of the documents accept tokens of ${kid} ${copies(after)}. If that is too long, remove the trust there.`,
  ]
  if (keyIn(before, 'active')?.kid === signs) return lines
  return [...lines, `${signs} signs now; verifiers with such a copy may refuse its tokens for as long.`]
}

function copies(ring: KeyRing): string {
  const until = copiesLiveUntil(ring, Date.now())
  if (until === undefined)
    return 'for as long as they keep it, which is not known because the documents were never read back'
  return `until ${new Date(until).toISOString()}`
}

/** For people; what programs read stays alone on the standard output. */
function note({ json }: KeyValues, io: CommandIo, lines: readonly string[]): void {
  for (const line of lines) (json === true ? io.stderr : io.stdout)(terminalLine(line, wide))
}

const operator = ({ by = `${userInfo().username} (command line)` }: KeyValues): string => by

function confirmed({ config, yes }: KeyValues, kid: string | undefined): [config: string, kid: string] {
  if (kid === undefined) throw new WrongUsage('missing argument: KID; gatehouse keys list prints the keys')
  const folder = required(config, 'config')
  if (yes === true) return [folder, kid]
  throw new WrongUsage(`tokens that ${kid} signed will be refused; add --yes to revoke it`)
}

const publish =
  (config: string): Action =>
  (storage, values, io) =>
    withKeyTools({ ...values, config }, storage, async ({ keeper, issuers }) => {
      const published: EndpointKeys[] = []
      for (const issuer of chosenIssuers(issuers, values.endpoint)) {
        published.push({ endpoint: issuer.endpoint, ...(await publishNow(keeper, issuer, io)) })
      }
      return printKeys(published, values.json, io)
    })

function printKeys(endpoints: readonly EndpointKeys[], json: boolean | undefined, io: CommandIo): number {
  for (const each of endpoints) {
    for (const line of json === true ? [keyJson(each)] : keyLines(each).map((text) => terminalLine(text, wide))) {
      io.stdout(line)
    }
  }
  return endpoints.every(isInOrder) ? 0 : 1
}

function required(value: string | undefined, name: string): string {
  if (value === undefined) throw new WrongUsage(`--${name} is required`)
  return value
}
