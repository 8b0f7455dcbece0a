import type { When } from '#domain/timer.ts'

/** Access that ends by itself. */
export interface NewGrant {
  /** Unique; made by whoever adds it. */
  readonly id: string
  readonly target: string
  /** The login of the user who has the access. */
  readonly subject: string
  readonly kind: 'user' | 'group'
  /** The group; for a user as a whole the login. */
  readonly name: string
  readonly expires: When
  /** The run that gave it. */
  readonly run?: string
}

export interface Grant extends Omit<NewGrant, 'expires'> {
  readonly state: 'active' | 'revoked'
  readonly granted: Date
  readonly expires: Date
}

export interface GrantRevocation {
  readonly grant: string
  /** Refused while its time has not come, so that one that was extended meanwhile stays. */
  readonly onlyDue: boolean
}

/**
 * At most one grant of the same access is active. A grant is its own timer: it is due when it is active and its time has
 * passed. What takes the access away is a run that starts in the transaction that revokes: see RunEffects.
 */
export interface GrantStore {
  /** Where the access is granted already, that grant lives until the later of both times. */
  add(grants: readonly NewGrant[]): Promise<void>
  get(id: string): Promise<Grant | undefined>
  /** Active ones of a user, at most 500. */
  listOfSubject(subject: string): Promise<readonly Grant[]>
  /** Active ones whose time has passed, earliest first. */
  due(limit: number): Promise<readonly Grant[]>
  /** Undefined when it is not active any more. A grant is never shortened. */
  extend(id: string, expires: When): Promise<Grant | undefined>
  /** Once: undefined for everybody but the first. */
  revoke(revocation: GrantRevocation): Promise<Grant | undefined>
}
