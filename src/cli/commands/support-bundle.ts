import { readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { catalog } from '#catalog/catalog.ts'
import {
  type CommandOutput,
  checkOptions,
  defineCommand,
  fileProblem,
  messageOf,
  type RunCommand,
  required,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import {
  checkListenOptions,
  databaseOptions,
  listenOptions,
  outputOption,
  sourceOptions,
} from '#cli/command-line/options.ts'
import { programVersions } from '#cli/command-line/program-versions.ts'
import { journalLines, lastLines } from '#cli/support-bundle/log-lines.ts'
import { Scrubber } from '#cli/support-bundle/scrub.ts'
import { tarGz } from '#cli/support-bundle/tar.ts'
import { isKubernetes, openConfigurationSource } from '#config/watch/open-source.ts'
import { parseHostPort } from '#kernel/address.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import { checkCommand } from './check.ts'
import { doctorCommand } from './doctor.ts'

const options = {
  ...sourceOptions,
  ...databaseOptions,
  ...listenOptions,
  log: { value: 'FILE', about: 'File with the log of the gateway, of which the last lines are added' },
  journal: { value: 'UNIT', about: 'Unit of systemd instead, such as gatehouse' },
  ...outputOption,
} as const
type BundleValues = Values<typeof options>

export const supportBundleCommand = defineCommand({
  name: 'support-bundle',
  about: `Write what a helper needs to a tar.gz file: versions, the configuration without secrets, what check and doctor
say, the metrics and readiness of a running gateway, and the last lines of its log. Nothing is sent anywhere.`,
  usage: '[FILE] --config SOURCE [--log FILE] [options of serve]',
  arguments: ['[FILE]'],
  options,
  notes: `FILE is new, and only you can read it (default gatehouse-support-TIME.tar.gz in this folder). Its manifest.json says what is in it,
and what could not be read and why. Values of secrets are replaced, and with them every part of an address behind its
host that is not a common word; names of users, hosts and groups are not: look through it before you give it away.
Exit code: 0 if the file was written, also if a part is missing.`,
  examples: [
    'gatehouse support-bundle --config config --data data --journal gatehouse',
    'gatehouse support-bundle bundle.tar.gz --config config --data data --log gatehouse.log',
  ],
  run: writeBundle,
})

interface Part {
  readonly file: string
  readonly about: string
  /** Throws an Error with the reason if there is nothing. */
  read(): Promise<string>
}

interface Manifest {
  readonly made: Date
  readonly files: { readonly file: string; readonly about: string; readonly bytes: number }[]
  readonly missing: { readonly file: string; readonly about: string; readonly reason: string }[]
}

async function writeBundle(values: BundleValues, [given]: readonly string[], io: CommandOutput): Promise<void> {
  const config = required(values.config, 'config')
  if (values.log !== undefined && values.journal !== undefined) {
    throw new WrongUsage('--log and --journal cannot be combined')
  }
  checkListenOptions(values, values.database ?? process.env['GATEHOUSE_DATABASE'])
  checkOptions({ journal: () => checkUnit(values.journal) })
  const made = systemClock()
  const target = resolve(given ?? `gatehouse-support-${made.toISOString().replaceAll(/[:.]/g, '-')}.tar.gz`)
  const scope = new Scope()
  try {
    const scrubber = new Scrubber()
    scrubber.learnEnvironment(process.env)
    scrubber.learnEnvironment({ GATEHOUSE_DATABASE: values.database })
    learnSecrets(values.secrets ?? (isKubernetes(config) ? undefined : join(config, 'secrets')), scrubber)
    const manifest: Manifest = { made, files: [], missing: [] }
    const files = new Map<string, string>()
    for (const { file, about, read } of parts(config, values, scrubber, scope)) {
      try {
        const text = await read()
        files.set(file, text)
        manifest.files.push({ file, about, bytes: Buffer.byteLength(text) })
      } catch (error) {
        manifest.missing.push({ file, about, reason: scrubber.text(messageOf(error)) })
      }
    }
    const all = new Map([['manifest.json', json(manifest)], ...files])
    try {
      writeFileSync(target, tarGz(all, made), { flag: 'wx', mode: 0o600 })
    } catch (error) {
      const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
      throw exists ? new Error(`${target} exists; choose another file`, { cause: error }) : error
    }
    io.stdout(`Wrote ${target}`)
    for (const { file, about } of manifest.files) io.stdout(`  ${file.padEnd(18)} ${about}`)
    for (const { file, reason } of manifest.missing) io.stderr(`gatehouse support-bundle: without ${file}: ${reason}`)
    io.result({ file: target, ...manifest })
  } finally {
    await scope.close()
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

/** In the order in which they must be read: what the configuration has as a secret is not shown by others. */
function parts(config: string, values: BundleValues, scrubber: Scrubber, scope: Scope): readonly Part[] {
  return [
    {
      file: 'versions.json',
      about: 'versions of Gatehouse, Node.js, SQLite and the system, and the names of variables that are set',
      read: async () => json({ ...(await programVersions()), variables: variableNames() }),
    },
    {
      file: 'configuration.json',
      about: 'the objects as they were read, with names instead of values of secrets',
      read: async () => json(await readConfiguration(config, values, scrubber, scope)),
    },
    {
      file: 'check.json',
      about: 'what "gatehouse check --production" says',
      read: () => outputOf(checkCommand, ['--production', ...checkArguments(values)], scrubber),
    },
    {
      file: 'doctor.json',
      about: 'what "gatehouse doctor" says',
      read: () => outputOf(doctorCommand, doctorArguments(values), scrubber),
    },
    { file: 'ready.json', about: 'the answer of /ready', read: () => fetchText(values.metrics, '/ready', scrubber) },
    { file: 'metrics.txt', about: 'the metrics', read: () => fetchText(values.metrics, '/metrics', scrubber) },
    { file: 'log.txt', about: 'the last lines of the log', read: () => readLog(values, scrubber) },
  ]
}

/** Not the values, each of which may be a secret. */
const variableNames = (): string[] =>
  Object.keys(process.env)
    .filter((name) => /^(?:GATEHOUSE|NODE|UV|MALLOC|OTEL|POD|KUBERNETES)_|_PROXY$|^KUBECONFIG$|^TZ$|^LANG$/i.test(name))
    .sort()

async function readConfiguration(config: string, values: BundleValues, scrubber: Scrubber, scope: Scope) {
  const source = scope.own(
    await openConfigurationSource({
      config,
      secretsFolder: values.secrets,
      kubeconfig: values.kubeconfig,
      answerMillis,
      strictSecrets: false,
      keepObjects: true,
      environment: process.env,
      catalog,
      log: silentLogger,
    }),
  )
  const { found, objects = [], hash } = await source.load()
  for (const { value } of objects) scrubber.learn(value)
  return {
    hash,
    found: scrubber.json(found),
    objects: objects.map(({ kind, name, value }) => scrubber.json({ kind, object: name, value })),
  }
}

const answerMillis = 10_000
const mostSecrets = 2_000

/** Whatever is in the folder of secrets, also what no object names. */
function learnSecrets(folder: string | undefined, scrubber: Scrubber): void {
  if (folder === undefined) return
  let names: readonly string[]
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).slice(0, mostSecrets)
  } catch {
    return
  }
  for (const name of names) {
    try {
      scrubber.add(readSmallFileSync(join(folder, name)).trim(), `secret ${name}`)
    } catch {
      // A folder, or a file that no part can have read either.
    }
  }
}

const optionsOf = (values: BundleValues, names: readonly (keyof BundleValues)[]): string[] =>
  names.flatMap((name) => {
    const value = values[name]
    const texts = typeof value === 'string' ? [value] : Array.isArray(value) ? value : []
    return texts.flatMap((text) => [`--${name}`, text])
  })

const doctorArguments = (values: BundleValues): string[] =>
  optionsOf(values, ['config', 'kubeconfig', 'secrets', 'data', 'database', 'tls-cert', 'tls-key'])

const checkArguments = (values: BundleValues): string[] => [
  ...doctorArguments(values),
  ...optionsOf(values, ['listen', 'metrics', 'trusted-proxy']),
]

async function outputOf(command: RunCommand, args: readonly string[], scrubber: Scrubber): Promise<string> {
  const [lines, errors]: [string[], string[]] = [[], []]
  const io = { stdout: (line: string) => void lines.push(line), stderr: (line: string) => void errors.push(line) }
  const code = await command([...args, '--output', 'json'], io)
  if (lines.length === 0) throw new Error(errors[0] ?? `it ended with ${code}`)
  return json({ exitCode: code, ...(scrubber.json(JSON.parse(lines.join('\n'))) as object) })
}

const mostBytes = 16 << 20

async function fetchText(metrics: string, path: string, scrubber: Scrubber): Promise<string> {
  if (metrics === 'off') throw new Error('--metrics is off')
  const { host, port } = parseHostPort(metrics)
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  const address = `http://${name}:${port}${path}`
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMillis) })
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length
      if (bytes > mostBytes) throw new Error(`more than ${mostBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
      .toString()
      .split('\n')
      .map((line) => scrubber.text(line))
      .join('\n')
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    throw new Error(`no gateway answers at ${address}: ${messageOf(cause)}`, { cause: error })
  }
}

function checkUnit(unit: string | undefined): void {
  if (unit !== undefined && !/^[A-Za-z0-9][A-Za-z0-9:_.@-]*$/.test(unit)) throw new Error('is not the name of a unit')
}

async function readLog({ log, journal }: BundleValues, scrubber: Scrubber): Promise<string> {
  if (log !== undefined) {
    const lines = await lastLines(log).catch((error: unknown) => {
      throw new Error(fileProblem(log, error), { cause: error })
    })
    return withoutSecretLines(lines, scrubber)
  }
  if (journal === undefined) throw new Error('neither --log nor --journal was given')
  return withoutSecretLines(await journalLines(journal), scrubber)
}

/** Lines of JSON are cleared field by field. A private key may have several lines. */
const withoutSecretLines = (lines: readonly string[], scrubber: Scrubber): string =>
  scrubber.text(lines.map((line) => logLine(line, scrubber)).join('\n'))

function logLine(line: string, scrubber: Scrubber): string {
  if (!line.startsWith('{')) return line
  try {
    return JSON.stringify(scrubber.json(JSON.parse(line)))
  } catch {
    return line
  }
}
