import { randomBytes } from 'node:crypto'

/** A token with which a SCIM client authenticates. The token itself is not stored. */
export interface ClientToken {
  readonly id: string
  /** The `uid` of the caller that has it. */
  readonly client: string
  /** One for each token of a client that can be used; a rotated token and its successor share it. */
  readonly name: string
  readonly created: Date
  /** The login of the operator. */
  readonly createdBy?: string
  /** Never, if absent. */
  readonly expires?: Date
  readonly revoked?: Date
  readonly revokedBy?: string
  /** Up to a minute before the latest use; absent before the first. */
  readonly lastUsed?: Date
}

/** How long before its expiry a token is reported. */
export const warnedMillis = 14 * 24 * 3600_000

export type TokenState = 'valid' | 'expiring' | 'expired' | 'revoked'

export function tokenState({ expires, revoked }: ClientToken, now: Date): TokenState {
  if (revoked !== undefined) return 'revoked'
  const left = expires === undefined ? Number.POSITIVE_INFINITY : expires.getTime() - now.getTime()
  return left <= 0 ? 'expired' : left <= warnedMillis ? 'expiring' : 'valid'
}

/** Marks a text as a token of a SCIM client, for those who search files for secrets, and for a quick refusal of others. */
const prefix = 'ghs_'
const form = /^ghs_[A-Za-z0-9_-]{43}$/

export const newTokenText = (): string => prefix + randomBytes(32).toString('base64url')
export const isTokenText = (text: string): boolean => form.test(text)

const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Why a client or a token can't have this name; undefined if it can. */
export const nameProblem = (name: string): string | undefined =>
  nameForm.test(name)
    ? undefined
    : 'has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit'
