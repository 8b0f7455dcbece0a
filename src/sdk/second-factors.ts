import type { Subject } from '#identity/subject.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'

export const secondFactorKinds = ['totp', 'passkey'] as const
export type SecondFactorKind = (typeof secondFactorKinds)[number]

/** Whose a factor is: by identity, so that a user keeps it under a new login, and nobody gets it with an old one. */
export type FactorOwner = Pick<Subject, 'identity' | 'dn' | 'uid'>

export interface NewSecondFactor {
  /** Unique; the same id is added once. */
  readonly id: string
  readonly kind: SecondFactorKind
  /** As its owner calls it. */
  readonly name: string
  /** Sealed in storage. */
  readonly secret: JsonObject
  /** The latest time step of which a code was used, or what the authenticator counted. */
  readonly counter: number
}

export interface SecondFactor extends NewSecondFactor {
  readonly created: Date
  readonly lastUsed: Date | undefined
}

export type FactorAdded =
  | { readonly added: false }
  /** `recoveryCodes` are new ones, for somebody who had none; they are told this once. */
  | { readonly added: true; readonly recoveryCodes: readonly string[] | undefined }

/** The request that causes a change, for the audit. */
export interface FactorChange {
  readonly requestId: string
}

/** What people prove themselves with beside a password. The same for all gateways that share a database. */
export interface SecondFactorAccess {
  /** Earliest first. */
  of(owner: FactorOwner): Promise<readonly SecondFactor[]>
  /** `onlyAsFirst`: refused for somebody who has one, also when two try at the same time. Refused beyond `maxFactors`. */
  add(
    owner: FactorOwner,
    factor: NewSecondFactor,
    change: FactorChange & { readonly onlyAsFirst?: boolean },
  ): Promise<FactorAdded>
  /** Moves the counter on; false when another request was faster. */
  use(owner: FactorOwner, factor: Pick<SecondFactor, 'id' | 'counter'>, counter: number): Promise<boolean>
  rename(owner: FactorOwner, id: string, name: string): Promise<boolean>
  /** With the last factor the recovery codes go too. */
  remove(owner: FactorOwner, id: string, change: FactorChange): Promise<boolean>
  /** How many recovery codes are left. */
  recoveryCodes(owner: FactorOwner): Promise<number>
  /** New ones in place of all others; undefined for somebody without a factor. */
  renewRecoveryCodes(owner: FactorOwner, change: FactorChange): Promise<readonly string[] | undefined>
  /** True once for each. Spaces, dashes and letter case do not matter. */
  useRecoveryCode(owner: FactorOwner, code: string, change: FactorChange): Promise<boolean>
}

/** How many one person may have. */
export const maxFactors = 20

/** A name as it is kept; undefined for one that says nothing. */
export function factorName(written: string): string | undefined {
  const name = written.normalize('NFC').trim().replaceAll(/\p{C}/gu, '')
  return name === '' ? undefined : name.slice(0, 60).toWellFormed()
}

/** The slot in which a session remembers that a second factor was shown. */
export const secondFactorSlot = 'gatehouse.second-factor'

/** What is written into the slot. */
export const secondFactorProof = (kind: SecondFactorKind | 'recovery', at: Date): JsonValue => ({
  kind,
  at: at.toISOString(),
})

/** When a second factor was shown in this session; undefined when none was. */
export function provenAt(slot: JsonValue | undefined): Date | undefined {
  if (typeof slot !== 'object' || slot === null || Array.isArray(slot) || !('at' in slot)) return undefined
  const at = new Date(String(slot['at']))
  return Number.isNaN(at.getTime()) ? undefined : at
}
