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

/** The fields with every secret-looking one replaced, at the top and one level down. */
export function redact(fields: LogFields): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const name in fields) {
    const value = fields[name]
    if (isSecretName(name)) shown[name] = '[redacted]'
    else shown[name] = isPlainObject(value) ? redactValues(value) : value
  }
  return shown
}

function redactValues(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, isSecretName(name) ? '[redacted]' : value]),
  )
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
