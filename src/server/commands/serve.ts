import { createPrivateKey, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { pino } from 'pino'
import { catalog } from '#catalog/catalog.ts'
import { defaultRenewalTimes, type RenewalTimes } from '#engine/session/session-renewal.ts'
import { defaultLimits } from '#engine/workflow/run-worker.ts'
import { parseHostPort } from '#kernel/address.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import type { CommandIo } from '#server/commands/command-line.ts'
import {
  checkOptions,
  defineCommand,
  required,
  type Values,
  WrongUsage,
  wholeNumber,
} from '#server/commands/command-line.ts'
import { configurationText } from '#server/commands/configuration-text.ts'
import { checkListenOptions, databaseOptions, listenOptions, sourceOptions } from '#server/commands/options.ts'
import { type Faults, type Gateway, startGateway, type WorkflowLimits } from '#server/gateway.ts'
import { type ConnectionLimits, defaultConnectionLimits } from '#server/http-limits.ts'
import { createAccessLog, createLogger, LineBuffer, type LogThreshold, logLevels } from '#server/log.ts'
import { hasColors, logText } from '#server/log-text.ts'
import { isKubernetes, openConfigurationSource } from '#server/open-configuration-source.ts'
import { ownPlaces } from '#server/private-files.ts'
import { ConfigurationRefused } from '#server/reload.ts'
import { clientAddressText } from '#server/trusted-proxies.ts'

interface Limit {
  readonly about: string
  readonly min: number
  readonly max: number
  readonly default: number
}

const { total, perAddress, headerSeconds, requestSeconds, idleSeconds } = defaultConnectionLimits
const { retries, leaseMillis, stepMillis, atOnce } = defaultLimits
const { everyMillis, graceMillis } = defaultRenewalTimes

const limits = {
  connections: { about: 'Open connections of the public listener', min: 32, max: 1_000_000, default: total },
  'connections-per-address': {
    about: 'Open connections of one address, except trusted proxies',
    min: 8,
    max: 1_000_000,
    default: perAddress,
  },
  'header-seconds': { about: 'Time to receive the headers of a request', min: 1, max: 300, default: headerSeconds },
  'request-seconds': { about: 'Time to receive a whole request', min: 1, max: 3600, default: requestSeconds },
  'idle-seconds': { about: 'Time to keep an idle connection', min: 1, max: 3600, default: idleSeconds },
  'workflow-attempts': { about: 'Attempts of a step before an incident', min: 1, max: 100, default: retries.attempts },
  'workflow-lease-seconds': {
    about: 'Time after which another process takes over a run',
    min: 5,
    max: 3600,
    default: leaseMillis / 1000,
  },
  'workflow-step-seconds': { about: 'Time limit of a step', min: 1, max: 86_400, default: stepMillis / 1000 },
  'workflow-parallel': { about: 'Stored runs that execute at a time', min: 1, max: 1000, default: atOnce },
  'person-check-seconds': {
    about: 'How often to read signed-in users from the directory',
    min: 1,
    max: 3600,
    default: everyMillis / 1000,
  },
  'person-grace-seconds': {
    about: 'How long sessions survive a directory that fails',
    min: 1,
    max: 43_200,
    default: graceMillis / 1000,
  },
} as const satisfies Record<string, Limit>

type LimitName = keyof typeof limits
const names = Object.keys(limits) as LimitName[]

const limitOptions = Object.fromEntries(
  names.map((name) => [name, { value: 'N', about: `${limits[name].about} (default ${limits[name].default})` }]),
) as { readonly [name in LimitName]: { readonly value: 'N'; readonly about: string } }

/** Throws WrongUsage. */
export function readLimits(values: { readonly [name in LimitName]?: string | undefined }): {
  readonly connectionLimits: ConnectionLimits
  readonly workflowLimits: WorkflowLimits
  readonly renewalTimes: RenewalTimes
} {
  const read = (name: LimitName): number => {
    const text = values[name]
    const { min, max, default: fallback } = limits[name]
    const number = text === undefined ? fallback : wholeNumber(text, min, max)
    if (number === undefined) throw new WrongUsage(`--${name} must be a whole number from ${min} to ${max}`)
    return number
  }
  return {
    connectionLimits: {
      total: read('connections'),
      perAddress: read('connections-per-address'),
      headerSeconds: read('header-seconds'),
      requestSeconds: read('request-seconds'),
      idleSeconds: read('idle-seconds'),
    },
    workflowLimits: {
      attempts: read('workflow-attempts'),
      leaseMillis: 1000 * read('workflow-lease-seconds'),
      stepMillis: 1000 * read('workflow-step-seconds'),
      atOnce: read('workflow-parallel'),
    },
    renewalTimes: {
      everyMillis: 1000 * read('person-check-seconds'),
      graceMillis: 1000 * read('person-grace-seconds'),
    },
  }
}

const logFormats = ['auto', 'json', 'text'] as const

const options = {
  ...sourceOptions,
  ...databaseOptions,
  ...listenOptions,
  strict: {
    about: `Refuse to start, and to reload, while an object has an error, instead of serving the others
(default: the variable GATEHOUSE_STRICT is true)`,
  },
  'log-level': { value: 'LEVEL', default: 'info', about: logLevels.join(', ') },
  'log-format': { value: 'FORMAT', default: 'auto', about: 'json, text, or auto: text on a terminal, json otherwise' },
  'drain-seconds': { value: 'N', default: '20', about: 'Time to finish open requests after SIGTERM' },
  ...limitOptions,
} as const

export const serveCommand = (args: string[], io: CommandIo, faults: Faults = {}): Promise<number> =>
  defineCommand({
    name: 'serve',
    about: 'Run the gateway. It reloads the configuration when it changes.',
    usage: '--config SOURCE [options]',
    options,
    examples: [
      'gatehouse serve --config config',
      'gatehouse serve --config kubernetes:identity --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key',
    ],
    describe: reasonOf,
    run: (values) => serve(values, io, faults),
  })(args, io)

async function serve(values: Values<typeof options>, io: CommandIo, faults: Faults): Promise<number> {
  const config = required(values.config, 'config')
  const level = logLevels.find((known) => known === values['log-level'])
  if (level === undefined) throw new WrongUsage(`--log-level must be one of ${logLevels.join(', ')}`)
  const format = logFormats.find((known) => known === values['log-format'])
  if (format === undefined) throw new WrongUsage(`--log-format must be one of ${logFormats.join(', ')}`)
  const drainSeconds = Number(values['drain-seconds'])
  if (!Number.isInteger(drainSeconds) || drainSeconds < 0) {
    throw new WrongUsage('--drain-seconds must be a whole number')
  }
  const [certFile, keyFile] = [values['tls-cert'], values['tls-key']]
  const databaseUrl = values.database ?? process.env['GATEHOUSE_DATABASE']
  checkListenOptions(values, databaseUrl)
  checkOptions(
    {
      'tls-cert': () => certFile === undefined || new X509Certificate(readSmallFileSync(certFile)),
      'tls-key': () => keyFile === undefined || createPrivateKey(readSmallFileSync(keyFile)),
    },
    reasonOf,
  )
  const limits = readLimits(values)
  const listenUrl = `${certFile === undefined ? 'http' : 'https'}://${values.listen}`

  const environment = process.env
  const isText = format === 'text' || (format === 'auto' && process.stdout.isTTY)
  const { log, accessLog, flush } = isText ? textLog(level) : bufferedLog(level)
  try {
    const source = await openConfigurationSource({
      config,
      secretsFolder: values.secrets,
      kubeconfig: values.kubeconfig,
      environment,
      listenUrl,
      catalog,
      strictSecrets: true,
      ownPlaces: ownPlaces(resolve(values.data), databaseUrl),
      log,
    })
    const gateway = await startGateway({
      source,
      dataFolder: resolve(values.data),
      databaseUrl,
      strict: values.strict || environment['GATEHOUSE_STRICT'] === 'true',
      environment,
      listen: values.listen,
      metrics: values.metrics === 'off' ? undefined : values.metrics,
      tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
      trustedProxies: values['trusted-proxy'],
      ...limits,
      log,
      accessLog,
      faults,
    })
    const url = process.env['GATEHOUSE_URL'] ?? (parseHostPort(values.listen).port === 0 ? gateway.address : listenUrl)
    if (!isKubernetes(config)) {
      const text = configurationText(source.folder, 'welcome.txt', { config, data: values.data, url })
      if (text !== undefined) io.stdout(`${text}\n`)
    }
    io.stdout(`Listening on ${gateway.address}`)
    io.stdout(clientAddressText(values['trusted-proxy']))
    if (gateway.webhookAddress !== undefined) io.stdout(`Injector webhook on ${gateway.webhookAddress}`)
    if (gateway.metricsAddress !== undefined) io.stdout(`Metrics on ${gateway.metricsAddress}/metrics`)
    setTimeout(releaseStartMemory, settledMillis).unref()
    return await untilStopped(gateway, drainSeconds, io)
  } catch (error) {
    if (error instanceof ConfigurationRefused) for (const problem of error.problems) io.stderr(problem)
    throw error
  } finally {
    flush()
  }
}

/** From the start until what the start needed is released. */
const settledMillis = 1000

/**
 * Gives back what only the start needed, such as parsed YAML: a sixth of the process. V8 keeps it until memory becomes
 * short, which an idle gateway never sees.
 */
function releaseStartMemory(): void {
  setFlagsFromString('--expose-gc')
  const collect: NodeJS.GCFunction = runInNewContext('gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** Short lines for a person, each as soon as it is logged. */
function textLog(level: LogThreshold) {
  const destination = pino.destination({ sync: true })
  const colored = hasColors(process.env, process.stdout.isTTY)
  const write = (line: string): void => void destination.write(logText(line, colored))
  return { log: createLogger(level, { write }), accessLog: createAccessLog(level, write), flush: () => {} }
}

/** Log lines are written in batches, at the latest after a second, and at the end. */
function bufferedLog(level: LogThreshold) {
  const destination = pino.destination({ sync: false })
  const lines = new LineBuffer(destination)
  const timer = setInterval(() => lines.flush(), 1000)
  timer.unref()
  const flush = (): void => {
    clearInterval(timer)
    try {
      lines.flush()
      destination.flushSync()
    } catch {
      // Nothing was written, or the reader of the log has closed the pipe.
    }
  }
  process.once('exit', flush)
  return {
    log: createLogger(level, lines),
    accessLog: createAccessLog(level, (line) => lines.write(line)),
    flush,
  }
}

function untilStopped(gateway: Gateway, drainSeconds: number, io: CommandIo): Promise<number> {
  return new Promise((resolve) => {
    process.on('SIGHUP', () => void gateway.reload())
    let stopping = false
    const stop = (): void => {
      if (stopping) return
      stopping = true
      io.stdout('Shutting down: finishing open requests')
      const timer = setTimeout(() => {
        io.stderr('gatehouse serve: some requests did not finish in time and were cut off')
        resolve(1)
        process.exit(1)
      }, drainSeconds * 1000)
      timer.unref()
      gateway.close().then(
        () => resolve(0),
        (error: unknown) => {
          io.stderr(`gatehouse serve: ${reasonOf(error)}`)
          resolve(1)
        },
      )
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  })
}

const advice: Readonly<Record<string, string>> = {
  EADDRINUSE: 'choose another --listen or --metrics',
  ERR_OSSL_PEM_NO_START_LINE: 'it is not a PEM file',
  ERR_OSSL_UNSUPPORTED: 'it is not a PEM file, or it has a passphrase',
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: '--tls-key is not the key of --tls-cert',
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const help = 'code' in error && typeof error.code === 'string' ? advice[error.code] : undefined
  return help === undefined ? error.message : `${error.message}; ${help}`
}
