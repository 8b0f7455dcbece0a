import { GatewayError } from '#kernel/errors.ts'
import type { When } from '#kernel/time.ts'

/** Access that expires. */
export interface NewGrant {
  /** Unique; chosen by the caller. */
  readonly id: string
  readonly target: string
  /** The login that the user has at the target. */
  readonly subject: string
  readonly kind: 'user' | 'group'
  /** The group; for a user as a whole the login. */
  readonly name: string
  readonly expires: When
  /** The run that granted it. */
  readonly run?: string
}

export interface Grant extends Omit<NewGrant, 'expires'> {
  readonly state: 'active' | 'revoked'
  readonly granted: Date
  readonly expires: Date
  /** When it was revoked. */
  readonly ended?: Date
  /** The run that removes the access after that. */
  readonly removal?: string
}

/** What the access is now that a run granted or extended. */
export interface AccessNow {
  /** `removing` once it has expired or was given back, `notRemoved` if the run that removes it failed. */
  readonly state: 'active' | 'removing' | 'notRemoved' | 'ended'
  /** When the first part of it expires; when all of it expired or would have, if nothing of it is active. */
  readonly expires: Date
  readonly ended?: Date
  /** It was ended before its expiry. */
  readonly givenBack?: true
}

/** The error of a run that is to end access earlier than it ends now. */
export const lastsLonger = ({ subject, kind, name, target, expires }: Grant, ends: Date): GatewayError =>
  new GatewayError(
    'CONFLICT',
    `"${subject}" has ${kind} "${name}" of "${target}" until ${expires.toISOString()}, and ${ends.toISOString()} is earlier`,
    { publicText: `The access lasts until ${expires.toISOString()} already. Request it with a later expiry date.` },
  )

export interface GrantRevocation {
  readonly grant: string
  /** Refuse it before the grant's expiry, so that a grant that was extended meanwhile is kept. */
  readonly onlyDue: boolean
  /** The run that removes the access. */
  readonly removal?: string
}

const dayMillis = 24 * 3600_000
/** The longest time before its expiry that access counts as about to expire. */
const warningMillis = 7 * dayMillis

/** When the user is warned that access expires: 7 days before it, for short access after three quarters of its time. */
export const expiryWarning = ({ granted, expires }: Pick<Grant, 'granted' | 'expires'>): Date =>
  new Date(expires.getTime() - Math.min(warningMillis, (expires.getTime() - granted.getTime()) / 4))
