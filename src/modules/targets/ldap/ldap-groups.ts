import { Attributes } from '#identity/attributes.ts'
import type { Dn } from '#identity/dn.ts'
import { groupChanges, newGroupChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import { resultCodeOf, resultCodes } from '#protocols/ldap/ldap-failure.ts'
import type { LdapChange, WriteOptions } from '#protocols/ldap/ldap-server.ts'
import type { GroupChange, TargetRequest } from '#sdk/target.ts'
import type { LdapMemberships } from './ldap-memberships.ts'
import { equal, isSameName, type LdapTree } from './ldap-tree.ts'
import { nameFailure, ownPart, type ReadEntry, renamedDn, unfit, wireValues } from './ldap-values.ts'

/** Groups come, change and go. */
export class LdapGroups {
  readonly #tree: LdapTree
  readonly #memberships: LdapMemberships
  readonly #queue = new KeyedQueue()

  constructor(tree: LdapTree, memberships: LdapMemberships) {
    this.#tree = tree
    this.#memberships = memberships
  }

  async find(name: string): Promise<Group | undefined> {
    const entry = await this.#entry(name)
    return entry === undefined ? undefined : this.#tree.toGroup(entry, { members: false })
  }

  create(name: string, attributes: Readonly<Record<string, readonly string[]>>, request: TargetRequest): Promise<void> {
    return this.#one(name, async () => {
      const wanted = Attributes.from(attributes)
      const { layout, server } = this.#tree
      const { objectClasses, placeholder } = layout.groups
      if ((await this.#entry(name)) !== undefined) return this.#compare(name, wanted)
      const dn = this.#dnOf(name)
      const entry = new Map<string, (string | Buffer)[]>([['objectClass', [...objectClasses]]])
      if (placeholder !== undefined) entry.set(layout.groups.member, [placeholder.toString()])
      const all = wanted.clone()
      for (const { type, value } of dn.rdns[0] ?? []) if (!all.values(type).includes(value)) all.add(type, [value])
      if (!all.values(layout.groups.name).includes(name)) all.add(layout.groups.name, [name])
      for (const [attribute, values] of all) entry.set(attribute, wireValues(attribute, values, layout))
      try {
        await server.add(dn.toString(), entry)
      } catch (error) {
        if (resultCodeOf(error) !== resultCodes.entryAlreadyExists) throw nameFailure(error, dn, 'name')
        return this.#compare(name, wanted)
      }
      try {
        await this.#leaveAll(dn.toString())
      } catch (error) {
        await server.delete(dn.toString()).catch(() => {})
        throw error
      }
      for (const change of newGroupChanges(name, wanted)) request.audit(change)
    })
  }

  update(name: string, change: GroupChange, request: TargetRequest): Promise<void> {
    const { newName = name, attributes = {}, expectedVersion } = change
    return this.#one(name, async () => {
      const entry = await this.#entry(name)
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no group "${name}"`)
      const before = await this.#tree.toGroup(entry, { members: false })
      requireVersion(before, expectedVersion)
      const wanted = new Map(Object.entries(attributes))
      const { server, layout } = this.#tree
      let condition = this.#while(expectedVersion)
      let { dn } = entry
      if (before.name !== newName) {
        dn = await this.#rename(entry, newName, condition)
        condition = {}
        request.audit({ subject: 'entry', action: 'replace', attribute: 'name', value: newName })
      }
      const changes = groupChanges({ ...before, name: newName }, newName, wanted)
      const writes: LdapChange[] = Array.from(new Set(changes.map(({ attribute }) => attribute)), (attribute) => {
        const values = wireValues(attribute, wanted.get(attribute) ?? [], layout)
        return { operation: 'replace', attribute, values }
      })
      if (writes.length === 0 && condition.while !== undefined) {
        const values = [...entry.all.values('objectClass')]
        writes.push({ operation: 'replace', attribute: 'objectClass', values })
      }
      if (writes.length > 0) await server.modify(dn, writes, condition)
      for (const told of changes) request.audit(told)
    })
  }

  delete(name: string, request: TargetRequest, expectedVersion?: string): Promise<void> {
    return this.#one(name, async () => {
      const entry = await this.#entry(name)
      if (entry === undefined) return this.#leaveBehind(this.#dnOf(name).toString())
      requireVersion(await this.#tree.toGroup(entry, { members: false }), expectedVersion)
      try {
        await this.#tree.server.delete(entry.dn, this.#while(expectedVersion))
      } catch (error) {
        if (resultCodeOf(error) === resultCodes.noSuchObject) return
        throw error
      }
      request.audit({ subject: 'entry', action: 'delete', attribute: 'name', value: name })
      await this.#leaveAll(entry.dn)
    })
  }

  /** An attempt that broke off may have left the group in others. What else has its name is no group, and stays. */
  async #leaveBehind(dn: string): Promise<void> {
    if ((await this.#tree.entryAt(dn, ['1.1'])) === undefined) await this.#leaveAll(dn)
  }

  /** No group that is gone stays a member, and no new one inherits what another of its name was in. */
  async #leaveAll(dn: string): Promise<void> {
    if (!this.#tree.layout.groups.membersAreLogins) await this.#memberships.leaveAll(dn)
  }

  async #compare(name: string, wanted: Attributes): Promise<void> {
    const stored = await this.find(name)
    const named = this.#tree.layout.groups.dn.ownTypes
    const isSame =
      stored?.name === name &&
      groupChanges(stored, name, wanted).length === 0 &&
      (stored.attributes?.names() ?? []).every((own) => wanted.has(own) || named.some((type) => isSameName(type, own)))
    if (!isSame) {
      throw new GatewayError('CONFLICT', `there is a group "${name}" with other attributes`, { keyword: 'uniqueness' })
    }
  }

  /** Groups within groups keep their member by its new name. */
  async #rename(entry: ReadEntry, newName: string, condition: WriteOptions) {
    const { layout, server } = this.#tree
    const other = await this.#tree.groupEntry(newName, [])
    if (other !== undefined && other.dn !== entry.dn) throw taken(newName)
    const dn = renamedDn(entry.dn, this.#dnOf(newName))
    const isOwnName = layout.groups.dn.ownTypes.some((type) => isSameName(type, layout.groups.name))
    if (!isOwnName) {
      const values = [newName]
      await server.modify(entry.dn, [{ operation: 'replace', attribute: layout.groups.name, values }], condition)
      return entry.dn
    }
    await server.rename(entry.dn, ownPart(dn).toString(), condition).catch((error) => {
      throw nameFailure(error, dn, 'name')
    })
    if (!layout.groups.membersAreLogins) await this.#memberships.replace(entry.dn, dn.toString())
    return dn.toString()
  }

  /** Without its members, who may be many. */
  #entry(name: string): Promise<ReadEntry | undefined> {
    return this.#tree.groupWithoutMembers({ name })
  }

  #dnOf(name: string): Dn {
    const own = this.#tree.layout.groups.name
    return this.#tree.layout.groups.dn.render((place) =>
      place === 'name' || isSameName(place, own) ? name : undefined,
    )
  }

  #while(expectedVersion: string | undefined): WriteOptions {
    const { version } = this.#tree.layout
    return expectedVersion === undefined || version === undefined ? {} : { while: equal(version, expectedVersion) }
  }

  async #one<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (!name.isWellFormed() || name === '') throw unfit('name', 'cannot be the name of a group')
    return this.#queue.run(name.toLowerCase(), work)
  }
}

const taken = (name: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a group "${name}" already`, { keyword: 'uniqueness' })
