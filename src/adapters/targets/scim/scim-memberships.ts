import { retry } from '#adapters/targets/shared/retry.ts'
import { hasCode } from '#adapters/targets/shared/user-reconciler.ts'
import type { ContainingGroup, MemberGroupChange, SyncOptions } from '#identity/account-store.ts'
import type { NamedGroup } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { member } from '#protocols/scim/message.ts'
import { absentGroup, type GroupWalk, groupsAbove, refuseCircle } from '#sdk/target/containing-groups.ts'
import type { GroupTarget, TargetRequest } from '#sdk/target/target.ts'
import type { ScimProfile } from './profiles.ts'
import { answerError } from './scim-connection.ts'
import type { GroupLookups } from './scim-lookups.ts'
import {
  isGroupMember,
  isUncertain,
  modelOf,
  patchSchema,
  requiredPath,
  type ScimService,
  send,
} from './scim-service.ts'

/** A change of one user's membership of a group. */
export interface MembershipChange {
  readonly action: 'add' | 'remove'
  readonly group: { readonly id: string; readonly name: string }
}

type CreateGroup = GroupTarget['createGroup']

const bulkRequest = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest'
const width = 8
const maxAttempts = 5

/** Adds and removes members. Rewrites the whole list only if the server has no PATCH. */
export class Memberships {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly #createGroup: CreateGroup | undefined
  readonly #queue = new KeyedQueue()

  /** With `createGroup`, a group that a user joins is created if it doesn't exist. */
  constructor(service: ScimService, groups: GroupLookups, createGroup?: CreateGroup) {
    this.#service = service
    this.#groups = groups
    this.#createGroup = createGroup
  }

  /** The groups of these names. Throws BAD_REQUEST for one that neither exists nor is created. */
  named(names: readonly string[], request: TargetRequest): Promise<{ readonly id: string; readonly name: string }[]> {
    const find = async (name: string) =>
      this.#service.profile.groups === 'none' ? undefined : await this.#groups.byName(name, false)
    return inParallel(names, width, async (name) => {
      let found = await find(name)
      if (found === undefined && this.#createGroup !== undefined) {
        await this.#createGroup(name, {}, request)
        found = await find(name)
      }
      if (found !== undefined) return { id: found.entry.id, name: found.entry.name }
      throw new GatewayError('BAD_REQUEST', `target "${this.#service.name}" has no group "${name.slice(0, 100)}"`, {
        publicText: `There is no group "${name.slice(0, 100)}" in the server behind.`,
        keyword: 'invalidValue',
      })
    })
  }

  /** Throws VERSION_MISMATCH if the group no longer exists or has another name. */
  async expect(expected: NonNullable<SyncOptions['expectedGroup']>): Promise<void> {
    const found = await this.#groups.byId(expected.id, false)
    if (found?.entry.name === expected.name) return
    throw new GatewayError('VERSION_MISMATCH', `the group "${expected.name}" was renamed or deleted`)
  }

  async change(userId: string, changes: readonly MembershipChange[], request: TargetRequest): Promise<void> {
    const model = await modelOf(this.#service)
    const { bulk, patch } = model.features
    if (changes.length > 1 && bulk !== undefined && patch) {
      const size = Math.max(1, Math.min(bulk.maxOperations, Math.floor(bulk.maxPayload / bytesOfOperation)))
      for (let i = 0; i < changes.length; i += size) await this.#bulk(userId, changes.slice(i, i + size), request)
      return
    }
    await inParallel(changes, width, (one) =>
      patch ? this.#patch(userId, one, request) : this.#put(userId, one, request),
    )
  }

  async #patch(userId: string, change: MembershipChange, request: TargetRequest): Promise<void> {
    const path = requiredPath(this.#service, '/Groups', change.group.id)
    try {
      await send(
        this.#service,
        { method: 'PATCH', path, query: withoutMembers, body: patchOf(userId, change, this.#service.profile) },
        request,
      )
    } catch (error) {
      if (!isGone(error, change)) throw error
    }
  }

  async #bulk(userId: string, changes: readonly MembershipChange[], request: TargetRequest): Promise<void> {
    const Operations = changes.map((change) => ({
      method: 'PATCH',
      path: requiredPath(this.#service, '/Groups', change.group.id),
      data: patchOf(userId, change, this.#service.profile),
    }))
    const body = { schemas: [bulkRequest], Operations }
    const answer = await send(this.#service, { method: 'POST', path: '/Bulk', body }, request)
    const answered: JsonValue = member(answer ?? {}, 'Operations') ?? []
    const results = Array.isArray(answered) ? answered.filter(isJsonObject) : []
    changes.forEach((change, i) => {
      // Results are in the order of the operations, unless they name their resource.
      const result = results.find((one) => isOf(one, change)) ?? results[i] ?? {}
      const status = statusOf(result)
      if (status >= 200 && status <= 299) return
      const call = `target "${this.#service.name}": PATCH of a group in bulk`
      const error = answerError({ call, status, body: member(result, 'response') })
      if (!isGone(error, change)) throw error
    })
  }

  async #put(userId: string, change: MembershipChange, request: TargetRequest): Promise<void> {
    const isThere = await this.rewrite(change.group.id, (members) => withMember(members, userId, change), request)
    if (!isThere && change.action === 'add') throw gone(change)
  }

  /**
   * Writes the whole list of members, bound to the group's version if it has one. `edit` returns the new list, or
   * undefined if nothing changes. Returns false if the group no longer exists.
   */
  rewrite(
    id: string,
    edit: (members: readonly JsonObject[]) => readonly JsonObject[] | undefined,
    request: TargetRequest,
  ): Promise<boolean> {
    return this.#queue.run(id, async () => {
      const { features } = await modelOf(this.#service)
      const path = requiredPath(this.#service, '/Groups', id)
      const isStale = (error: unknown) => hasCode(error, 'VERSION_MISMATCH')
      return retry(maxAttempts, isStale, async () => {
        const stored = await this.#groups.byId(id, true)
        if (stored === undefined) return false
        const present = member(stored.raw, 'members')
        const members = edit(Array.isArray(present) ? present.filter(isJsonObject) : [])
        if (members === undefined) return true
        const { meta: _, ...rest } = stored.raw
        const ifMatch = features.etag ? stored.entry.version : undefined
        await send(this.#service, { method: 'PUT', path, ifMatch, body: { ...rest, members: [...members] } }, request)
        return true
      })
    })
  }
}

/** A server that answers a PATCH with the group need not answer all its members (RFC 7644 3.9). */
const withoutMembers = { excludedAttributes: 'members' } as const

/** More than any operation of this kind has, also with the longest ids. */
const bytesOfOperation = 8 * 1024

function patchOf(userId: string, { action }: MembershipChange, { plainPaths }: ScimProfile): JsonObject {
  const operation =
    action === 'add' || plainPaths === true
      ? { op: action, path: 'members', value: [{ value: userId }] }
      : { op: 'remove', path: `members[value eq ${JSON.stringify(userId)}]` }
  return { schemas: [patchSchema], Operations: [operation] }
}

/** Removing a member from a deleted group succeeds, and so does removing a deleted user. */
const isGone = (error: unknown, { action }: MembershipChange): boolean =>
  action === 'remove' &&
  (hasCode(error, 'NOT_FOUND') || (error instanceof GatewayError && error.keyword === 'noTarget'))

const gone = ({ group }: MembershipChange): GatewayError =>
  new GatewayError('NOT_FOUND', `the group "${group.name.slice(0, 100)}" is gone`)

/** Undefined if nothing changes. A group with the same id is another member. */
function withMember(
  members: readonly JsonObject[],
  userId: string,
  { action }: MembershipChange,
): readonly JsonObject[] | undefined {
  const others = members.filter((one) => isGroupMember(one) || member(one, 'value') !== userId)
  if (action === 'remove') return others.length === members.length ? undefined : others
  return others.length < members.length ? undefined : [...members, { value: userId }]
}

function isOf(result: JsonObject, { group }: MembershipChange): boolean {
  const location = member(result, 'location')
  return typeof location === 'string' && location.endsWith(`/${encodeURIComponent(group.id)}`)
}

/** A result without a status counts as a failure. */
function statusOf(result: JsonObject): number {
  const status = member(result, 'status')
  const code = Number((isJsonObject(status) ? status['code'] : status) ?? 500)
  return Number.isInteger(code) ? code : 500
}

interface Nesting {
  readonly added: readonly NamedGroup[]
  readonly removed: readonly NamedGroup[]
  /** The groups to remove were found by filter. */
  readonly isFound: boolean
}

/** Groups as members of groups: elements of `members` whose `type` is `Group`. */
export class GroupNesting {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly #memberships: Memberships
  readonly #walk: GroupWalk<NamedGroup>
  readonly #queue = new KeyedQueue()

  constructor(service: ScimService, groups: GroupLookups, memberships: Memberships) {
    this.#service = service
    this.#groups = groups
    this.#memberships = memberships
    this.#walk = { keyOf: ({ id }) => id, nameOf: ({ name }) => name, parentsOf: ({ id }) => groups.holding(id) }
  }

  /**
   * Not every server rejects cycles, and some accept a group as a member without storing it. So this looks for cycles
   * before and after the change, and reads the group again: a change that the server did not make is an error. Changes
   * of this target run one after the other; if another gateway closes a cycle at the same time, at least one reverts
   * its change.
   */
  change(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    return this.#queue.run('', async () => {
      const group = await this.#group(name, change.groupId)
      const add = distinct(await inParallel(change.add, width, ({ name: one, id }) => this.#group(one, id)))
      await refuseCircle(group, add, this.#walk)
      const leaving = distinct(change.remove)
      const filtered = await this.#filtered(group, [...add, ...leaving])
      // Some filters only find users. One that finds a group to be removed does not, and spares reading the members.
      const isFound = filtered !== undefined && leaving.every(({ id }) => filtered.has(id))
      const before = isFound ? filtered : await this.#members(group)
      const nesting = {
        isFound,
        added: add.filter(({ id }) => !before.has(id)),
        removed: leaving.filter(({ id }) => before.has(id)),
      }
      if (nesting.added.length + nesting.removed.length === 0) return
      const uncertain = await this.#write(group, nesting, request)
      const isDone = await this.#isDone(group, nesting).catch((error) => {
        if (uncertain === undefined) report(group, nesting, request)
        throw error
      })
      if (!isDone) {
        if (uncertain !== undefined) throw uncertain
        await this.#undo(group, nesting, request)
        throw this.#notMade(group)
      }
      try {
        await refuseCircle(group, nesting.added, this.#walk)
      } catch (error) {
        const isUndone = hasCode(error, 'CONFLICT') && (await this.#undo(group, nesting, request))
        if (!isUndone) report(group, nesting, request)
        throw error
      }
      report(group, nesting, request)
    })
  }

  async containing(ids: readonly string[]): Promise<Map<string, ContainingGroup[]>> {
    const starts = [...new Set(ids)].map((id) => ({ id, name: '' }))
    const above = await groupsAbove(starts, this.#walk.keyOf, this.#walk.parentsOf)
    const known = starts.map((start) => {
      const found = above.of(start).map(({ group, direct }) => ({ id: group.id, name: group.name, direct }))
      return [start.id, found] as const
    })
    return new Map(known.filter(([, found]) => found.length > 0))
  }

  /** Throws NOT_FOUND if the group doesn't exist, or has another name. */
  async #group(name: string, id: string | undefined): Promise<NamedGroup> {
    const found = await (id === undefined ? this.#groups.byName(name, false) : this.#groups.byId(id, false))
    if (found?.entry.name.toLowerCase() !== name.toLowerCase()) throw absentGroup(name)
    return { id: found.entry.id, name: found.entry.name }
  }

  /** Those that are direct members, by filter, without the other members. Undefined if the server can't filter so. */
  async #filtered({ id }: NamedGroup, groups: readonly NamedGroup[]): Promise<ReadonlySet<string> | undefined> {
    const can = await inParallel(groups, width, (one) => this.#groups.filtersBy(one.id))
    if (can.includes(false)) return undefined
    const found = await inParallel(groups, width, async (one) => {
      const parents = await this.#groups.holding(one.id)
      return parents.some((parent) => parent.id === id) ? [one.id] : []
    })
    return new Set(found.flat())
  }

  async #members({ id, name }: NamedGroup): Promise<ReadonlySet<string>> {
    const found = await this.#groups.byId(id, true)
    if (found === undefined) throw absentGroup(name)
    return new Set((found.entry.memberGroups ?? []).map((one) => one.id))
  }

  /** Returns the failure if it is unknown whether the change was made. */
  async #write(group: NamedGroup, nesting: Nesting, request: TargetRequest): Promise<unknown> {
    try {
      const { features } = await modelOf(this.#service)
      if (features.patch) await this.#patch(group, nesting, request)
      else await this.#put(group, nesting, request)
      return undefined
    } catch (error) {
      if (isUncertain(error)) return error
      if (hasCode(error, 'NOT_FOUND')) throw absentGroup(group.name, error)
      throw nesting.added.length === 0 ? error : refusal(group, error)
    }
  }

  async #patch({ id }: NamedGroup, { added, removed }: Nesting, request: TargetRequest): Promise<void> {
    const value = added.map((one) => this.#element(one))
    const Operations = [
      ...(value.length === 0 ? [] : [{ op: 'add', path: 'members', value }]),
      ...removed.map((one) => ({ op: 'remove', path: `members[value eq ${JSON.stringify(one.id)}]` })),
    ]
    const path = requiredPath(this.#service, '/Groups', id)
    const body = { schemas: [patchSchema], Operations }
    await send(this.#service, { method: 'PATCH', path, query: withoutMembers, body }, request)
  }

  async #put({ id, name }: NamedGroup, { added, removed }: Nesting, request: TargetRequest): Promise<void> {
    const ids = new Set([...added, ...removed].map((one) => one.id))
    const isThere = await this.#memberships.rewrite(
      id,
      (members) => [
        ...members.filter(({ value }) => !ids.has(String(value))),
        ...added.map((one) => this.#element(one)),
      ],
      request,
    )
    if (!isThere) throw absentGroup(name)
  }

  #element({ id }: NamedGroup): JsonObject {
    const path = requiredPath(this.#service, '/Groups', id)
    return { value: id, type: 'Group', $ref: this.#service.connection.address(path) }
  }

  async #isDone(group: NamedGroup, { added, removed, isFound }: Nesting): Promise<boolean> {
    const isIn = (now: ReadonlySet<string>): boolean =>
      added.every(({ id }) => now.has(id)) && removed.every(({ id }) => !now.has(id))
    const filtered = isFound ? await this.#filtered(group, [...added, ...removed]) : undefined
    return (filtered !== undefined && isIn(filtered)) || isIn(await this.#members(group))
  }

  #notMade({ name }: NamedGroup): GatewayError {
    const text = `answered success, but did not change the groups in the group "${name}"`
    return new GatewayError('TARGET_FAILED', `target "${this.#service.name}" ${text}`, {
      publicText: `The server behind ${text}. It may not keep groups in groups.`,
    })
  }

  /** False if the change stays, since it can't be reverted now. */
  async #undo(group: NamedGroup, { added, removed }: Nesting, request: TargetRequest): Promise<boolean> {
    try {
      const undone = { added: removed, removed: added, isFound: false }
      return (await this.#write(group, undone, request)) === undefined
    } catch {
      return false
    }
  }
}

function report({ name }: NamedGroup, { added, removed }: Nesting, request: TargetRequest): void {
  const change = { subject: 'group', attribute: 'members', group: name } as const
  for (const one of added) request.audit({ ...change, action: 'add', value: one.name })
  for (const one of removed) request.audit({ ...change, action: 'delete', value: one.name })
}

const distinct = (groups: readonly NamedGroup[]): NamedGroup[] => [
  ...new Map(groups.map((group) => [group.id, group])).values(),
]

/** Servers that do not nest groups answer with different errors. */
function refusal({ name }: NamedGroup, error: unknown): unknown {
  if (!(error instanceof GatewayError) || !['BAD_REQUEST', 'NOT_SUPPORTED', 'TARGET_FAILED'].includes(error.code)) {
    return error
  }
  return new GatewayError(error.code, error.message, {
    cause: error,
    publicText: `The server behind does not take a group as a member of the group "${name}": ${error.publicText}`,
    ...(error.code === 'BAD_REQUEST' ? { keyword: 'invalidValue' } : {}),
  })
}
