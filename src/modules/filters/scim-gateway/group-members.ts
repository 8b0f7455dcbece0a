import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { JsonObject } from '#kernel/json.ts'
import {
  type MemberChange,
  type MemberReference,
  type MemberType,
  memberChange,
  memberReferences,
  needsPresentMembers,
} from '#protocols/scim/patch/member-change.ts'
import type { PatchOperation } from '#protocols/scim/patch/parse-patch.ts'
import { quoted, scimError } from '#protocols/scim/scim-error.ts'
import { type GatewayParts, runWorkflow } from './gateway-parts.ts'
import { runGroupWorkflow } from './group-workflow.ts'
import type { FoundGroup, FoundUser, Lookups, Member } from './lookups.ts'
import { orPending } from './pending-change.ts'
import { retryWhileChanged } from './retry-changed.ts'
import { notFound, notSupported, type ScimCall } from './scim-call.ts'
import { bareUser } from './user-changes.ts'
import { userKey } from './user-writer.ts'

/** How many members of one request are looked up or changed side by side: what runs at once shares a commit. */
const width = 32

/** So many that don't exist end the search for others. */
const maxAbsent = 16

/** Someone to be added or removed: the same object for every reference to the same user or group. */
interface PlannedMember {
  readonly type: MemberType
  /** As SCIM knows it. */
  readonly id: string
  readonly user?: FoundUser
  readonly group?: FoundGroup
}

export type MemberRun =
  | { readonly member: FoundUser; readonly remove: boolean }
  | { readonly memberGroup: FoundGroup; readonly remove: boolean }

/**
 * One run for each member that really changes. Nothing is changed yet. Throws invalidValue when someone to be added does
 * not exist, or is a group that cannot be a member; someone to be removed who does not exist is removed. NOT_SUPPORTED
 * when members cannot be changed here.
 */
export async function planMembers(
  parts: GatewayParts,
  found: FoundGroup | undefined,
  operations: readonly PatchOperation[],
): Promise<MemberRun[]> {
  if (operations.length === 0) return []
  const present = found !== undefined && needsPresentMembers(operations) ? await presentMembers(parts, found) : []
  const known = new KnownMembers(parts)
  for (const { id, type } of present) known.note(id, { id, type })
  await known.resolve(memberReferences(operations), memberReferences(operations.filter(({ op }) => op !== 'remove')))
  const change = memberChange(operations, present.map(elementOf), (reference) => known.of(reference))
  const runs = await realChanges(parts, found, change, new Set(present.map(({ id, type }) => `${type} ${id}`)))
  if (runs.some((run) => 'member' in run) && parts.config.workflows.members === undefined) {
    throw notSupported('Members cannot be changed: this gateway has no groupWorkflow.')
  }
  return runs
}

async function presentMembers(parts: GatewayParts, { id }: FoundGroup): Promise<readonly Member[]> {
  const found = await parts.lookups.groupById(id, true)
  if (found === undefined) throw notFound('group', id)
  return parts.lookups.members(found, false)
}

const elementOf = ({ id, type, display }: Member): JsonObject => ({
  value: id,
  type,
  ...(display === undefined ? {} : { display }),
})

/** Finds out what references mean, each once. */
class KnownMembers {
  readonly #lookups: Lookups
  readonly #byReference = new Map<string, PlannedMember>()
  readonly #byId = new Map<string, PlannedMember>()

  constructor({ lookups }: GatewayParts) {
    this.#lookups = lookups
  }

  /** That the reference, with or without its type, means this member. */
  note(value: string, member: PlannedMember): void {
    const same = this.#byId.get(`${member.type} ${member.id}`) ?? member
    this.#byId.set(`${member.type} ${member.id}`, same)
    this.#byReference.set(`${member.type} ${value}`, same)
    if (!this.#byReference.has(` ${value}`)) this.#byReference.set(` ${value}`, same)
  }

  of(reference: MemberReference): PlannedMember {
    const { value, type = 'User' } = reference
    return this.#byReference.get(keyOf(reference)) ?? { type, id: value }
  }

  /** Throws invalidValue early where many of those to be added don't exist. */
  async resolve(references: readonly MemberReference[], added: readonly MemberReference[]): Promise<void> {
    const open = new Map(references.map((reference) => [keyOf(reference), reference]))
    const asked = [...open.values()].filter((reference) => !this.#byReference.has(keyOf(reference)))
    const required = new Set(added.map(keyOf))
    const missing = (reference: MemberReference): boolean => {
      const member = this.#byReference.get(keyOf(reference))
      return required.has(keyOf(reference)) && member !== undefined && (member.user ?? member.group) === undefined
    }
    let absent = 0
    await inParallel(asked, width, async (reference) => {
      const member = await this.#find(reference)
      const same = this.#byId.get(`${member.type} ${member.id}`) ?? member
      this.#byId.set(`${member.type} ${member.id}`, same)
      this.#byReference.set(keyOf(reference), same)
      if (missing(reference) && ++absent > maxAbsent) throw noSuchMember(this.of(asked.find(missing) ?? reference))
    })
  }

  /** By the type that the client or the id's mark says. Without either it is a user's id, or else a group's. */
  async #find({ value, type }: MemberReference): Promise<PlannedMember> {
    const marked = this.#lookups.ids.typeOf(value)
    if (type === 'User' && marked === 'Group') {
      throw scimError('invalidValue', `The member ${quoted(value)} is a group, but is sent as a User.`)
    }
    const wanted = type ?? marked
    const user = wanted === 'Group' ? undefined : await this.#lookups.userById(value)
    if (user !== undefined) return { type: 'User', id: user.id, user }
    const group = wanted === 'User' ? undefined : await this.#lookups.groupById(value, false)
    if (group !== undefined) return { type: 'Group', id: group.id, group }
    return { type: wanted ?? 'User', id: value }
  }
}

const keyOf = ({ value, type }: MemberReference): string => `${type ?? ''} ${value}`

async function realChanges(
  parts: GatewayParts,
  found: FoundGroup | undefined,
  change: MemberChange<PlannedMember>,
  present: ReadonlySet<string>,
): Promise<MemberRun[]> {
  const { lookups } = parts
  const wanted = [
    ...Array.from(change.remove, (member) => ({ member, remove: true })),
    ...Array.from(change.add, (member) => ({ member, remove: false })).filter(
      ({ member: { type, id } }) => !present.has(`${type} ${id}`),
    ),
  ]
  const whole = await inParallel(wanted, width, async ({ member, remove }) => {
    const { type, id, user, group } = member
    if (type === 'User') return { member: { ...member, user: user ?? (await lookups.userById(id)) }, remove }
    return { member: { ...member, group: group ?? (await lookups.groupById(id, false)) }, remove }
  })
  const missing = whole.find(({ member, remove }) => !remove && (member.user ?? member.group) === undefined)
  if (missing !== undefined) throw noSuchMember(missing.member)
  const groups = whole.flatMap(({ member, remove }) => (member.group === undefined ? [] : [{ ...member, remove }]))
  const added = groups.flatMap(({ group, remove }) => (remove || group === undefined ? [] : [group]))
  await requireNesting(parts, found, added)
  const parents = await lookups.containing(groups.map(({ id }) => id))
  const runs = await inParallel(whole, width, async ({ member, remove }): Promise<MemberRun[]> => {
    const { user, group } = member
    if (user !== undefined) {
      const isMember = found !== undefined && (await lookups.isMember(found, user))
      return isMember === remove ? [{ member: user, remove }] : []
    }
    if (group === undefined) return []
    const isMember = parents.get(group.id)?.some(({ id, direct }) => direct && id === found?.id) === true
    return isMember === remove ? [{ memberGroup: group, remove }] : []
  })
  return runs.flat()
}

/** Throws invalidValue when these groups cannot become members. */
async function requireNesting(
  { lookups, config }: GatewayParts,
  found: FoundGroup | undefined,
  added: readonly FoundGroup[],
): Promise<void> {
  const [first] = added
  if (first === undefined) return
  const reason = !lookups.nestsGroups
    ? 'the target behind this gateway does not keep groups in groups'
    : config.workflows.nestGroup === undefined
      ? 'the gateway has no groupNestingWorkflow'
      : undefined
  if (reason !== undefined) {
    throw scimError(
      'invalidValue',
      `The member ${quoted(first.id)} is a group, and only users can be members: ${reason}.`,
    )
  }
  if (found === undefined) return
  const above = new Set((await lookups.containing([found.id])).get(found.id)?.map(({ id }) => id))
  const circle = added.find(({ id }) => id === found.id || above.has(id))
  if (circle === undefined) return
  const [outer, inner] = [quoted(found.id), quoted(circle.id)]
  throw scimError(
    'invalidValue',
    circle.id === found.id
      ? `members: the group ${outer} would contain itself. Leave the member out.`
      : `members: the group ${outer} would contain itself: the group ${inner} contains it already, directly or through others. Leave the member out, or remove that membership first.`,
  )
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
    if ('memberGroup' in run) await runMemberGroup(parts, call, group, run.memberGroup.id, run.remove)
    // Under the lock that deleting takes, and asked again: a workflow would bring a user who is gone back to life.
    else await parts.lock.within(userKey(run.member.id), () => runMember(parts, call, group, run.member.id, run.remove))
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
  id: string,
  remove: boolean,
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
    if (member === undefined) throw noSuchMember({ type: 'User', id })
    const run = runWorkflow(parts, call, {
      name: config.workflows.members ?? '',
      user: bareUser(parts, member.user),
      params: { groupname: group.group.name, removegroup: String(remove) },
      basedOn: lookups.readVersion(member, group),
    })
    if (await orPending(call, run)) await requireMembership(parts, group, member, remove)
  })
}

/** Throws WORKFLOW_FAILED where the user is what it was. Where others changed it meanwhile, the run may have done its part. */
async function requireMembership(
  { lookups, config }: GatewayParts,
  group: FoundGroup,
  before: FoundUser,
  remove: boolean,
): Promise<void> {
  const after = await lookups.userById(before.id)
  if (after === undefined || (await lookups.isMember(group, after)) !== remove) return
  if (after.user.version !== before.user.version) return
  // Read again: whoever deleted the group ended its memberships, and one that was renamed is known by its new name.
  const { groupIdIsName, ids } = lookups
  const now = await lookups.groupById(groupIdIsName ? ids.ofGroup(group.group.name) : group.id, false)
  if (now === undefined || (await lookups.isMember(now, after)) !== remove) return
  throw withoutEffect(config.workflows.members, 'user', before.id, remove)
}

function withoutEffect(workflow = '', type: 'user' | 'group', id: string, remove: boolean): GatewayError {
  const state = remove ? 'has not left the group' : 'has not joined the group'
  return new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but ${type} "${id}" ${state}`, {
    publicText: `The ${type} ${quoted(id)} ${state}: workflow "${workflow}" ended without changing it. Check its tasks.`,
  })
}

/** How often groups that were renamed between being read and nested are read again. */
const maxAttempts = 3

/** Bound to the ids of both groups: one that was renamed meanwhile is read again, one that was deleted is an error. */
async function runMemberGroup(
  parts: GatewayParts,
  call: ScimCall,
  planned: FoundGroup,
  id: string,
  remove: boolean,
): Promise<void> {
  const { lookups, config } = parts
  let known: FoundGroup | undefined = planned
  for (let attempt = 1; ; attempt++) {
    const group: FoundGroup | undefined = known ?? (await lookups.groupById(planned.id, false))
    known = undefined
    const member = await lookups.groupById(id, false)
    if (remove && (group === undefined || member === undefined)) return
    if (group === undefined) throw notFound('group', planned.id)
    if (member === undefined) throw noSuchMember({ type: 'Group', id })
    const params = {
      groupname: group.group.name,
      membergroup: member.group.name,
      removegroup: String(remove),
      groupid: group.group.id,
      membergroupid: member.group.id,
    }
    try {
      const run = runGroupWorkflow(parts, call, { name: config.workflows.nestGroup, params })
      if (await orPending(call, run)) await requireNested(parts, planned.id, id, remove)
      return
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // Someone else nested groups meanwhile, and together they would close a circle.
      if (error.code === 'CONFLICT') throw scimError('invalidValue', error.publicText, { cause: error })
      if (error.code !== 'NOT_FOUND' || attempt >= maxAttempts) throw error
    }
  }
}

/** Throws WORKFLOW_FAILED where the groups are nested as they were. */
async function requireNested(
  { lookups, config }: GatewayParts,
  group: string,
  member: string,
  remove: boolean,
): Promise<void> {
  const parents = (await lookups.containing([member])).get(member) ?? []
  if (parents.some(({ id, direct }) => direct && id === group) !== remove) return
  // Whoever deleted one of them has ended that, too.
  const both = await Promise.all([group, member].map((id) => lookups.groupById(id, false)))
  if (both.includes(undefined)) return
  throw withoutEffect(config.workflows.nestGroup, 'group', member, remove)
}

const noSuchMember = ({ type, id }: { readonly type: MemberType; readonly id: string }): GatewayError =>
  scimError(
    'invalidValue',
    `members: there is no ${type.toLowerCase()} with id ${quoted(id)}. Create it first, or leave the member out.`,
  )
