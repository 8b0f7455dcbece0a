import type { LoginAudit } from '#engine/login/login-audit.ts'
import type { LoginMeter } from '#engine/login/login-meter.ts'
import { networkOf } from '#kernel/address-network.ts'
import type { Clock } from '#kernel/clock.ts'
import { secretHash } from '#kernel/ids.ts'
import type { LoginLimits } from '#sdk/configuration.ts'
import type { GatewayRequest } from '#sdk/http.ts'
import type { LoginGuard, LoginTry } from '#sdk/login.ts'
import type { FailurePolicy, LoginFailureStore } from '#storage/login-failure-store.ts'

export interface GuardParts {
  readonly failures: LoginFailureStore
  readonly audit: LoginAudit
  readonly meter: LoginMeter
  readonly clock: Clock
}

export interface GuardCall {
  readonly request: GatewayRequest
  readonly chain: string
  readonly application: string
  readonly limits: LoginLimits | undefined
}

const minute = 60_000

/** After some tries each failure locks for twice as long as the one before, but not for so long that it helps attackers. */
const backOff = (free: number, step: number, longest: number): FailurePolicy => ({
  lockMillis: (failures) =>
    failures <= free ? 0 : Math.min(1000 * 2 ** Math.min(20, (failures - free - 1) / step), longest),
  forgetMillis: 15 * minute,
})

export const accountPolicy = backOff(4, 1, 5 * minute)
export const addressPolicy = backOff(49, 5, 15 * minute)

const configured = ({ maxFailedAttempts, lockoutMillis }: LoginLimits): FailurePolicy => ({
  lockMillis: (failures) => (failures < maxFailedAttempts ? 0 : lockoutMillis),
  forgetMillis: Math.max(lockoutMillis, 15 * minute),
})

/** Counts first and looks at the credential afterwards, so that tries made side by side are as many as they are. */
export function createGuard(parts: GuardParts, { request, chain, application, limits }: GuardCall): LoginGuard {
  const { failures, audit, meter, clock } = parts
  const address = secretHash(JSON.stringify(['address', networkOf(request.remoteAddress)]))
  const policy = limits === undefined ? accountPolicy : configured(limits)
  const locked = async (login: string, until: Date): Promise<LoginTry> => {
    meter.counted(chain, 'locked')
    await audit.note({ action: 'refuse', request, login, chain, application, reason: 'locked after failed tries' })
    return { allowed: false, retryAfterSeconds: Math.max(1, Math.ceil((until.getTime() - clock().getTime()) / 1000)) }
  }
  return {
    async begin(login, credential) {
      const account = secretHash(JSON.stringify(['account', accountOf(login), credential]))
      const unknown = `unknown:${account.slice(0, 12)}`
      const fromHere = await failures.count(address, addressPolicy, clock())
      if (fromHere.refused) return locked(unknown, fromHere.lockedUntil)
      const counted = await failures.count(account, policy, clock())
      if (counted.refused) return locked(unknown, counted.lockedUntil)
      return {
        allowed: true,
        succeeded: async () => {
          await failures.clear(account)
          await failures.forgive(address)
        },
        abandoned: async () => {
          await failures.forgive(account)
          await failures.forgive(address)
        },
        failed: async (reason, known = unknown) => {
          meter.counted(chain, 'failed')
          await audit.note({ action: 'refuse', request, login: known, chain, application, reason })
        },
      }
    },
  }
}

/**
 * One text for all spellings that a directory or its database may take for the same login, so that nobody gets further
 * tries by another one. Made of what was typed alone, so that a lock does not tell who is there.
 */
const accountOf = (login: string): string =>
  login
    .toUpperCase()
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cf}\p{Cc}]/gu, '')
    .toLowerCase()
    .replaceAll(/\s+/g, ' ')
    .trim()
