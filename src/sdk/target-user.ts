import { Attributes } from '#identity/attributes.ts'
import { userSource } from '#identity/mapping/mapped-value.ts'
import type { Mapping } from '#sdk/mapping.ts'
import type { WorkflowUser } from '#sdk/workflow-task.ts'
import { assignMapped } from '#sdk/workflow-user.ts'

/** A workflow's user as one target names and holds it. */
export type TargetUser = Pick<WorkflowUser, 'userID' | 'attributes' | 'groups' | 'keepGroups' | 'groupChanges'>

/** Applies the target's own mapping; without one, the user itself, which is not to be changed. */
export async function targetUser(user: WorkflowUser, mapping: Mapping | undefined): Promise<TargetUser> {
  if (mapping === undefined) return user
  const mapped: TargetUser = { ...user, attributes: new Attributes() }
  assignMapped(mapped, await mapping.apply(userSource(user)))
  return mapped
}
