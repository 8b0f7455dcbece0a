import { createHash } from 'node:crypto'
import type { SecondFactor } from '#domain/second-factor.ts'
import type { FactorOwner } from '#sdk/auth/second-factors.ts'

/** What is kept of a passkey as a second factor. */
export interface PasskeyFactor {
  readonly id: string
  readonly publicKey: string
  readonly transports: readonly string[]
}

export function readPasskey({ secret }: Pick<SecondFactor, 'secret'>): PasskeyFactor {
  const { id, publicKey, transports } = secret
  return {
    id: String(id),
    publicKey: String(publicKey),
    transports: Array.isArray(transports) ? transports.map(String) : [],
  }
}

/** As authenticators know their owner. The handle tells nothing, and is the same at every enrolment. */
export const passkeyUser = ({ identity, uid }: FactorOwner) => ({
  handle: createHash('sha256')
    .update(JSON.stringify(['passkey user', identity]))
    .digest(),
  name: uid,
  displayName: uid,
})
