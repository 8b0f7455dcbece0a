import type { ExpiryTime } from '#sdk/expiry.ts'

/** Access that ends by itself, and that somebody has now. */
export interface TimedGrant {
  readonly id: string
  readonly target: string
  /** The login that the user has at the target. */
  readonly subject: string
  readonly kind: 'user' | 'group'
  /** The group; for a user as a whole the login. */
  readonly name: string
  readonly granted: Date
  readonly expires: Date
}

/** What modules may do with access that ends by itself. Whoever calls has checked who may. */
export interface GrantAccess {
  /** At most 500. */
  ofSubject(login: string): Promise<readonly TimedGrant[]>
  /** Undefined when it has ended. Access is never shortened. */
  extend(id: string, until: ExpiryTime): Promise<TimedGrant | undefined>
}
