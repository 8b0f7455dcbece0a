import type { JsonObject } from '#kernel/json.ts'
import { type MemberChange, memberChange, needsPresentMembers } from '#protocols/scim/patch/member-change.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { scimError } from '#protocols/scim/scim-error.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { inParallel } from './in-parallel.ts'
import { type FoundGroup, type FoundUser, lookupWidth } from './lookups.ts'
import { notFound, notSupported, type ScimCall } from './scim-call.ts'
import { bareUser } from './user-changes.ts'

/** How many member workflows of one request run side by side. */
const runWidth = 8

interface MemberRun {
  readonly member: FoundUser
  readonly remove: boolean
}

/**
 * Makes operations on `members` into one workflow run for each member that really changes. Every member is looked up
 * before the first run. A failure part way is thrown and what was done stays; the same request again completes it.
 */
export async function changeMembers(
  parts: GatewayParts,
  call: ScimCall,
  found: FoundGroup,
  operations: readonly PatchOperation[],
): Promise<void> {
  const name = parts.config.workflows.members
  if (name === undefined) throw notSupported('This gateway does not change the members of groups.')
  const change = memberChange(operations, needsPresentMembers(operations) ? await presentMembers(parts, found) : [])
  const runs = await plan(parts, found, change)
  let done = 0
  try {
    await inParallel(runs, runWidth, async ({ member, remove }) => {
      await runWorkflow(parts, call, {
        name,
        user: bareUser(parts, member.user),
        params: { groupname: found.group.name, removegroup: String(remove) },
      })
      done++
    })
  } catch (error) {
    parts.log.error('a change of members stopped part way', {
      group: found.group.name,
      done,
      wanted: runs.length,
      requestId: call.exchange.request.id,
    })
    throw error
  }
}

async function presentMembers(parts: GatewayParts, { id }: FoundGroup): Promise<JsonObject[]> {
  const found = await parts.lookups.groupById(id, true)
  if (found === undefined) throw notFound('group', id)
  return (await parts.lookups.memberIds(found)).map((value) => ({ value, type: 'User' }))
}

/** Throws invalidValue when someone to be added does not exist; someone to be removed who does not exist is removed. */
async function plan(parts: GatewayParts, found: FoundGroup, change: MemberChange): Promise<MemberRun[]> {
  const wanted = [
    ...Array.from(change.remove, (id) => ({ id, remove: true })),
    ...Array.from(change.add, (id) => ({ id, remove: false })),
  ]
  const { lookups } = parts
  const runs = await inParallel(wanted, lookupWidth, async ({ id, remove }): Promise<MemberRun[]> => {
    const member = await lookups.userById(id)
    if (member === undefined) {
      if (remove) return []
      throw scimError('invalidValue', `There is no user ${JSON.stringify(id.slice(0, 80))} to be a member.`)
    }
    return (await lookups.isMember(found, member)) === remove ? [{ member, remove }] : []
  })
  return runs.flat()
}
