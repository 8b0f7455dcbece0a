import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import type { JsonObject } from '#kernel/json.ts'
import { groupsAbove } from '#modules/shared/targets/containing-groups.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import type { ContainingGroup, MemberGroupChange, TargetRequest } from '#sdk/target.ts'
import type { GroupLookups } from './group-lookups.ts'
import type { Memberships } from './memberships.ts'
import { requiredPath } from './resource-address.ts'
import { hasCode, isUncertain, patchSchema, send } from './resource-writer.ts'
import { modelOf, type ScimService } from './service-model.ts'

const width = 8

interface Nesting {
  readonly added: readonly NamedGroup[]
  readonly removed: readonly NamedGroup[]
}

/** Groups as members of groups: elements of `members` whose `type` is `Group`. */
export class GroupNesting {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly #memberships: Memberships
  readonly #queue = new KeyedQueue()

  constructor(service: ScimService, groups: GroupLookups, memberships: Memberships) {
    this.#service = service
    this.#groups = groups
    this.#memberships = memberships
  }

  /**
   * Not every server refuses circles, and some take a group as a member and forget it. So circles are looked for before
   * the change and after it, and the group is read again: what the server did not do is an error. Changes of this target
   * follow one another; where another gateway closes a circle at the same time, at least one takes its change back.
   */
  change(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    return this.#queue.run('', async () => {
      const group = await this.#group(name, change.groupId)
      const add = distinct(await inParallel(change.add, width, ({ name: one, id }) => this.#group(one, id)))
      await this.#refuseCircle(group, add)
      const before = await this.#members(group)
      const leaving = new Set(change.remove.map(({ id }) => id))
      const nesting = {
        added: add.filter(({ id }) => !before.has(id)),
        removed: [...before.values()].filter(({ id }) => leaving.has(id)),
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
        throw this.#forgotten(group)
      }
      try {
        await this.#refuseCircle(group, nesting.added)
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
    const above = await this.#above(starts)
    const known = starts.map((start) => {
      const found = above.of(start).map(({ group, direct }) => ({ id: group.id, name: group.name, direct }))
      return [start.id, found] as const
    })
    return new Map(known.filter(([, found]) => found.length > 0))
  }

  #above(starts: readonly NamedGroup[]) {
    return groupsAbove<NamedGroup>(
      starts,
      ({ id }) => id,
      ({ id }) => this.#groups.holding(id),
    )
  }

  /** Throws NOT_FOUND when there is no such group, or it has another name. */
  async #group(name: string, id: string | undefined): Promise<NamedGroup> {
    const found = await (id === undefined ? this.#groups.byName(name, false) : this.#groups.byId(id, false))
    if (found?.entry.name.toLowerCase() !== name.toLowerCase()) throw absent(name)
    return { id: found.entry.id, name: found.entry.name }
  }

  async #members({ id, name }: NamedGroup): Promise<ReadonlyMap<string, NamedGroup>> {
    const found = await this.#groups.byId(id, true)
    if (found === undefined) throw absent(name)
    return new Map((found.entry.memberGroups ?? []).map((one) => [one.id, one]))
  }

  async #refuseCircle(group: NamedGroup, members: readonly NamedGroup[]): Promise<void> {
    if (members.length === 0) return
    const containing = new Set((await this.#above([group])).of(group).map((one) => one.group.id))
    const member = members.find(({ id }) => id === group.id || containing.has(id))
    if (member === undefined) return
    const how = member.id === group.id ? '' : `: "${member.name}" already contains it`
    throw new GatewayError('CONFLICT', `the group "${group.name}" would contain itself${how}`, {
      publicText: `The group "${group.name}" would contain itself${how}.`,
    })
  }

  /** Gives the failure after which nobody knows whether the change was made. */
  async #write(group: NamedGroup, nesting: Nesting, request: TargetRequest): Promise<unknown> {
    try {
      const { features } = await modelOf(this.#service)
      if (features.patch) await this.#patch(group, nesting, request)
      else await this.#put(group, nesting, request)
      return undefined
    } catch (error) {
      if (isUncertain(error)) return error
      if (hasCode(error, 'NOT_FOUND')) throw absent(group.name, error)
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
    await send(this.#service, { method: 'PATCH', path, body: { schemas: [patchSchema], Operations } }, request)
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
    if (!isThere) throw absent(name)
  }

  #element({ id }: NamedGroup): JsonObject {
    const path = requiredPath(this.#service, '/Groups', id)
    return { value: id, type: 'Group', $ref: this.#service.connection.address(path) }
  }

  async #isDone(group: NamedGroup, { added, removed }: Nesting): Promise<boolean> {
    const now = await this.#members(group)
    return added.every(({ id }) => now.has(id)) && removed.every(({ id }) => !now.has(id))
  }

  #forgotten({ name }: NamedGroup): GatewayError {
    const text = `answered success, but did not change the groups in the group "${name}"`
    return new GatewayError('TARGET_FAILED', `target "${this.#service.name}" ${text}`, {
      publicText: `The server behind ${text}. It may not keep groups in groups.`,
    })
  }

  /** False where the change stays, since it cannot be taken back now. */
  async #undo(group: NamedGroup, { added, removed }: Nesting, request: TargetRequest): Promise<boolean> {
    try {
      return (await this.#write(group, { added: removed, removed: added }, request)) === undefined
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

/** Servers that do not nest groups say so each in their own words. */
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

const absent = (name: string, cause?: unknown): GatewayError =>
  new GatewayError('NOT_FOUND', `there is no group "${name.slice(0, 100)}"`, {
    cause,
    publicText: `There is no group "${name.slice(0, 100)}".`,
  })
