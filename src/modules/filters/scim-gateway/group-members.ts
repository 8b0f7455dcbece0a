import type { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { JsonObject } from '#kernel/json.ts'
import { type MemberChange, memberChange, needsPresentMembers } from '#protocols/scim/patch/member-change.ts'
import type { PatchOperation } from '#protocols/scim/patch/patch-operation.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import type { FoundGroup, FoundUser } from './lookups.ts'
import { orPending } from './pending-change.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { notFound, notSupported, type ScimCall } from './scim-call.ts'
import { bareUser } from './user-changes.ts'
import { userKey } from './user-writer.ts'

/** How many members of one request are looked up or changed side by side: what runs at once shares a commit. */
const width = 32

export interface MemberRun {
  readonly member: FoundUser
  readonly remove: boolean
}

/**
 * One run for each member that really changes. Nothing is changed yet. Throws invalidValue when someone to be added does
 * not exist; someone to be removed who does not exist is removed. NOT_SUPPORTED when members cannot be changed here.
 */
export async function planMembers(
  parts: GatewayParts,
  found: FoundGroup | undefined,
  operations: readonly PatchOperation[],
): Promise<MemberRun[]> {
  if (operations.length === 0) return []
  const present = found !== undefined && needsPresentMembers(operations) ? await presentMembers(parts, found) : []
  const change = memberChange(operations, present)
  const runs = await realChanges(parts, found, change, new Set(present.map(({ value }) => value)))
  if (runs.length > 0 && parts.config.workflows.members === undefined) {
    throw notSupported('Members cannot be changed: this gateway has no groupWorkflow.')
  }
  return runs
}

async function presentMembers(parts: GatewayParts, { id }: FoundGroup) {
  const found = await parts.lookups.groupById(id, true)
  if (found === undefined) throw notFound('group', id)
  return (await parts.lookups.members(found)).map(({ id: value }) => ({ value, type: 'User' }) satisfies JsonObject)
}

async function realChanges(
  { lookups }: GatewayParts,
  found: FoundGroup | undefined,
  change: MemberChange,
  present: ReadonlySet<string>,
): Promise<MemberRun[]> {
  const wanted = [
    ...Array.from(change.remove, (id) => ({ id, remove: true })),
    ...Array.from(change.add, (id) => ({ id, remove: false })).filter(({ id }) => !present.has(id)),
  ]
  let missing = wanted.length
  try {
    const runs = await inParallel(wanted, width, async ({ id, remove }, index): Promise<MemberRun[]> => {
      const member = await lookups.userById(id)
      if (member === undefined) {
        if (remove) return []
        missing = Math.min(missing, index)
        throw noSuchMember(id)
      }
      const isMember = found !== undefined && (await lookups.isMember(found, member))
      return isMember === remove ? [{ member, remove }] : []
    })
    return runs.flat()
  } catch (error) {
    // Which of several look-ups failed first is chance; which of the members stands first is not.
    const first = wanted[missing]
    throw first === undefined ? error : noSuchMember(first.id)
  }
}

/** Runs the workflow of each member; `done` is called for each that ended. The first failure is thrown. */
export async function runMembers(
  parts: GatewayParts,
  call: ScimCall,
  group: FoundGroup,
  runs: readonly MemberRun[],
  done: () => void,
): Promise<void> {
  await inParallel(runs, width, async (run) => {
    // Under the lock that deleting takes, and asked again: a workflow would bring a user who is gone back to life.
    await parts.lock.within(userKey(run.member.id), () => runMember(parts, call, group, run))
    done()
  })
}

/**
 * The run is bound to the version that was read and to the group, so that of two processes neither undoes what the other
 * did: a group that was renamed meanwhile is read again, and one that was deleted does not come back.
 */
function runMember(
  parts: GatewayParts,
  call: ScimCall,
  planned: FoundGroup,
  { member: { id }, remove }: MemberRun,
): Promise<void> {
  const { lookups, config } = parts
  // A version that the client named is that of the group.
  const unconditional = { ...call, ifMatch: undefined, ifNoneMatch: undefined }
  let known: FoundGroup | undefined = planned
  return retryWhileChanged(unconditional, async () => {
    const group = known ?? (await lookups.groupById(planned.id, false))
    known = undefined
    const member = await lookups.userById(id)
    if (remove && (group === undefined || member === undefined)) return
    if (group === undefined) throw notFound('group', planned.id)
    if (member === undefined) throw noSuchMember(id)
    const run = runWorkflow(parts, call, {
      name: config.workflows.members ?? '',
      user: bareUser(parts, member.user),
      params: { groupname: group.group.name, removegroup: String(remove) },
      basedOn: lookups.readVersion(member, group),
    })
    await orPending(call, run)
  })
}

const noSuchMember = (id: string): GatewayError =>
  scimError(
    'invalidValue',
    `members: there is no user with id ${quoted(id)}. Create the user first, or leave the member out.`,
  )
