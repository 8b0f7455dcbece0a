import { createHash } from 'node:crypto'
import type { Logger } from '#kernel/logger.ts'
import { type HttpSend, openHttpPool } from '#protocols/http/http-client.ts'

export interface PasswordSettings {
  readonly minChars: number
  readonly maxChars: number
  readonly breachListURL: string | undefined
  /** The password is accepted if the service does not answer. */
  readonly acceptUnchecked: boolean
}

interface GivenPassword {
  readonly password: string | undefined
  readonly repeated: string | undefined
  /** The other entered values. */
  readonly values: Iterable<string>
}

/** Why a password is not accepted. */
export interface PasswordProblem {
  readonly kind: 'missing' | 'different' | 'short' | 'long' | 'characters' | 'values' | 'unchecked' | 'breached'
  /** The least or the most characters. */
  readonly characters?: number
}

export interface PasswordRules {
  /** What is wrong with the password. Looks it up in the list of known ones if `byPerson` names the user. */
  check(given: GivenPassword, byPerson: boolean): Promise<readonly PasswordProblem[]>
  close(): void
}

const limitMillis = 5_000
const maxListBytes = 1024 * 1024
/** Many good passwords contain shorter values. */
const minValueLength = 4

export function openPasswordRules(settings: PasswordSettings, log: Logger): PasswordRules {
  const pool = openHttpPool()
  return { check: passwordRules(settings, pool.send, log), close: () => pool.close() }
}

export function passwordRules(settings: PasswordSettings, send: HttpSend, log: Logger): PasswordRules['check'] {
  const { minChars, maxChars, breachListURL, acceptUnchecked } = settings
  return async ({ password, repeated, values }, byPerson) => {
    if (password === undefined || password === '') return [{ kind: 'missing' }]
    if (password !== repeated) return [{ kind: 'different' }]
    const length = Array.from(password).length
    if (length < minChars) return [{ kind: 'short', characters: minChars }]
    if (length > maxChars) return [{ kind: 'long', characters: maxChars }]
    if (!password.isWellFormed() || password.includes('\0')) return [{ kind: 'characters' }]
    if (repeatsValue(password, values)) return [{ kind: 'values' }]
    if (breachListURL === undefined || !byPerson) return []
    const known = await isBreached(password, breachListURL, send, log)
    if (known === undefined) return acceptUnchecked ? [] : [{ kind: 'unchecked' }]
    return known ? [{ kind: 'breached' }] : []
  }
}

/** The password is one of the values, or one of them with little around it. */
function repeatsValue(password: string, values: Iterable<string>): boolean {
  const folded = password.toLowerCase()
  for (const value of values) {
    for (const part of [value, value.split('@', 1)[0] ?? '']) {
      const known = part.toLowerCase()
      if (known.length >= minValueLength && folded.includes(known) && folded.length - known.length < 4) return true
    }
  }
  return false
}

/** Only the first five digits of the hash are sent. Undefined if the service does not answer. */
async function isBreached(
  password: string,
  address: string,
  send: HttpSend,
  log: Logger,
): Promise<boolean | undefined> {
  const digest = createHash('sha1').update(password).digest('hex').toUpperCase()
  const url = new URL(`${address.replace(/\/$/, '')}/${digest.slice(0, 5)}`)
  try {
    const limits = { signal: AbortSignal.timeout(limitMillis), bytes: maxListBytes }
    const { status, body } = await send({ method: 'GET', url, headers: { 'add-padding': 'true' } }, limits)
    if (status !== 200) throw new Error(`answered ${status}`)
    return body.split('\n').some((line) => {
      const [suffix = '', count = '0'] = line.trim().split(':')
      return suffix.toUpperCase() === digest.slice(5) && Number(count) > 0
    })
  } catch (err) {
    log.warn('the list of known passwords could not be asked', { err })
    return undefined
  }
}
