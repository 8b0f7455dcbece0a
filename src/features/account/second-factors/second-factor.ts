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
