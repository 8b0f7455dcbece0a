import type { GroupChange, MemberGroupChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { GroupTarget, TargetRequest } from '#sdk/target/target.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'

interface StoredGroup {
  readonly id: string
  name: string
  attributes: Attributes
  version: number
}

/** A target in memory with groups, which follows the contract of such targets. */
export class MemoryGroups extends MemoryTarget implements GroupTarget {
  readonly groups = new Map<string, StoredGroup>()

  addGroup(name: string, attributes: Record<string, string[]> = {}): void {
    const stored = { id: `id of ${name}`, name, attributes: Attributes.from(attributes), version: 1 }
    this.groups.set(name.toLowerCase(), stored)
  }

  /** Names with their attributes and versions. */
  listed(): [string, Record<string, string[]>, number][] {
    return [...this.groups.values()].map(({ name, attributes, version }) => [
      name,
      { ...attributes.toObject() },
      version,
    ])
  }

  async findGroup(name: string): Promise<Group | undefined> {
    const stored = this.groups.get(name.toLowerCase())
    return stored && { ...stored, members: [], version: String(stored.version) }
  }

  async createGroup(
    name: string,
    attributes: Readonly<Record<string, readonly string[]>>,
    request: TargetRequest,
  ): Promise<void> {
    const stored = this.groups.get(name.toLowerCase())
    const wanted = Attributes.from(attributes)
    if (stored !== undefined) {
      if (JSON.stringify([...stored.attributes]) === JSON.stringify([...wanted])) return
      throw new GatewayError('CONFLICT', `${name} is there`)
    }
    this.addGroup(name, wanted.toObject())
    request.audit({ subject: 'entry', action: 'add', attribute: 'name', value: name })
  }

  async updateGroup(name: string, change: GroupChange, request: TargetRequest): Promise<void> {
    const stored = this.#expected(name, change.expectedVersion)
    if (stored === undefined) throw new GatewayError('NOT_FOUND', `no group ${name}`)
    const { newName = stored.name, attributes = {} } = change
    const key = newName.toLowerCase()
    if (key !== name.toLowerCase() && this.groups.has(key)) throw new GatewayError('CONFLICT', `${newName} is there`)
    let changed = change.expectedVersion !== undefined
    if (newName !== stored.name) {
      changed = true
      this.groups.delete(name.toLowerCase())
      stored.name = newName
      this.groups.set(key, stored)
      request.audit({ subject: 'entry', action: 'replace', attribute: 'name', value: newName })
    }
    for (const [attribute, values] of Object.entries(attributes)) {
      if (stored.attributes.values(attribute).join('\n') === values.join('\n')) continue
      stored.attributes.set(attribute, values)
      changed = true
      request.audit({ subject: 'attribute', action: 'replace', attribute, value: values.join() })
    }
    if (changed) stored.version++
  }

  async deleteGroup(
    name: string,
    request: TargetRequest,
    options: { readonly expectedVersion?: string } = {},
  ): Promise<void> {
    if (this.#expected(name, options.expectedVersion) === undefined) return
    this.groups.delete(name.toLowerCase())
    request.audit({ subject: 'entry', action: 'delete', attribute: 'name', value: name })
  }

  #expected(name: string, version: string | undefined): StoredGroup | undefined {
    const stored = this.groups.get(name.toLowerCase())
    if (stored !== undefined && version !== undefined && version !== String(stored.version)) {
      throw new GatewayError('VERSION_MISMATCH', 'changed meanwhile')
    }
    return stored
  }
}

/** The same with groups in groups, by name, one level deep. */
export class MemoryNestedGroups extends MemoryGroups {
  readonly nested = new Set<string>()

  async changeMemberGroups(name: string, change: MemberGroupChange, request: TargetRequest): Promise<void> {
    const isThere = (id: string | undefined, group: string): boolean =>
      this.groups.has(group.toLowerCase()) && (id ?? `id of ${group}`) === `id of ${group}`
    if (!isThere(change.groupId, name)) throw new GatewayError('NOT_FOUND', `no group ${name}`)
    for (const { name: value, id } of change.add) {
      if (!isThere(id, value)) throw new GatewayError('NOT_FOUND', `no group ${value}`)
      if (this.nested.has(`${name}/${value}`)) continue
      this.nested.add(`${name}/${value}`)
      request.audit({ subject: 'group', action: 'add', attribute: 'members', value })
    }
    for (const { name: value } of change.remove) {
      if (!this.nested.delete(`${name}/${value}`)) continue
      request.audit({ subject: 'group', action: 'delete', attribute: 'members', value })
    }
  }
}
