import { Attributes } from '#identity/attributes.ts'
import { userSource } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import { anyVersion, noVersion } from '#sdk/workflow/workflow.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { assignMapped } from '#sdk/workflow/workflow-user.ts'

/** A workflow's user with its name and attributes in one target. */
export type TargetUser = Pick<
  WorkflowUser,
  'userID' | 'attributes' | 'groups' | 'keepGroups' | 'groupChanges' | 'cleared'
>

/** Applies the target's own mapping; without one, returns the user itself, which must not be changed. */
export async function targetUser(user: WorkflowUser, mapping: Mapping | undefined): Promise<TargetUser> {
  if (mapping === undefined) return user
  const mapped: TargetUser = { ...user, attributes: new Attributes() }
  assignMapped(mapped, await mapping.apply(userSource(user)))
  if (user.cleared !== undefined) mapped.cleared = mapping.dependents(user.cleared)
  return mapped
}

/**
 * Throws VERSION_MISMATCH if a version is expected that the user doesn't have, or if the user no longer exists;
 * CONFLICT if the user exists and none was expected.
 */
export function checkVersion(found: User | undefined, expected: string | undefined): void {
  if (expected === undefined || (found === undefined ? noVersion : found.version) === expected) return
  if (expected === anyVersion && found !== undefined) return
  if (expected === noVersion) throw new GatewayError('CONFLICT', 'someone else made this user meanwhile')
  if (expected === anyVersion) throw new GatewayError('VERSION_MISMATCH', 'the user was deleted since it was read')
  const state = found === undefined ? 'the user is gone' : `"${found.userID}" has version ${found.version}`
  throw new GatewayError('VERSION_MISMATCH', `${state}, where ${expected} was read`)
}
