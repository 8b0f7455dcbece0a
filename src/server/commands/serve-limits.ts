import { defaultRenewalTimes, type RenewalTimes } from '#engine/session/session-renewal.ts'
import { defaultLimits } from '#engine/workflow/run-worker.ts'
import { WrongUsage, wholeNumber } from '#server/commands/command-line.ts'
import type { WorkflowLimits } from '#server/gateway.ts'
import { type ConnectionLimits, defaultConnectionLimits } from '#server/http-limits.ts'

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

export const limitUsage = names
  .map((name) => `  ${`--${name} N`.padEnd(29)}${limits[name].about} (default ${limits[name].default})`)
  .join('\n')

export const limitOptions = Object.fromEntries(names.map((name) => [name, { type: 'string' }])) as {
  readonly [name in LimitName]: { readonly type: 'string' }
}

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
