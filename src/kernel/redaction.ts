import type { LogFields } from '#kernel/logger.ts'

const secretName =
  /pass(?:word|wd|phrase)?|secret|token|authorization|cookie|credential|private|apikey|api_key|assertion/i

/** Names of fields are few and written in the code, so what was found out about one is kept; bounded all the same. */
const knownNames = new Map<string, boolean>()
const maxKnownNames = 1000

/** True for names whose values must not be shown: passwords, tokens, keys, cookies. */
export function isSecretName(name: string): boolean {
  let secret = knownNames.get(name)
  if (secret === undefined) {
    secret = secretName.test(name)
    if (knownNames.size < maxKnownNames) knownNames.set(name, secret)
  }
  return secret
}

/** Deeper than anything worth reading in a log. */
const maxDepth = 6

/** The fields with every secret-looking one replaced, however deep it stands. */
export function redact(fields: LogFields): Record<string, unknown> {
  return redactFields(fields, 0)
}

function redactFields(fields: LogFields, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const name in fields) shown[name] = isSecretName(name) ? '[redacted]' : redactValue(fields[name], depth)
  return shown
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth >= maxDepth) return '[too deep]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1))
  return isPlainObject(value) ? redactFields(value, depth + 1) : value
}

function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
