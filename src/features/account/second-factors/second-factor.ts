import type { JsonObject } from '#kernel/json.ts'

export const secondFactorKinds = ['totp', 'passkey'] as const
export type SecondFactorKind = (typeof secondFactorKinds)[number]

export interface NewSecondFactor {
  /** Unique. Adding the same id again has no effect. */
  readonly id: string
  readonly kind: SecondFactorKind
  /** The name that its owner chose. */
  readonly name: string
  /** Encrypted in storage. */
  readonly secret: JsonObject
  /** The time step of the last used code, or the signature counter of the authenticator. */
  readonly counter: number
}

export interface SecondFactor extends NewSecondFactor {
  readonly created: Date
  readonly lastUsed: Date | undefined
}

/** The name to store; undefined for one without visible characters. */
export function factorName(written: string): string | undefined {
  const name = written.normalize('NFC').trim().replaceAll(/\p{C}/gu, '')
  return name === '' ? undefined : name.slice(0, 60).toWellFormed()
}
