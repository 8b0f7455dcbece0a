import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { TargetChange } from '#sdk/target.ts'
import { isSameName, type LdapTree } from './ldap-tree.ts'
import { idOf, type ReadEntry } from './ldap-values.ts'

const readWidth = 20

/** Members come and go one value at a time, which the server does atomically: no list is ever rewritten. */
export class LdapMemberships {
  readonly #tree: LdapTree

  constructor(tree: LdapTree) {
    this.#tree = tree
  }

  /** The groups' entries. TARGET_FAILED, naming it, when there is no such group, VERSION_MISMATCH when it is another one. */
  async resolve(names: readonly string[], expected?: NamedGroup): Promise<ReadEntry[]> {
    const { layout } = this.#tree
    if (expected !== undefined && layout.id !== undefined) {
      const entry = await this.#tree.groupEntry(expected.name, [])
      if (entry === undefined || idOf(entry, layout) !== expected.id) {
        throw new GatewayError('VERSION_MISMATCH', `group "${expected.name}" was renamed or deleted meanwhile`)
      }
    }
    return inParallel(names, readWidth, async (name) => {
      const entry = await this.#tree.groupEntry(name, [])
      if (entry === undefined) throw new GatewayError('TARGET_FAILED', `there is no group "${name}"`)
      return entry
    })
  }

  /** The same for groups to leave: one that is gone, or none of this target's, is left already. */
  async resolveKnown(names: readonly string[]): Promise<ReadEntry[]> {
    const found = await inParallel(names, readWidth, (name) => this.#tree.groupEntry(name, []))
    return found.filter((entry) => entry !== undefined)
  }

  /** False when it was a member already. */
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

  /** False when it was no member, or the group is gone. */
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
    // It was the last one, and the group's class wants somebody there.
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

  /** Brings the user's groups from `held` to `wanted`, and tells each change that was made. */
  async change(
    member: string,
    { add, remove }: { readonly add: readonly ReadEntry[]; readonly remove: readonly ReadEntry[] },
    audit: (change: TargetChange) => void,
  ): Promise<void> {
    for (const group of add) if (await this.join(group, member)) audit(this.#told('add', group))
    for (const group of remove) if (await this.leave(group, member)) audit(this.#told('delete', group))
  }

  /** The old name makes room for the new one in every group, unless the server saw to it already. */
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

  #told(action: 'add' | 'delete', group: ReadEntry): TargetChange {
    const value = group.all.first(this.#tree.layout.groups.name) ?? group.dn
    return { subject: 'group', action, attribute: 'groups', value }
  }
}

/** Names that are in the first list and not in the second, letter case aside. */
export const namesMissing = (wanted: readonly string[], held: readonly string[]): string[] =>
  wanted.filter(
    (name, i) =>
      !held.some((other) => isSameName(other, name)) && wanted.findIndex((other) => isSameName(other, name)) === i,
  )
