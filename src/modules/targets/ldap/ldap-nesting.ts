import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { groupsAbove } from '#modules/shared/targets/containing-groups.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { LdapChange } from '#protocols/ldap/ldap-server.ts'
import type { ContainingGroup, MemberGroupChange, TargetRequest } from '#sdk/target.ts'
import { tryDn } from './dn-pattern.ts'
import type { LdapMemberships } from './ldap-memberships.ts'
import type { LdapTree } from './ldap-tree.ts'
import type { ReadEntry } from './ldap-values.ts'

const readWidth = 20
/** Attempts of a change that others were quicker with. */
const attempts = 5

/** Groups as members of groups: by distinguished name, in the attribute that holds users too. */
export class LdapNesting {
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships
  readonly #queue = new KeyedQueue()

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
  }

  /**
   * A server has no transactions over several entries, so circles are looked for before the change and after it. Changes
   * of this target follow one another. Where another gateway closes a circle at the same time, both find it afterwards
   * and at least one takes its change back; a circle stays only when the process dies in between.
   */
  change(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    return this.#queue.run('', async () => {
      const group = await this.#group(name, change.groupId)
      const add = distinct(await inParallel(change.add, readWidth, ({ name: one, id }) => this.#group(one, id)))
      const remove = distinct(await this.#tree.groupEntriesOf(change.remove.map(({ id }) => id)))
      await this.#refuseCircle(group, add)
      const made = await this.#write(group, add, remove)
      const told = () => {
        for (const one of made.added) request.audit(this.#told('add', group, one))
        for (const one of made.removed) request.audit(this.#told('delete', group, one))
      }
      try {
        if (made.added.length > 0) await this.#requireStill(group, made.added)
      } catch (error) {
        if (!(await this.#undo(group, made, error))) told()
        throw error
      }
      told()
    })
  }

  async containing(ids: readonly string[]): Promise<Map<string, ContainingGroup[]>> {
    const entries = await this.#tree.groupEntriesOf(ids)
    const above = await groupsAbove(entries, keyOf, ({ dn }) => this.#tree.groupsHolding(dn))
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

  /** Throws NOT_FOUND when there is no group of this name, or it has another id. */
  async #group(name: string, id: string | undefined): Promise<ReadEntry> {
    const entry = await this.#tree.groupEntry(name, [])
    if (entry === undefined || (id !== undefined && this.#tree.groupRef(entry).id !== id)) throw absent({ name })
    return entry
  }

  async #refuseCircle(group: ReadEntry, members: readonly ReadEntry[]): Promise<void> {
    if (members.length === 0) return
    const above = await groupsAbove([group], keyOf, ({ dn }) => this.#tree.groupsHolding(dn))
    const containing = new Set(above.of(group).map((one) => keyOf(one.group)))
    const { name } = this.#tree.groupRef(group)
    for (const member of members) {
      const isItself = keyOf(member) === keyOf(group)
      if (!isItself && !containing.has(keyOf(member))) continue
      const how = isItself ? '' : `: "${this.#tree.groupRef(member).name}" already contains it`
      throw new GatewayError('CONFLICT', `the group "${name}" would contain itself${how}`, {
        publicText: `The group "${name}" would contain itself${how}.`,
      })
    }
  }

  /** All in one modification, which the server makes whole or not at all. Gives what in fact changed. */
  async #write(group: ReadEntry, add: readonly ReadEntry[], remove: readonly ReadEntry[]) {
    const { member: attribute, placeholder } = this.#tree.layout.groups
    let fill = false
    for (let left = attempts; ; left--) {
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
        if (code === resultCodes.noSuchObject) throw absent(this.#tree.groupRef(group), error)
        // The last one leaves, and the group's class wants somebody there.
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

  /** Throws when a circle was closed, or a group deleted, since it was looked. */
  async #requireStill(group: ReadEntry, added: readonly ReadEntry[]): Promise<void> {
    await this.#refuseCircle(group, added)
    await inParallel(added, readWidth, async ({ dn, ...entry }) => {
      const there = await this.#tree.entryAt(dn, ['1.1'])
      if (there === undefined) throw absent(this.#tree.groupRef({ dn, ...entry }))
    })
  }

  /** What nobody can take back now is made, and stays. */
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

  #told(action: 'add' | 'delete', group: ReadEntry, member: ReadEntry) {
    const value = this.#tree.groupRef(member).name
    return { subject: 'group', action, attribute: 'members', value, group: this.#tree.groupRef(group).name } as const
  }
}

const keyOf = ({ dn }: ReadEntry): string => tryDn(dn)?.key ?? dn

const equalMember = (attribute: string, { dn }: ReadEntry) => ({ kind: 'equal', attribute, value: dn }) as const

const distinct = (entries: readonly ReadEntry[]): ReadEntry[] => [
  ...new Map(entries.map((entry) => [keyOf(entry), entry])).values(),
]

const absent = ({ name }: Pick<NamedGroup, 'name'>, cause?: unknown): GatewayError =>
  new GatewayError('NOT_FOUND', `there is no group "${name}"`, {
    cause,
    publicText: `There is no group "${name.slice(0, 100)}".`,
  })
