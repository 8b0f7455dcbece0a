import type { When } from '#kernel/time.ts'
import type { Grant } from './grant.ts'

/** Reads and extends access that expires. The caller has checked that the user may. */
export interface GrantAccess {
  /** The active grants of a user, at most 500. */
  ofSubject(login: string): Promise<readonly Grant[]>
  /** Those of them that runs of the workflow granted or extended. */
  through(workflow: string, login: string): Promise<readonly Grant[]>
  /** By a run. Undefined if it is no longer active, or lasts longer already: a grant is never shortened. */
  extend(id: string, expires: When, run: string): Promise<Grant | undefined>
}
