import type { When } from '#kernel/time.ts'
import type { Grant } from './grant.ts'

/** Reads and extends access that expires. The caller has checked that the user may. */
export interface GrantAccess {
  /** The active grants of a user, at most 500. */
  ofSubject(login: string): Promise<readonly Grant[]>
  /** Undefined if it is no longer active. A grant is never shortened. */
  extend(id: string, expires: When): Promise<Grant | undefined>
}
