import type { Subject } from '#identity/subject.ts'
import type { JsonValue } from '#kernel/json.ts'
import type { AuthHost } from '#sdk/auth/auth-mechanism.ts'
import type { OperatorChange } from '#sdk/auth/operator-change.ts'
import type { NewSecondFactor, SecondFactor, SecondFactorKind } from './second-factor.ts'

/** The owner of a factor, by identity: a user keeps it under a new login, and no one gets it with an old one. */
export type FactorOwner = Pick<Subject, 'identity' | 'dn' | 'uid'>

/** The result of adding a second factor. */
export type FactorAdded =
  | { readonly added: false }
  /** `recoveryCodes` are new ones, for a user who had none; they are returned only once. */
  | { readonly added: true; readonly recoveryCodes: readonly string[] | undefined }

/** The request that causes a change, for the audit. */
export interface FactorChange {
  readonly requestId: string
}

/** What users prove their identity with in addition to a password. Shared by all gateways of a database. */
export interface SecondFactorAccess {
  /** Earliest first. */
  of(owner: FactorOwner): Promise<readonly SecondFactor[]>
  /** Refused beyond `maxFactors`. `onlyAsFirst`: refused for a user who has one, also for concurrent calls. */
  add(
    owner: FactorOwner,
    factor: NewSecondFactor,
    change: FactorChange & { readonly onlyAsFirst?: boolean },
  ): Promise<FactorAdded>
  /** Moves the counter. False if another request was first. */
  use(owner: FactorOwner, factor: Pick<SecondFactor, 'id' | 'counter'>, counter: number): Promise<boolean>
  rename(owner: FactorOwner, id: string, name: string): Promise<boolean>
  /** The recovery codes are deleted with the last factor. */
  remove(owner: FactorOwner, id: string, change: FactorChange): Promise<boolean>
  /** Removes all factors and recovery codes, with an audit entry; returns how many factors. */
  reset(owner: FactorOwner, change: OperatorChange): Promise<number>
  /** How many recovery codes are left. */
  recoveryCodes(owner: FactorOwner): Promise<number>
  /** Replaces all codes with new ones; undefined for a user without a factor. */
  renewRecoveryCodes(owner: FactorOwner, change: FactorChange): Promise<readonly string[] | undefined>
  /** True once for each code. Ignores spaces, dashes and letter case. */
  useRecoveryCode(owner: FactorOwner, code: string, change: FactorChange): Promise<boolean>
}

/** How many factors one user may have. */
export const maxFactors = 20

/** The name to store; undefined for one without visible characters. */
export function factorName(written: string): string | undefined {
  const name = written.normalize('NFC').trim().replaceAll(/\p{C}/gu, '')
  return name === '' ? undefined : name.slice(0, 60).toWellFormed()
}

/** The slot in which a session records that the user proved a second factor. */
export const secondFactorSlot = 'gatehouse.second-factor'

/** The value of the slot. */
export const secondFactorProof = (kind: SecondFactorKind | 'recovery', at: Date): JsonValue => ({
  kind,
  at: at.toISOString(),
})

/** When the user proved a second factor in this session, if ever. */
export function provenAt(slot: JsonValue | undefined): Date | undefined {
  if (typeof slot !== 'object' || slot === null || Array.isArray(slot) || !('at' in slot)) return undefined
  const at = new Date(String(slot['at']))
  return Number.isNaN(at.getTime()) ? undefined : at
}

/** What mechanisms with second factors use beside what every mechanism may use. */
export interface FactorHost extends AuthHost {
  readonly secondFactors: SecondFactorAccess
}
