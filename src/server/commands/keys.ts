import { readRing } from '#engine/keys/ring-record.ts'
import { readPublications } from '#engine/sts/publish/publication.ts'
import { webhookKeys } from '#sdk/sts-webhook.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { type EndpointKeys, isInOrder, keyJson, keyLines } from '#server/commands/key-lines.ts'
import { chosenIssuers, publishNow, withKeyTools } from '#server/commands/key-tools.ts'
import { databaseOptions, databaseUsage, withDatabase } from '#server/commands/open-database.ts'
import { terminalLine } from '#server/commands/terminal-line.ts'
import type { Storage } from '#storage/open.ts'

const keysUsage = `Usage: gatehouse keys list [--endpoint NAME] [OPTIONS]
       gatehouse keys rotate --config DIR --endpoint NAME [OPTIONS]
       gatehouse keys publish --config DIR [--endpoint NAME] [OPTIONS]

list     Print the keys of token endpoints and the state of publishing; exit code 1 if something failed
rotate   Create the next key of an endpoint; it signs once every verifier can know it
publish  Write the documents of endpoints now, and read them back; exit code 1 if that fails

${databaseUsage}
  --config DIR      rotate and publish: the folder of YAML, or kubernetes:NAMESPACE
  --secrets DIR     files for secrets (secrets/ of the configuration)
  --endpoint NAME   this one only
  --json            for programs`

const options = {
  ...databaseOptions,
  config: { type: 'string' },
  secrets: { type: 'string' },
  endpoint: { type: 'string' },
  json: { type: 'boolean' },
} as const

export type KeyValues = Extract<ReturnType<typeof read>, { values: unknown }>['values']
type Action = (storage: Storage, values: KeyValues, io: CommandIo) => Promise<number>

const read = (args: string[], usage: string, io: CommandIo) =>
  readArguments(args, { usage, options, positionals: 1 }, io)
/** A line of an error is not cut. */
const wide = 1000

class WrongUsage extends Error {}

/** `gatehouse keys list|rotate|publish`. */
export const keysCommand: RunCommand = (args, io) =>
  runKeyAction({ command: 'keys', names: ['list', 'rotate', 'publish'], usage: keysUsage }, args, io)

/** Runs one of the actions under the name of a command. */
export async function runKeyAction(
  { command, names, usage }: { readonly command: string; readonly names: readonly string[]; readonly usage: string },
  args: string[],
  io: CommandIo,
): Promise<number> {
  const given = read(args, usage, io)
  if ('exit' in given) return given.exit
  const { values, positionals } = given
  try {
    const name = positionals[0] ?? ''
    const action = names.includes(name) ? actions.get(name) : undefined
    if (action === undefined) throw new WrongUsage(`unknown action "${name}"`)
    const run = action(values)
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
const actions: ReadonlyMap<string, (values: KeyValues) => Action> = new Map<string, (values: KeyValues) => Action>([
  ['list', () => list],
  ['rotate', (values) => rotate(required(values.config, 'config'), required(values.endpoint, 'endpoint'))],
  ['publish', (values) => publish(required(values.config, 'config'))],
])

const list: Action = async ({ keys }, { endpoint, json }, io) => {
  const ofEndpoints = (await keys.list()).filter((each) => each.endpoint !== webhookKeys)
  const stored = ofEndpoints.filter((each) => endpoint === undefined || each.endpoint === endpoint)
  if (stored.length === 0) throw new Error(endpoint === undefined ? 'there are no keys' : `no keys of "${endpoint}"`)
  return tell(
    stored.map((each) => ({
      endpoint: each.endpoint,
      ring: readRing(each.endpoint, each.ring),
      publications: readPublications(each.publications),
    })),
    json,
    io,
  )
}

const rotate =
  (config: string, endpoint: string): Action =>
  (storage, values, io) =>
    withKeyTools({ ...values, config }, storage, async ({ rings, keeper, issuers }) => {
      const [issuer] = chosenIssuers(issuers, endpoint)
      if (issuer === undefined) return 1
      await rings.tend(endpoint)
      await rings.rotate(endpoint)
      const outcome = await publishNow(keeper, issuer)
      return tell([{ endpoint, ...outcome }], values.json, io)
    })

const publish =
  (config: string): Action =>
  (storage, values, io) =>
    withKeyTools({ ...values, config }, storage, async ({ keeper, issuers }) => {
      const told: EndpointKeys[] = []
      for (const issuer of chosenIssuers(issuers, values.endpoint)) {
        told.push({ endpoint: issuer.endpoint, ...(await publishNow(keeper, issuer)) })
      }
      return tell(told, values.json, io)
    })

function tell(endpoints: readonly EndpointKeys[], json: boolean | undefined, io: CommandIo): number {
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
