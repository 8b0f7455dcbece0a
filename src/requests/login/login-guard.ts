import type { LoginLimits } from '#config/configuration/configuration.ts'
import { identitiesOf, type UserRef } from '#identity/identity.ts'
import { networkOf } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { secretHash } from '#kernel/ids.ts'
import type { LoginGuard, LoginTry } from '#sdk/auth/login.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'
import { entryKey, type KnownDevice } from './device-cookie.ts'
import type { LoginAudit, LoginMeter } from './login-audit.ts'
import type { FailurePolicy, LoginFailureStore } from './login-failure-store.ts'
import type { PasswordChangeStore } from './password-change-store.ts'

interface GuardParts {
  readonly failures: LoginFailureStore
  readonly audit: LoginAudit
  readonly meter: LoginMeter
  readonly clock: Clock
  readonly passwordChanges: PasswordChangeStore
}

interface GuardCall {
  readonly request: GatewayRequest
  readonly chain: string
  readonly application: string
  readonly limits: LoginLimits | undefined
  /** Who logged in with this browser before. */
  readonly devices: readonly KnownDevice[]
}

const minute = 60_000

/**
 * After some tries each failure locks for twice as long as the previous one, up to a limit that does not help
 * attackers.
 */
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

/**
 * Counts a try before it checks the credential, so that concurrent tries are all counted.
 *
 * A try from an unknown device counts for its address, for the login as typed, and for the entry that it finds. The
 * lock of a typed login is shown, and is the same whether or not such a user exists. The lock of an entry is
 * concealed: it may come from another of its names. A try of a known device counts for that device alone, until the
 * password is changed.
 */
export function createGuard(parts: GuardParts, call: GuardCall): LoginGuard {
  const { failures, audit, meter, clock, passwordChanges } = parts
  const { request, chain, application, limits, devices } = call
  const policy = limits === undefined ? accountPolicy : configured(limits)
  const address = keyOf('address', networkOf(request.remoteAddress))
  const locked = async (login: string, until: Date, concealed = false): Promise<LoginTry> => {
    meter.counted(chain, 'locked')
    await audit.note({ action: 'refuse', request, login, chain, application, reason: 'locked after failed tries' })
    const retryAfterSeconds = Math.max(1, Math.ceil((until.getTime() - clock().getTime()) / 1000))
    return { allowed: false, retryAfterSeconds, concealed }
  }
  const allowed = (own: readonly string[], shared: readonly string[], stranger: string): LoginTry => ({
    allowed: true,
    succeeded: async () => {
      for (const key of own) await failures.clear(key)
      for (const key of shared) await failures.forgive(key)
    },
    abandoned: async () => {
      for (const key of [...own, ...shared]) await failures.forgive(key)
    },
    failed: async (reason, login = stranger) => {
      meter.counted(chain, 'failed')
      await audit.note({ action: 'refuse', request, login, chain, application, reason })
    },
  })
  return {
    async begin(typed, { credential, find } = {}) {
      const name = keyOf('account', accountOf(typed), credential)
      const unknown = `unknown:${name.slice(0, 12)}`
      let found: { readonly entry: UserRef | undefined } | undefined
      const entry = async (): Promise<UserRef | undefined> => {
        found ??= { entry: await find?.() }
        return found.entry
      }
      const owner = devices.length === 0 ? undefined : await entry()
      const device = owner && (await knownDevice(owner, devices, passwordChanges))
      if (owner !== undefined && device !== undefined) {
        const key = keyOf('device', device.entry, device.id, credential)
        const counted = await failures.count(key, policy, clock())
        return counted.refused ? locked(owner.login, counted.lockedUntil) : allowed([key], [], owner.login)
      }
      const fromHere = await failures.count(address, addressPolicy, clock())
      if (fromHere.refused) return locked(unknown, fromHere.lockedUntil)
      const counted = await failures.count(name, policy, clock())
      if (counted.refused) return locked(unknown, counted.lockedUntil)
      let person: UserRef | undefined
      try {
        person = await entry()
      } catch (error) {
        for (const key of [name, address]) await failures.forgive(key)
        throw error
      }
      // An unknown user costs the same work.
      const key = keyOf('entry', person === undefined ? accountOf(typed) : entryKey(person.identity), credential)
      const ofEntry = await failures.count(key, policy, clock())
      if (ofEntry.refused) return locked(person?.login ?? unknown, ofEntry.lockedUntil, true)
      return allowed([name, key], [address], unknown)
    },
  }
}

/** Undefined after a password change: a stolen cookie from before has no effect. */
async function knownDevice(
  owner: UserRef,
  devices: readonly KnownDevice[],
  passwordChanges: GuardParts['passwordChanges'],
): Promise<KnownDevice | undefined> {
  const device = devices.find((known) => known.entry === entryKey(owner.identity))
  if (device === undefined) return undefined
  const changed = await passwordChanges.changedAt(identitiesOf(owner))
  return changed === undefined || device.issued > changed.getTime() ? device : undefined
}

const keyOf = (...parts: readonly (string | undefined)[]): string => secretHash(JSON.stringify(parts))

/**
 * One text for all spellings that a directory or its database may treat as the same login, so that other spellings
 * give no further tries. Derived only from the typed text, so that a lock does not reveal which users exist.
 */
const accountOf = (login: string): string =>
  login
    .toUpperCase()
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cf}\p{Cc}]/gu, '')
    .toLowerCase()
    .replaceAll(/\s+/g, ' ')
    .trim()
