type Environment = Readonly<Record<string, string | undefined>>

/** Decides which traces are recorded. */
export interface Sampling {
  /** Whether the decision of a trusted caller counts. */
  readonly parentBased: boolean
  /** The share of the other traces that is recorded, from 0 to 1. */
  readonly ratio: number
}

export interface TracingOptions {
  /** Where spans are sent by POST. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** Time to send one batch. */
  readonly timeoutMillis: number
  readonly sampling: Sampling
  /** Attributes of this service, such as `service.name`. */
  readonly resource: Readonly<Record<string, string>>
}

/** The variables that are read; the guide has a row for each. */
export const tracingVariables = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'OTEL_EXPORTER_OTLP_TIMEOUT',
  'OTEL_EXPORTER_OTLP_PROTOCOL',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'OTEL_TRACES_EXPORTER',
  'OTEL_SDK_DISABLED',
] as const

const protocol = 'http/json'
const maxPairs = 64

/**
 * The settings of tracing from the environment variables that OpenTelemetry defines; undefined if tracing is off, which it
 * is without an endpoint. Throws an Error that names the variable and what it should be.
 */
export function readTracingOptions(environment: Environment): TracingOptions | undefined {
  const read = (name: (typeof tracingVariables)[number]): string | undefined => environment[name]?.trim() || undefined
  const base = read('OTEL_EXPORTER_OTLP_ENDPOINT')
  const own = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const exporter = read('OTEL_TRACES_EXPORTER') ?? 'otlp'
  if (read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return undefined
  if (base === undefined && own === undefined) return undefined
  if (exporter !== 'otlp') throw wrong('OTEL_TRACES_EXPORTER', 'must be otlp or none')
  const wanted = read('OTEL_EXPORTER_OTLP_PROTOCOL') ?? protocol
  if (wanted !== protocol)
    throw wrong('OTEL_EXPORTER_OTLP_PROTOCOL', `must be ${protocol}; "${wanted}" is not supported`)
  const timeoutMillis = Number(read('OTEL_EXPORTER_OTLP_TIMEOUT') ?? 10_000)
  if (!Number.isInteger(timeoutMillis) || timeoutMillis < 1 || timeoutMillis > 60_000) {
    throw wrong('OTEL_EXPORTER_OTLP_TIMEOUT', 'must be a whole number of milliseconds from 1 to 60000')
  }
  const headers = pairs('OTEL_EXPORTER_OTLP_HEADERS', read('OTEL_EXPORTER_OTLP_HEADERS'))
  const ownHeaders = pairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS', read('OTEL_EXPORTER_OTLP_TRACES_HEADERS'))
  const described = pairs('OTEL_RESOURCE_ATTRIBUTES', read('OTEL_RESOURCE_ATTRIBUTES'))
  const name = read('OTEL_SERVICE_NAME') ?? described['service.name'] ?? 'gatehouse'
  return {
    url: own === undefined ? signalUrl(base ?? '') : address('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', own),
    headers: lowerCased({ ...headers, ...ownHeaders }),
    timeoutMillis,
    sampling: sampling(read('OTEL_TRACES_SAMPLER'), read('OTEL_TRACES_SAMPLER_ARG')),
    resource: { ...described, 'service.name': name },
  }
}

const wrong = (name: string, text: string): Error => new Error(`${name} ${text}`)

function address(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw wrong(name, 'must be an http:// or https:// address')
  if (url.username !== '' || url.password !== '') {
    throw wrong(name, 'must not contain a password; use OTEL_EXPORTER_OTLP_HEADERS')
  }
  return url
}

/** The specification appends the path of the signal to the common endpoint. */
function signalUrl(base: string): URL {
  const url = address('OTEL_EXPORTER_OTLP_ENDPOINT', base)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return url
}

/** `key=value,key2=value2` with percent-encoded values. The value may be a secret, so a message shows only the key. */
function pairs(name: string, text: string | undefined): Record<string, string> {
  const found: Record<string, string> = Object.create(null)
  const parts = text?.split(',').filter((part) => part.trim() !== '') ?? []
  if (parts.length > maxPairs) throw wrong(name, `has more than ${maxPairs} entries`)
  for (const part of parts) {
    const equals = part.indexOf('=')
    const key = part.slice(0, Math.max(equals, 0)).trim()
    if (!/^[\w.!#$%&'*+^`|~-]{1,255}$/.test(key)) throw wrong(name, 'must be a list of key=value, separated by commas')
    try {
      found[key] = decodeURIComponent(part.slice(equals + 1).trim())
    } catch {
      throw wrong(name, `has a value for "${key}" that is not percent-encoded`)
    }
    if (/[^\t\x20-\x7e\x80-\xff]/.test(found[key]) && name !== 'OTEL_RESOURCE_ATTRIBUTES') {
      throw wrong(name, `has a value for "${key}" that a header cannot contain`)
    }
  }
  return found
}

const lowerCased = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

const samplers: Readonly<Record<string, (ratio: () => number) => number>> = {
  always_on: () => 1,
  always_off: () => 0,
  traceidratio: (ratio) => ratio(),
}

function sampling(name = 'parentbased_always_on', argument = '1'): Sampling {
  const [, parentBased, base = ''] = /^(parentbased_)?(.*)$/.exec(name) ?? []
  const sampler = Object.hasOwn(samplers, base) ? samplers[base] : undefined
  if (sampler === undefined) {
    const known = Object.keys(samplers).flatMap((one) => [one, `parentbased_${one}`])
    throw wrong('OTEL_TRACES_SAMPLER', `must be one of ${known.join(', ')}`)
  }
  const ratio = (): number => {
    const share = Number(argument)
    if (!(share >= 0 && share <= 1)) throw wrong('OTEL_TRACES_SAMPLER_ARG', 'must be a number from 0 to 1')
    return share
  }
  return { parentBased: parentBased !== undefined, ratio: sampler(ratio) }
}
