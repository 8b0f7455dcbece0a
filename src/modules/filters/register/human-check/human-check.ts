import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { RegisterChallenge } from '#contract/register.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newSecret } from '#kernel/ids.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'

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
 * A task that costs a computer little, and mass registrations much. The task is signed, so that nothing is stored before it
 * is solved; a solution counts once.
 */
export function openProofOfWork(
  difficulty: number,
  { keys, clock, registrations }: Pick<FilterHost, 'keys' | 'clock' | 'registrations'>,
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
