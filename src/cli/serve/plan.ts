import { createPrivateKey, X509Certificate } from 'node:crypto'
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { checkOptions, required, type Values, WrongUsage, wholeNumber } from '#cli/command-line/command-line.ts'
import { checkListenOptions, databaseOptions, listenOptions, sourceOptions } from '#cli/command-line/options.ts'
import { readAddress } from '#database/databases.ts'
import { fileFailure } from '#kernel/file-failure.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import { type ConnectionLimits, defaultConnectionLimits } from '#requests/listener/http-limits.ts'
import { defaultRenewalTimes, type RenewalTimes } from '#requests/pipeline/session-renewal.ts'
import type { WorkflowLimits } from '#server/gateway.ts'
import type { TlsFiles } from '#server/listener-certificate.ts'
import { type LogThreshold, logLevels } from '#server/log/log.ts'
import { defaultLimits } from '#workflows/runs/run-worker.ts'

/** More processes than any machine that serves one gateway has cores. */
const mostWorkers = 64
/** As in the values of the chart. */
const maxStopSeconds = 3600

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
export function readLimits(values: { readonly [name in LimitName]?: string | undefined }): ServeLimits {
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

export const serveOptions = {
  ...sourceOptions,
  ...databaseOptions,
  ...listenOptions,
  strict: {
    about: `Refuse to start, and to reload, while an object has an error, instead of serving the others
(default: the variable GATEHOUSE_STRICT is true)`,
  },
  'log-level': { value: 'LEVEL', default: 'info', about: logLevels.join(', ') },
  'log-format': { value: 'FORMAT', default: 'auto', about: 'json, text, or auto: text on a terminal, json otherwise' },
  workers: {
    value: 'N',
    default: '1',
    about: `Processes that share the listeners, 1 to ${mostWorkers}, or auto: one per core. Requires PostgreSQL`,
  },
  'shutdown-delay': {
    value: 'SECONDS',
    default: '0',
    about: 'Time to keep serving after SIGTERM while /ready fails, for load balancers that poll it',
  },
  'drain-seconds': { value: 'N', default: '20', about: 'Time to finish open requests, after that' },
  ...limitOptions,
} as const

interface ServeLimits {
  readonly connectionLimits: ConnectionLimits
  readonly workflowLimits: WorkflowLimits
  readonly renewalTimes: RenewalTimes
}

/** The checked options of `gatehouse serve`. */
export interface ServePlan {
  readonly values: Values<typeof serveOptions>
  readonly config: string
  readonly databaseUrl: string | undefined
  readonly listenUrl: string
  readonly tls: TlsFiles | undefined
  readonly workers: number
  readonly logLevel: LogThreshold
  /** Undefined to decide by the terminal. */
  readonly logText: boolean | undefined
  readonly stop: StopTimes
  readonly limits: ServeLimits
}

/** What happens after SIGTERM. */
export interface StopTimes {
  /** How long everything is served while `/ready` fails. */
  readonly delaySeconds: number
  /** How long open requests may take after that. */
  readonly drainSeconds: number
}

/** Opens nothing but the files of a certificate. Throws WrongUsage. */
export function readServePlan(values: Values<typeof serveOptions>): ServePlan {
  const config = required(values.config, 'config')
  const logLevel = logLevels.find((known) => known === values['log-level'])
  if (logLevel === undefined) throw new WrongUsage(`--log-level must be one of ${logLevels.join(', ')}`)
  const format = logFormats.find((known) => known === values['log-format'])
  if (format === undefined) throw new WrongUsage(`--log-format must be one of ${logFormats.join(', ')}`)
  const stopSeconds = (name: 'drain-seconds' | 'shutdown-delay'): number => {
    const seconds = wholeNumber(values[name], 0, maxStopSeconds)
    if (seconds === undefined) throw new WrongUsage(`--${name} must be a whole number from 0 to ${maxStopSeconds}`)
    return seconds
  }
  const stop = { delaySeconds: stopSeconds('shutdown-delay'), drainSeconds: stopSeconds('drain-seconds') }
  const [certFile, keyFile] = [values['tls-cert'], values['tls-key']]
  const databaseUrl = values.database ?? process.env['GATEHOUSE_DATABASE']
  checkListenOptions(values, databaseUrl)
  checkOptions(
    {
      'tls-cert': () => certFile === undefined || new X509Certificate(readSmallFileSync(certFile)),
      'tls-key': () => keyFile === undefined || checkKey(keyFile, certFile),
    },
    reasonOf,
  )
  return {
    values,
    config,
    databaseUrl,
    listenUrl: `${certFile === undefined ? 'http' : 'https'}://${values.listen}`,
    tls: certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile },
    workers: readWorkers(values.workers, databaseUrl),
    logLevel,
    logText: format === 'auto' ? undefined : format === 'text',
    stop,
    limits: readLimits(values),
  }
}

/** Throws if the key is not that of the certificate, whose listener opens only after the database. */
function checkKey(keyFile: string, certFile: string | undefined): void {
  const key = createPrivateKey(readSmallFileSync(keyFile))
  if (certFile === undefined || new X509Certificate(readSmallFileSync(certFile)).checkPrivateKey(key)) return
  throw new Error(`${keyFile} is not the key of the certificate in ${certFile}`)
}

function readWorkers(text: string, databaseUrl: string | undefined): number {
  const count = text === 'auto' ? Math.min(availableParallelism(), mostWorkers) : wholeNumber(text, 1, mostWorkers)
  if (count === undefined) throw new WrongUsage(`--workers must be auto or a whole number from 1 to ${mostWorkers}`)
  const isShared = databaseUrl !== undefined && readAddress(databaseUrl).dialect === 'postgres'
  // Also where auto is 1, so that a configuration does not depend on the machine.
  if (!isShared && (count > 1 || text === 'auto')) {
    throw new WrongUsage(
      `--workers ${text} requires PostgreSQL, since SQLite serves one process; set --database, or use --workers 1`,
    )
  }
  return count
}

/** Printed once at SIGTERM or SIGINT. */
export const stopText = ({ delaySeconds }: StopTimes): string =>
  delaySeconds === 0
    ? 'Shutting down: finishing open requests'
    : `Shutting down: not ready from now on, serving for another ${delaySeconds} s`

const advice: Readonly<Record<string, string>> = {
  EADDRINUSE: 'choose another --listen or --metrics',
  ERR_OSSL_PEM_NO_START_LINE: 'it is not a PEM file',
  ERR_OSSL_UNSUPPORTED: 'it is not a PEM file, or it has a passphrase',
}

const portAdvice = 'ports below 1024 need CAP_NET_BIND_SERVICE, so choose another --listen or --metrics'

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const ofFile = fileFailure(error)
  if (ofFile !== undefined) return ofFile
  const { code = '', syscall } = error as NodeJS.ErrnoException
  const help = code === 'EACCES' && syscall === 'listen' ? portAdvice : advice[code]
  return help === undefined ? error.message : `${error.message}; ${help}`
}
