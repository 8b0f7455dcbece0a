import type { Identity } from '#identity/identity.ts'
import type { When } from '#kernel/time.ts'
import type { Grant } from './grant.ts'

/** Reads and extends access that expires. The caller has checked that the user may. */
export interface GrantAccess {
  /** The active grants of a user, at most 500. */
  ofSubject(login: string): Promise<readonly Grant[]>
  /** Undefined if it is no longer active. A grant is never shortened. */
  extend(id: string, expires: When): Promise<Grant | undefined>
}

/** What users see and do about their own access. The caller has checked that the access is the user's. */
export interface OwnAccess extends GrantAccess {
  get(id: string): Promise<Grant | undefined>
  /** The revoked grants of a user, the latest grant first, at most 100. */
  endedOf(login: string): Promise<readonly Grant[]>
  /**
   * How the user got into groups, by name in lower case, as far as the latest audit entries say. A group that the user
   * left after that is not in it.
   */
  groupOrigins(login: string): Promise<ReadonlyMap<string, GroupOrigin>>
  /**
   * Revokes the grant before its expiry and starts the run that removes the access, with an audit entry. Returns the
   * id of the run. Throws CONFLICT if the grant is no longer active.
   */
  giveBack(grant: Grant, by: GiveBackCaller): Promise<string>
}

/** How a user got into a group. */
export interface GroupOrigin {
  readonly since: Date
  /** The run that added the user. */
  readonly run: string
}

/** The user who gives access back. */
export interface GiveBackCaller {
  readonly login: string
  readonly identity: Identity
  readonly requestId: string
}
