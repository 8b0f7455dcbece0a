import { types } from 'node:util'
import { GatewayError } from '#kernel/errors.ts'
import type { LogFields } from '#kernel/logger.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'

const secretName =
  /pass(?:word|wd|phrase)?|secret|token|authorization|cookie|credential|private|apikey|api_key|assertion/i

/** Field names are few and written in the code, so results are cached; the cache is bounded anyway. */
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

/** A JSON Web Token, whole or cut off: base64url of `{"`, and what follows it. */
const tokenText = /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)*/g

/** The text with every JSON Web Token in it replaced, such as one that another system quotes in its error. */
export const withoutTokens = (text: string): string =>
  text.includes('eyJ') ? text.replace(tokenText, '[token]') : text

/** Deeper than anything worth reading in a log. */
const maxDepth = 6
const maxJoined = 10
const maxMessage = 2000
const maxStack = 4000

/**
 * The fields with every secret-looking one, and every token and value of a secret in a text, replaced at any depth. An error, under any
 * name, becomes an object with its type, message, code and cause; the one under `err` also has its stack.
 */
export function redact(fields: LogFields): Record<string, unknown> {
  return redactFields(fields, 0)
}

function redactFields(fields: LogFields, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const name in fields) {
    const value = fields[name]
    if (isSecretName(name)) shown[name] = '[redacted]'
    else if (depth === 0 && name === 'err' && isError(value)) shown[name] = describeError(value, 0, true)
    else shown[name] = redactValue(value, depth)
  }
  return shown
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return shownText(value)
  if (typeof value !== 'object' || value === null) return value
  if (isError(value)) return describeError(value, depth, false)
  if (depth >= maxDepth) return '[too deep]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1))
  return isPlainObject(value) ? redactFields(value, depth + 1) : value
}

/** Also errors of scripts, which have another `Error` class. */
const isError = (value: unknown): value is Error => value instanceof Error || types.isNativeError(value)

/** Bounded, because a cause can be anything. A refusal has no stack, since any client can cause one. */
function describeError(error: Error, depth: number, withStack: boolean): Record<string, unknown> {
  const isRefusal = error instanceof GatewayError && error.isRefusal
  const joined: unknown[] = error instanceof AggregateError ? error.errors.slice(0, maxJoined) : []
  const isLast = depth >= maxDepth
  const inner = (value: unknown): unknown => redactValue(cut(value), depth + 1)
  return {
    type: error.name,
    message: shownText(String(error.message), maxMessage),
    ...('code' in error && error.code !== undefined ? { code: String(error.code) } : {}),
    ...(isRefusal ? { status: error.status } : {}),
    ...(withStack && !isRefusal ? { stack: shownText(String(error.stack), maxStack) } : {}),
    ...(isLast || error.cause === undefined ? {} : { cause: inner(error.cause) }),
    ...(isLast || joined.length === 0 ? {} : { errors: joined.map(inner) }),
  }
}

/** Replaces before it cuts, since a part of a secret is not found; no one can wait for the rest of a huge text. */
const shownText = (text: string, most = text.length): string =>
  withoutTokens(withoutSecrets(text.slice(0, 2 * most)).slice(0, most))

const cut = (value: unknown): unknown => (typeof value === 'string' ? value.slice(0, maxMessage) : value)

function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
