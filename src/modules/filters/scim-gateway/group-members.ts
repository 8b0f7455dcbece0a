import type { GatewayError } from '#kernel/errors.ts'
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
      // Under the lock that deleting takes, and asked again: a workflow would bring a user who is gone back to life.
      await parts.lock.run(`user ${member.id.toLowerCase()}`, async () => {
        if ((await parts.lookups.userById(member.id)) === undefined) {
          if (remove) return
          throw noSuchMember(member.id)
        }
        await runWorkflow(parts, call, {
          name,
          user: bareUser(parts, member.user),
          params: { groupname: found.group.name, removegroup: String(remove) },
        })
      })
      done++
    })
  } catch (error) {
    if (done > 0) {
      const { id: requestId } = call.exchange.request
      const progress = { group: found.group.name, done, wanted: runs.length, requestId }
      parts.log.error('a change of members stopped part way', progress)
    }
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
      throw noSuchMember(id)
    }
    return (await lookups.isMember(found, member)) === remove ? [{ member, remove }] : []
  })
  return runs.flat()
}

const noSuchMember = (id: string): GatewayError =>
  scimError('invalidValue', `There is no user ${JSON.stringify(id.slice(0, 80))} to be a member.`)
