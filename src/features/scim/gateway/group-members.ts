import { Attributes } from '#identity/attributes.ts'
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
import { quoted, scimError } from '#protocols/scim/schema/scim-error.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'
import { type EffectCheck, stepsOf } from './dry-run.ts'
import { type FoundGroup, type FoundUser, idUnderName, type Lookups, type Member } from './lookups.ts'
import {
  type GatewayParts,
  orPending,
  retryWhileChanged,
  runGroupWorkflow,
  runWorkflow,
  userKey,
} from './run-workflow.ts'
import { notFound, notSupported, type ScimCall } from './scim-call.ts'
import type { Settled } from './unfinished-changes.ts'

/** How many members of one request are looked up or changed in parallel; parallel runs share a database commit. */
const width = 32

/** Memberships that the lookup target has are written again, for the sake of other targets, if a request names at most this many. */
const maxRepeated = 100

/** The search for members stops after this many that do not exist. */
const maxAbsent = 16

/** The id of a group that a dry run would create. No group has it. */
export const previewedId = ''

/** One workflow run: a user or group that joins or leaves the group. */
export interface MemberRun {
  readonly type: MemberType
  /** The SCIM id. */
  readonly id: string
  readonly remove: boolean
  /** The user as it was read for the plan. */
  readonly user?: FoundUser
  /** The lookup target shows it as done. The workflow writes elsewhere too, and finds out there. */
  readonly isRepeated?: boolean
}

/** A member to add or remove: the same object for every reference to the same user or group. */
interface PlannedMember {
  readonly type: MemberType
  /** The SCIM id. */
  readonly id: string
  readonly user?: FoundUser | undefined
  readonly group?: FoundGroup | undefined
}

/**
 * Plans one run for each member that really changes, and changes nothing yet. Throws invalidValue if a member to add does
 * not exist or is a group that cannot be a member, NOT_SUPPORTED if members cannot be changed here, TARGET_UNREACHABLE
 * while an earlier change of a member is unfinished. A member to remove that does not exist counts as removed.
 */
export async function planMembers(
  parts: GatewayParts,
  call: ScimCall,
  found: FoundGroup | undefined,
  operations: readonly PatchOperation[],
): Promise<MemberRun[]> {
  if (operations.length === 0) return []
  const present = found !== undefined && needsPresentMembers(operations) ? await presentMembers(parts, found) : []
  const resolver = new MemberResolver(parts.lookups, present)
  await resolver.resolve(memberReferences(operations), memberReferences(operations.filter(({ op }) => op !== 'remove')))
  const change = memberChange(operations, present.map(elementOf), (reference) => resolver.of(reference))
  const runs = await realChanges(parts, found, change, new Set(present.map(identityOf)))
  if (runs.some(({ type }) => type === 'User') && parts.config.workflows.members === undefined) {
    throw notSupported('Members cannot be changed: this gateway has no groupWorkflow.')
  }
  await inParallel(runs, width, async ({ user }) => {
    if (user !== undefined) await parts.unfinished.settleMember(call, user.id, user.user.userID)
  })
  return runs
}

async function presentMembers({ lookups }: GatewayParts, { id }: FoundGroup): Promise<readonly Member[]> {
  const found = await lookups.groupById(id, true)
  if (found === undefined) throw notFound('group', id)
  return lookups.members(found, false)
}

const elementOf = ({ id, type, display }: Member): JsonObject => ({
  value: id,
  type,
  ...(display === undefined ? {} : { display }),
})

/** Looks up the users and groups that references name, each once. */
class MemberResolver {
  readonly #lookups: Lookups
  readonly #byReference = new Map<string, PlannedMember>()
  readonly #byIdentity = new Map<string, PlannedMember>()

  constructor(lookups: Lookups, present: readonly Member[]) {
    this.#lookups = lookups
    for (const { id, type } of present) {
      this.#add(keyOf({ value: id, type }), { id, type })
      const untyped = keyOf({ value: id, type: undefined })
      if (!this.#byReference.has(untyped)) this.#add(untyped, { id, type })
    }
  }

  #add(key: string, member: PlannedMember): void {
    const same = this.#byIdentity.get(identityOf(member)) ?? member
    this.#byIdentity.set(identityOf(member), same)
    this.#byReference.set(key, same)
  }

  of(reference: MemberReference): PlannedMember {
    const { value, type = 'User' } = reference
    return this.#byReference.get(keyOf(reference)) ?? { type, id: value }
  }

  /** Throws invalidValue early if many of the members to add do not exist. */
  async resolve(references: readonly MemberReference[], added: readonly MemberReference[]): Promise<void> {
    const distinct = new Map(references.map((reference) => [keyOf(reference), reference]))
    const open = [...distinct.values()].filter((reference) => !this.#byReference.has(keyOf(reference)))
    const required = new Set(added.map(keyOf))
    const isMissing = (reference: MemberReference): boolean => {
      const member = this.#byReference.get(keyOf(reference))
      return required.has(keyOf(reference)) && member !== undefined && (member.user ?? member.group) === undefined
    }
    let absent = 0
    await inParallel(open, width, async (reference) => {
      this.#add(keyOf(reference), await this.#find(reference))
      if (isMissing(reference) && ++absent > maxAbsent) throw noSuchMember(this.of(open.find(isMissing) ?? reference))
    })
  }

  /** By the type that the client or the id's prefix states. Without either, it is the id of a user, or else of a group. */
  async #find({ value, type }: MemberReference): Promise<PlannedMember> {
    const marked = this.#lookups.ids.typeOf(value)
    if (type === 'User' && marked === 'Group') {
      throw scimError(
        'invalidValue',
        `members: ${quoted(value)} is a group, but has type User. Send type Group, or leave the type out.`,
      )
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
const identityOf = ({ type, id }: { readonly type: MemberType; readonly id: string }): string => `${type} ${id}`

async function realChanges(
  parts: GatewayParts,
  found: FoundGroup | undefined,
  change: MemberChange<PlannedMember>,
  present: ReadonlySet<string>,
): Promise<MemberRun[]> {
  const { lookups, config, unfinished } = parts
  const isFew = change.add.size + change.remove.size <= maxRepeated
  const repeats = isFew && unfinished.writesElsewhere(config.workflows.members)
  const planned = [
    ...Array.from(change.remove, (member) => ({ ...member, remove: true })),
    ...Array.from(change.add, (member) => ({ ...member, remove: false })).filter(
      (member) => repeats || !present.has(identityOf(member)),
    ),
  ]
  const members = await inParallel(planned, width, async (member) => {
    const { type, id, user, group } = member
    if (type === 'User') return { ...member, user: user ?? (await lookups.userById(id)) }
    return { ...member, group: group ?? (await lookups.groupById(id, false)) }
  })
  const missing = members.find(({ user, group, remove }) => !remove && (user ?? group) === undefined)
  if (missing !== undefined) throw noSuchMember(missing)
  const groups = members.filter(({ group }) => group !== undefined)
  await requireNesting(
    parts,
    found,
    groups.filter(({ remove }) => !remove).flatMap(({ group }) => group ?? []),
  )
  const parents = await lookups.containing(groups.map(({ id }) => id))
  const runs = await inParallel(members, width, async ({ type, user, group, remove }): Promise<MemberRun[]> => {
    if (user !== undefined) {
      const isMember = found !== undefined && (await lookups.isMember(found, user))
      if (isMember === remove) return [{ type, id: user.id, remove, user }]
      return repeats ? [{ type, id: user.id, remove, user, isRepeated: true }] : []
    }
    if (group === undefined) return []
    const isMember = parents.get(group.id)?.some(({ id, direct }) => direct && id === found?.id) === true
    return isMember === remove ? [{ type, id: group.id, remove }] : []
  })
  return runs.flat()
}

/** Throws invalidValue if these groups cannot become members. */
async function requireNesting(
  { lookups, config }: GatewayParts,
  found: FoundGroup | undefined,
  added: readonly FoundGroup[],
): Promise<void> {
  const [first] = added
  if (first === undefined) return
  const reason = !lookups.nestsGroups
    ? 'the target of this gateway does not store groups in groups'
    : config.workflows.nestGroup === undefined
      ? 'this gateway has no groupNestingWorkflow'
      : undefined
  if (reason !== undefined) {
    throw scimError(
      'invalidValue',
      `members: ${quoted(first.id)} is a group, and only users can be members, since ${reason}. Leave the member out.`,
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

/** The memberships of one group that change. */
interface MemberRuns {
  readonly group: FoundGroup
  readonly runs: readonly MemberRun[]
  readonly settled: Settled
}

/** Runs the workflow of each member and calls `done` after each. Throws the first failure. */
export async function runMembers(
  parts: GatewayParts,
  call: ScimCall,
  { group, runs, settled }: MemberRuns,
  done: () => void,
): Promise<void> {
  await inParallel(runs, width, async (run) => {
    if (run.type === 'Group') await runGroupMember(parts, call, group, run, settled)
    // Queued with deletes, after which the workflow would re-create the user.
    else await parts.queue.runWithin(userKey(run.id), () => runUserMember(parts, call, group, run, settled))
    done()
  })
}

/**
 * The run is bound to the version of the user and to the group, so that no process undoes the change of another: a group
 * that was renamed meanwhile is read again, and one that was deleted is not re-created.
 */
function runUserMember(
  parts: GatewayParts,
  call: ScimCall,
  planned: FoundGroup,
  run: MemberRun,
  settled: Settled,
): Promise<void> {
  const { lookups, config } = parts
  const { id, remove } = run
  // A version that the client sent is that of the group.
  const unconditional = { ...call, ifMatch: undefined, ifNoneMatch: undefined }
  let known: FoundGroup | undefined = planned
  // A target that compares versions rejects a run that is based on a user who changed since the plan.
  let user = run.user !== undefined && lookups.readVersion(run.user) !== undefined ? run.user : undefined
  return retryWhileChanged(unconditional, async () => {
    const group = known ?? (await lookups.groupById(planned.id, false))
    const member = user ?? (await lookups.userById(id))
    known = undefined
    user = undefined
    if (remove && (group === undefined || member === undefined)) return
    if (group === undefined) throw notFound('group', planned.id)
    if (member === undefined) throw noSuchMember(run)
    const attributes = Attributes.from([[config.users.loginAttribute, [member.user.userID]]])
    const change = runWorkflow(parts, call, {
      name: config.workflows.members ?? '',
      user: { ...member.user, attributes, groups: [] },
      params: { groupname: group.group.name, removegroup: String(remove) },
      basedOn: lookups.readVersion(member, group),
      settled,
      check: (steps) => {
        const joined = stepsOf('user', config.lookup, steps).some(
          ({ name, joins, leaves }) =>
            sameLogin(name, member.user.userID) &&
            (remove ? leaves : joins).some((one) => sameLogin(one, group.group.name)),
        )
        if (run.isRepeated !== true && !joined) throw withoutEffect(config.workflows.members, run)
      },
    })
    if (await orPending(call, change)) await requireMembership(parts, group, member, remove)
  })
}

/** Throws WORKFLOW_FAILED if the membership did not change. If others changed the user meanwhile, nothing is certain. */
async function requireMembership(
  { lookups, config }: GatewayParts,
  group: FoundGroup,
  before: FoundUser,
  remove: boolean,
): Promise<void> {
  const after = await lookups.userById(before.id)
  if (after === undefined || (await lookups.isMember(group, after)) !== remove) return
  if (after.user.version !== before.user.version) return
  // Read again: a delete of the group ended its memberships, and a renamed group has memberships under its new name.
  const now = await lookups.groupById(idUnderName(lookups, group.id, group.group.name), false)
  if (now === undefined || (await lookups.isMember(now, after)) !== remove) return
  throw withoutEffect(config.workflows.members, { type: 'User', id: before.id, remove })
}

/** How often groups that were renamed between being read and nested are read again. */
const maxAttempts = 3

/** Bound to the ids of both groups: one that was renamed meanwhile is read again, one that was deleted is an error. */
async function runGroupMember(
  parts: GatewayParts,
  call: ScimCall,
  planned: FoundGroup,
  run: MemberRun,
  settled: Settled,
): Promise<void> {
  const { lookups, config } = parts
  const { id, remove } = run
  if (call.dryRun !== undefined && planned.id === previewedId) {
    call.dryRun.cut('The groups that become members of the new group are not shown, since it does not exist yet.')
    return
  }
  let known: FoundGroup | undefined = planned
  for (let attempt = 1; ; attempt++) {
    const group: FoundGroup | undefined = known ?? (await lookups.groupById(planned.id, false))
    known = undefined
    const member = await lookups.groupById(id, false)
    if (remove && (group === undefined || member === undefined)) return
    if (group === undefined) throw notFound('group', planned.id)
    if (member === undefined) throw noSuchMember(run)
    const params = {
      groupname: group.group.name,
      membergroup: member.group.name,
      removegroup: String(remove),
      groupid: group.group.id,
      membergroupid: member.group.id,
    }
    try {
      const check: EffectCheck = (steps) => {
        const entries = stepsOf('group', config.lookup, steps)
        if (!entries.some(({ name }) => sameLogin(name, group.group.name))) {
          throw withoutEffect(config.workflows.nestGroup, run)
        }
      }
      const change = runGroupWorkflow(parts, call, { name: config.workflows.nestGroup, params, settled, check })
      if (await orPending(call, change)) await requireNested(parts, planned.id, run)
      return
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // Another request nested groups meanwhile, and both together would close a cycle.
      if (error.code === 'CONFLICT') throw scimError('invalidValue', error.publicText, { cause: error })
      if (error.code !== 'NOT_FOUND' || attempt >= maxAttempts) throw error
    }
  }
}

/** Throws WORKFLOW_FAILED if the nesting of the groups did not change. */
async function requireNested({ lookups, config }: GatewayParts, group: string, run: MemberRun): Promise<void> {
  const parents = (await lookups.containing([run.id])).get(run.id) ?? []
  if (parents.some(({ id, direct }) => direct && id === group) !== run.remove) return
  // A delete of one of them ended the nesting as well.
  const both = await Promise.all([group, run.id].map((id) => lookups.groupById(id, false)))
  if (both.includes(undefined)) return
  throw withoutEffect(config.workflows.nestGroup, run)
}

function withoutEffect(workflow = '', { type, id, remove }: MemberRun): GatewayError {
  const member = type.toLowerCase()
  const state = remove ? 'has not left the group' : 'has not joined the group'
  return new GatewayError('WORKFLOW_FAILED', `workflow "${workflow}" ended, but ${member} "${id}" ${state}`, {
    publicText: `The ${member} ${quoted(id)} ${state}: workflow "${workflow}" ended without changing it. Check its tasks.`,
  })
}

const noSuchMember = ({ type, id }: { readonly type: MemberType; readonly id: string }): GatewayError =>
  scimError(
    'invalidValue',
    `members: there is no ${type.toLowerCase()} with id ${quoted(id)}. Create it first, or leave the member out.`,
  )
