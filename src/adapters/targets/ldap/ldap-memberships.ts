import type { ContainingGroup, MemberGroupChange } from '#identity/account-store.ts'
import type { NamedGroup } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { LdapChange } from '#protocols/ldap/ldap-server.ts'
import { absentGroup, type GroupWalk, groupsAbove, refuseCircle } from '#sdk/target/containing-groups.ts'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { tryDn } from './ldap-config.ts'
import { idOf, type LdapTree, type ReadEntry } from './ldap-tree.ts'

const readWidth = 20

/** Adds and removes members one value at a time, which the server does atomically. It never rewrites a list. */
export class LdapMemberships {
  readonly #tree: LdapTree

  constructor(tree: LdapTree) {
    this.#tree = tree
  }

  /** Throws VERSION_MISMATCH when the group was renamed or deleted. */
  async requireGroup(expected: NamedGroup): Promise<void> {
    const { layout } = this.#tree
    if (layout.id === undefined) return
    const entry = await this.#tree.groupEntry(expected.name, [])
    if (entry !== undefined && idOf(entry, layout) === expected.id) return
    throw new GatewayError('VERSION_MISMATCH', `the group "${expected.name}" was renamed or deleted`)
  }

  /** The groups' entries. Throws TARGET_FAILED, naming it, for a group that doesn't exist. */
  async resolve(names: readonly string[]): Promise<ReadEntry[]> {
    return inParallel(names, readWidth, async (name) => {
      const entry = await this.#tree.groupEntry(name, [])
      if (entry === undefined) throw new GatewayError('TARGET_FAILED', `there is no group "${name}"`)
      return entry
    })
  }

  /** The same for groups to leave; one that doesn't exist is skipped. */
  async resolveKnown(names: readonly string[]): Promise<ReadEntry[]> {
    const found = await inParallel(names, readWidth, (name) => this.#tree.groupEntry(name, []))
    return found.filter((entry) => entry !== undefined)
  }

  /** False if it was a member already. */
  async join(group: ReadEntry, member: string): Promise<boolean> {
    const attribute = this.#tree.layout.groups.member
    try {
      await this.#tree.server.modify(group.dn, [{ operation: 'add', attribute, values: [member] }])
      return true
    } catch (error) {
      if (resultCodeOf(error) === resultCodes.attributeOrValueExists) return false
      throw error
    }
  }

  /** False if it was not a member, or the group no longer exists. */
  async leave(group: ReadEntry, member: string): Promise<boolean> {
    const { member: attribute, placeholder } = this.#tree.layout.groups
    const { server } = this.#tree
    const removal = { operation: 'delete', attribute, values: [member] } as const
    try {
      await server.modify(group.dn, [removal])
      return true
    } catch (error) {
      const code = resultCodeOf(error)
      if (code === resultCodes.noSuchAttribute || code === resultCodes.noSuchObject) return false
      if (code !== resultCodes.objectClassViolation || placeholder === undefined) throw error
    }
    // It was the last member, and the group's class requires one.
    try {
      await server.modify(group.dn, [{ operation: 'add', attribute, values: [placeholder.toString()] }, removal])
      return true
    } catch (error) {
      const code = resultCodeOf(error)
      if (code === resultCodes.attributeOrValueExists) return this.leave(group, member)
      if (code === resultCodes.noSuchAttribute || code === resultCodes.noSuchObject) return false
      throw error
    }
  }

  /** Joins and leaves these groups, and reports each change that was made. */
  async change(
    member: string,
    { add, remove }: { readonly add: readonly ReadEntry[]; readonly remove: readonly ReadEntry[] },
    audit: (change: TargetChange) => void,
  ): Promise<void> {
    for (const group of add) if (await this.join(group, member)) audit(this.#change('add', group))
    for (const group of remove) if (await this.leave(group, member)) audit(this.#change('delete', group))
  }

  /** Replaces a member's name in every group, unless the server did so already. */
  async replace(from: string, to: string): Promise<void> {
    if (from === to) return
    const attribute = this.#tree.layout.groups.member
    for (const group of await this.#tree.groupsHolding(from)) {
      try {
        await this.#tree.server.modify(group.dn, [
          { operation: 'delete', attribute, values: [from] },
          { operation: 'add', attribute, values: [to] },
        ])
      } catch (error) {
        const code = resultCodeOf(error)
        if (code === resultCodes.noSuchAttribute) await this.join(group, to)
        else if (code === resultCodes.attributeOrValueExists) await this.leave(group, from)
        else if (code !== resultCodes.noSuchObject) throw error
      }
    }
  }

  async leaveAll(member: string): Promise<void> {
    for (const group of await this.#tree.groupsHolding(member)) await this.leave(group, member)
  }

  #change(action: 'add' | 'delete', group: ReadEntry): TargetChange {
    const value = group.all.first(this.#tree.layout.groups.name) ?? group.dn
    return { subject: 'group', action, attribute: 'groups', value }
  }
}

/** Attempts of a change while other writers change the same values. */
const maxAttempts = 5

/** Groups as members of groups: by distinguished name, in the attribute of users. */
export class LdapNesting {
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships
  readonly #walk: GroupWalk<ReadEntry>
  readonly #queue = new KeyedQueue()

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
    this.#walk = {
      keyOf,
      nameOf: (entry) => tree.groupRef(entry).name,
      parentsOf: ({ dn }) => tree.groupsHolding(dn),
    }
  }

  /**
   * A server has no transactions over several entries, so this looks for cycles before and after the change. The
   * changes of this target run one after the other. If another gateway closes a cycle at the same time, both find it,
   * and at least one reverts its change; a cycle stays only if the process dies in between.
   */
  change(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    return this.#queue.run('', async () => {
      const group = await this.#group(name, change.groupId)
      const add = distinct(await inParallel(change.add, readWidth, ({ name: one, id }) => this.#group(one, id)))
      const remove = distinct(await this.#tree.groupEntriesOf(change.remove.map(({ id }) => id)))
      await refuseCircle(group, add, this.#walk)
      const made = await this.#write(group, add, remove)
      const reportMade = () => {
        for (const one of made.added) request.audit(this.#change('add', group, one))
        for (const one of made.removed) request.audit(this.#change('delete', group, one))
      }
      try {
        if (made.added.length > 0) await this.#requireStill(group, made.added)
      } catch (error) {
        if (!(await this.#undo(group, made, error))) reportMade()
        throw error
      }
      reportMade()
    })
  }

  async containing(ids: readonly string[]): Promise<Map<string, ContainingGroup[]>> {
    const entries = await this.#tree.groupEntriesOf(ids)
    const above = await groupsAbove(entries, keyOf, this.#walk.parentsOf)
    const byId = new Map(entries.map((entry) => [this.#tree.groupRef(entry).id.toLowerCase(), entry]))
    const found = new Map<string, ContainingGroup[]>()
    for (const id of ids) {
      const entry = byId.get(id.toLowerCase())
      if (entry === undefined) continue
      const containing = above.of(entry).map(({ group, direct }) => ({ ...this.#tree.groupRef(group), direct }))
      found.set(id, containing)
    }
    return found
  }

  /** Throws NOT_FOUND if no group has this name, or it has another id. */
  async #group(name: string, id: string | undefined): Promise<ReadEntry> {
    const entry = await this.#tree.groupEntry(name, [])
    if (entry === undefined || (id !== undefined && this.#tree.groupRef(entry).id !== id)) throw absentGroup(name)
    return entry
  }

  /** All in one modification, which the server makes atomically. Returns the changes. */
  async #write(group: ReadEntry, add: readonly ReadEntry[], remove: readonly ReadEntry[]) {
    const { member: attribute, placeholder } = this.#tree.layout.groups
    let fill = false
    for (let left = maxAttempts; ; left--) {
      const added = await this.#where(group, add, false)
      const removed = await this.#where(group, remove, true)
      if (added.length + removed.length === 0) return { added, removed }
      const values = added.map(({ dn }) => dn)
      if (fill && placeholder !== undefined) values.push(placeholder.toString())
      const changes: LdapChange[] = []
      if (values.length > 0) changes.push({ operation: 'add', attribute, values })
      if (removed.length > 0) changes.push({ operation: 'delete', attribute, values: removed.map(({ dn }) => dn) })
      try {
        await this.#tree.server.modify(group.dn, changes)
        return { added, removed }
      } catch (error) {
        const code = resultCodeOf(error)
        if (code === resultCodes.noSuchObject) throw absentGroup(this.#tree.groupRef(group).name, error)
        // The last member leaves, and the group's class requires one.
        const isEmptied: boolean = code === resultCodes.objectClassViolation && placeholder !== undefined && !fill
        const lost = code === resultCodes.attributeOrValueExists || code === resultCodes.noSuchAttribute
        if (left <= 1 || !(isEmptied || lost)) throw this.#refused(group, added, error)
        fill = isEmptied
      }
    }
  }

  async #where(group: ReadEntry, groups: readonly ReadEntry[], isMember: boolean): Promise<ReadEntry[]> {
    const { server, layout } = this.#tree
    const found = await inParallel(groups, readWidth, async (one) => {
      const holds = equalMember(layout.groups.member, one)
      const entries = await server.find({ base: group.dn, scope: 'base', filter: holds, attributes: ['1.1'] })
      return entries.length > 0 === isMember ? [one] : []
    })
    return found.flat()
  }

  /** Throws if a cycle was closed, or a group deleted, since the first check. */
  async #requireStill(group: ReadEntry, added: readonly ReadEntry[]): Promise<void> {
    await refuseCircle(group, added, this.#walk)
    await inParallel(added, readWidth, async ({ dn, ...entry }) => {
      const there = await this.#tree.entryAt(dn, ['1.1'])
      if (there === undefined) throw absentGroup(this.#tree.groupRef({ dn, ...entry }).name)
    })
  }

  /** False for a change that can't be reverted now, and stays. */
  async #undo(
    group: ReadEntry,
    { added, removed }: { readonly added: readonly ReadEntry[]; readonly removed: readonly ReadEntry[] },
    reason: unknown,
  ): Promise<boolean> {
    if (!(reason instanceof GatewayError) || !['CONFLICT', 'NOT_FOUND'].includes(reason.code)) return false
    try {
      for (const { dn } of added) await this.#memberships.leave(group, dn)
      for (const { dn } of removed) await this.#memberships.join(group, dn)
      return true
    } catch {
      return false
    }
  }

  /** Schemas and policies may forbid it: Active Directory does so for some scopes of groups. */
  #refused(group: ReadEntry, added: readonly ReadEntry[], error: unknown): unknown {
    if (!(error instanceof GatewayError) || added.length === 0) return error
    if (error.code !== 'BAD_REQUEST' && error.code !== 'TARGET_FAILED') return error
    const { name } = this.#tree.groupRef(group)
    return new GatewayError(error.code, error.message, {
      cause: error.cause,
      publicText: `The directory does not take a group as a member of the group "${name}".`,
      ...(error.code === 'BAD_REQUEST' ? { keyword: 'invalidValue' } : {}),
    })
  }

  #change(action: 'add' | 'delete', group: ReadEntry, member: ReadEntry) {
    const value = this.#tree.groupRef(member).name
    return { subject: 'group', action, attribute: 'members', value, group: this.#tree.groupRef(group).name } as const
  }
}

const keyOf = ({ dn }: ReadEntry): string => tryDn(dn)?.key ?? dn

const equalMember = (attribute: string, { dn }: ReadEntry) => ({ kind: 'equal', attribute, value: dn }) as const

const distinct = (entries: readonly ReadEntry[]): ReadEntry[] => [
  ...new Map(entries.map((entry) => [keyOf(entry), entry])).values(),
]
