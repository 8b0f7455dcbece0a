import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { RegisterChallenge } from '#features/registration/contract/register.ts'
import type { RegistrationHost } from '#features/registration/host.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newSecret } from '#kernel/ids.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { type HttpSend, openHttpPool } from '#protocols/http/http-client.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

/** Checks that a human registers. Any error counts as a failure. */
export interface HumanCheck {
  /** `code` is the page's result of the check: not empty, and bounded in length. */
  passes(code: string, request: Pick<GatewayRequest, 'host' | 'remoteAddress'>): Promise<boolean>
  close(): void
}

export const noHumanCheck: HumanCheck = { passes: async () => true, close: () => {} }

const purpose = 'gatehouse registration proof of work'
const validMillis = 10 * 60_000
const maxNonceLength = 40

export interface ProofOfWork extends HumanCheck {
  challenge(): Promise<RegisterChallenge>
}

/**
 * A task that costs one computer little, and mass registrations much. The task is signed, so that nothing is stored
 * before it is solved; a solution counts once.
 */
export function openProofOfWork(
  difficulty: number,
  { keys, clock, registrations }: Pick<RegistrationHost, 'keys' | 'clock' | 'registrations'>,
): ProofOfWork {
  return {
    async challenge() {
      const [key] = await keys.secretKeys(purpose)
      if (key === undefined) throw new GatewayError('INTERNAL', 'there is no key for the proof of work')
      const expires = clock().getTime() + validMillis
      const task = [expires.toString(36), difficulty.toString(36), newSecret()].join('.')
      return { challenge: `${task}.${sign(task, key)}`, difficulty, expires: new Date(expires).toISOString() }
    },
    async passes(code) {
      const task = readSolution(code, await keys.secretKeys(purpose), clock)
      if (task === undefined || task.difficulty < difficulty) return false
      return await registrations.useOnce(`proof of work ${task.id}`, validMillis)
    },
    close: () => {},
  }
}

const sign = (task: string, key: KeyObject): string => createHmac('sha256', key).update(task).digest('base64url')

interface Solved {
  readonly id: string
  readonly difficulty: number
}

function readSolution(code: string, keys: readonly KeyObject[], clock: Clock): Solved | undefined {
  const [expires = '', bits = '', id = '', signature = '', nonce = '', ...rest] = code.split('.')
  if (rest.length > 0 || nonce === '' || nonce.length > maxNonceLength) return undefined
  const task = [expires, bits, id].join('.')
  if (!keys.some((key) => sameText(sign(task, key), signature))) return undefined
  if (!(Number.parseInt(expires, 36) > clock().getTime())) return undefined
  const difficulty = Number.parseInt(bits, 36)
  return leadingZeroBits(hash('sha256', code, 'buffer')) >= difficulty ? { id, difficulty } : undefined
}

export function leadingZeroBits(bytes: Uint8Array): number {
  let bits = 0
  for (const byte of bytes) {
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

type ProviderKind = 'recaptcha-v2' | 'recaptcha-v3' | 'turnstile'

export interface ProviderSettings {
  readonly kind: ProviderKind
  readonly secret: string
  /** Where the answer is verified; the provider's own URL if absent. */
  readonly url: string | undefined
  /** If empty: the host of the request. */
  readonly hostnames: readonly string[]
  /** Undefined if the action is not checked. */
  readonly action: string | undefined
  readonly minScore: number
}

const addresses: Readonly<Record<ProviderKind, string>> = {
  'recaptcha-v2': 'https://www.google.com/recaptcha/api/siteverify',
  'recaptcha-v3': 'https://www.google.com/recaptcha/api/siteverify',
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
}

const limitMillis = 5_000
const maxAnswerBytes = 64 * 1024
/** Providers themselves accept an answer for two to five minutes. */
const maxAgeMillis = 10 * 60_000

export function openProviderCheck(settings: ProviderSettings, log: Logger, clock: Clock): HumanCheck {
  const pool = openHttpPool()
  return { ...providerCheck(settings, pool.send, log, clock), close: () => pool.close() }
}

/** A check by a provider: every field of its answer must match. */
export function providerCheck(
  settings: ProviderSettings,
  send: HttpSend,
  log: Logger,
  clock: Clock,
): Omit<HumanCheck, 'close'> {
  const { kind, secret } = settings
  const url = new URL(settings.url ?? addresses[kind])
  return {
    async passes(code, { host, remoteAddress }) {
      const body = new URLSearchParams({ secret, response: code, remoteip: remoteAddress }).toString()
      const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
      try {
        const limits = { signal: AbortSignal.timeout(limitMillis), bytes: maxAnswerBytes }
        const answer = await send({ method: 'POST', url, headers, body }, limits)
        if (answer.status !== 200) throw new Error(`answered ${answer.status}`)
        const problem = problemOf(JSON.parse(answer.body), settings, host, clock())
        if (problem !== undefined) log.info('a human check was not passed', { kind, problem })
        return problem === undefined
      } catch (err) {
        log.warn('a human check could not be made; the registration is refused', { kind, err })
        return false
      }
    },
  }
}

function problemOf(answer: unknown, settings: ProviderSettings, host: string, now: Date): string | undefined {
  const { kind, hostnames, action, minScore } = settings
  if (!isJsonObject(answer)) return 'the answer is not an object'
  if (answer['success'] !== true) return 'not solved'
  const hostname = answer['hostname']
  const allowed = hostnames.length > 0 ? hostnames : [host]
  if (typeof hostname !== 'string' || !allowed.some((name) => name.toLowerCase() === hostname.toLowerCase())) {
    return 'solved on another host'
  }
  const solved = typeof answer['challenge_ts'] === 'string' ? Date.parse(answer['challenge_ts']) : Number.NaN
  if (Number.isNaN(solved) || now.getTime() - solved > maxAgeMillis) return 'solved too long ago'
  if (action !== undefined && answer['action'] !== action) return 'solved for another action'
  if (kind !== 'recaptcha-v3') return undefined
  const score = answer['score']
  return typeof score === 'number' && score >= minScore ? undefined : 'the score is too low'
}
