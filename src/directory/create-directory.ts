import type { Configuration, InsertConfig, SetAsideObject } from '#config/configuration/configuration.ts'
import { createEach } from '#config/configuration/create-at.ts'
import { Attributes } from '#identity/attributes.ts'
import { type DirectoryPage, type DirectoryPageSearch, entryId, type InsertEntry } from '#identity/directory.ts'
import { Dn, isAttributeType } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { changedName, holdsNames, withNames } from '#identity/name-attributes.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Scope } from '#kernel/scope.ts'
import { AccountsInsert } from '#sdk/directory/accounts-insert.ts'
import type { DirectoryInsert, TargetAccount } from '#sdk/directory/directory-insert.ts'
import { hasLookups, type Target } from '#sdk/target/target.ts'
import type { Mount } from './virtual-directory.ts'

/**
 * The configured inserts; without any, each target with lookups is the branch `ou=<target>` of the root, except those
 * outside the directory: a device must never be found by the login of a user.
 */
export async function createMounts(
  {
    inserts,
    directoryRoot,
    setAside = [],
    outsideDirectory = new Set(),
  }: Pick<Configuration, 'inserts' | 'directoryRoot' | 'setAside' | 'outsideDirectory'>,
  targets: ReadonlyMap<string, Target>,
  scope: Scope,
  create: (config: InsertConfig) => Promise<DirectoryInsert>,
): Promise<Mount[]> {
  if (inserts.length === 0) {
    const ofPeople = new Map([...targets].filter(([name]) => !outsideDirectory.has(name)))
    const closed = setAside.filter(
      ({ kind, name, lookups }) => kind === 'Target' && lookups !== false && !outsideDirectory.has(name),
    )
    return [...targetBranches(directoryRoot, ofPeople), ...closed.map((target) => closedBranch(directoryRoot, target))]
  }
  const mounts: Mount[] = []
  await createEach(inserts, async (config) => {
    const { name, suffix, mapping } = config
    const insert = scope.own(await create(config))
    const mapped = mapping.size === 0 ? insert : new MappedInsert(insert, suffix, mapping)
    mounts.push({ name, suffix, insert: mapped, ...(suffix.isWithin(directoryRoot) ? {} : { isApart: true }) })
  })
  return mounts
}

/**
 * The branch of a target that is set aside. What is asked about it alone fails, since its users are unknown rather
 * than absent. A search of the whole directory leaves it out if the target may have no users at all.
 */
function closedBranch(root: Dn, { name, reason, lookups }: SetAsideObject): Mount {
  const refuse = (): Promise<never> =>
    Promise.reject(new GatewayError('TARGET_UNREACHABLE', `the Target "${name}" is set aside: ${reason}`))
  const insert = { search: refuse, isMember: refuse, members: refuse, bind: refuse }
  return { name, suffix: root.child('ou', name), insert, ...(lookups === true ? {} : { isOptional: true }) }
}

export function targetBranches(root: Dn, targets: ReadonlyMap<string, Target>): Mount[] {
  return [...targets].flatMap(([name, target]) => {
    if (!hasLookups(target)) return []
    const suffix = root.child('ou', name)
    const layout = {
      people: suffix,
      groups: suffix.child('ou', 'groups'),
      userAttribute: 'uid',
      groupAttribute: 'cn',
    }
    return [{ name, suffix, insert: new AccountsInsert(target, layout, name) }]
  })
}

/**
 * An insert whose attributes have other names in the directory. They are renamed everywhere: in filters, in
 * requested attributes, in entries, and in distinguished names below the suffix, including attribute values.
 */
export class MappedInsert implements DirectoryInsert {
  readonly #insert: DirectoryInsert
  readonly #suffix: Dn
  readonly #toInner: ReadonlyMap<string, string>
  readonly #toOuter: ReadonlyMap<string, string>
  readonly bind?: NonNullable<DirectoryInsert['bind']>
  readonly setEntryPassword?: NonNullable<DirectoryInsert['setEntryPassword']>

  /** `mapping`: names in the directory to the insert's own. */
  constructor(insert: DirectoryInsert, suffix: Dn, mapping: ReadonlyMap<string, string>) {
    this.#insert = insert
    this.#suffix = suffix
    this.#toInner = new Map(Array.from(mapping, ([outer, inner]) => [outer.toLowerCase(), inner]))
    this.#toOuter = new Map(Array.from(mapping, ([outer, inner]) => [inner.toLowerCase(), outer]))
    if (insert.bind !== undefined) {
      this.bind = async (dn, password, caller) => (await insert.bind?.(this.#inner(dn), password, caller)) ?? false
    }
    if (insert.setEntryPassword !== undefined) {
      this.setEntryPassword = async (dn, password, id) => insert.setEntryPassword?.(this.#inner(dn), password, id)
    }
  }

  async search(search: DirectoryPageSearch): Promise<DirectoryPage<InsertEntry>> {
    const { attributes } = search
    const page = await this.#insert.search({
      ...search,
      base: this.#inner(search.base),
      filter: this.#innerFilter(withNames(search.filter, (dn) => this.#inner(dn))),
      ...(attributes === undefined ? {} : { attributes: attributes.map((name) => rename(name, this.#toInner)) }),
    })
    return { ...page, entries: page.entries.map((entry) => this.#outerEntry(entry)) }
  }

  isMember(group: Dn, member: Dn): Promise<boolean> {
    return this.#insert.isMember(this.#inner(group), this.#inner(member))
  }

  async members(group: Dn, limit: number): Promise<readonly Dn[]> {
    return (await this.#insert.members(this.#inner(group), limit)).map((dn) => this.#outer(dn))
  }

  entryOf(account: TargetAccount): Dn | undefined {
    const dn = this.#insert.entryOf?.(account)
    return dn && this.#outer(dn)
  }

  async close(): Promise<void> {
    await this.#insert.close?.()
  }

  #innerFilter(filter: Filter): Filter {
    switch (filter.kind) {
      case 'and':
      case 'or':
        return { ...filter, filters: filter.filters.map((part) => this.#innerFilter(part)) }
      case 'not':
        return { ...filter, filter: this.#innerFilter(filter.filter) }
      default:
        return { ...filter, attribute: rename(filter.attribute, this.#toInner) }
    }
  }

  #outerEntry({ dn, attributes, id = entryId(attributes) }: InsertEntry): InsertEntry {
    const renamed = new Attributes()
    for (const [name, values] of attributes) {
      // Its name means another attribute in the directory. A rule about that one must not see this one's values.
      if (this.#toInner.has(name.toLowerCase()) && !this.#toOuter.has(name.toLowerCase())) continue
      const outer = rename(name, this.#toOuter)
      renamed.add(
        outer,
        holdsNames(outer)
          ? values.map((value) => changedName(value, (one) => this.#renamed(one, this.#toOuter)))
          : values,
      )
    }
    return { dn: this.#outer(dn), attributes: renamed, id }
  }

  #inner(dn: Dn): Dn {
    return this.#renamed(dn, this.#toInner) ?? dn
  }

  #outer(dn: Dn): Dn {
    return this.#renamed(dn, this.#toOuter) ?? dn
  }

  /** Without the suffix, which stays unchanged. Undefined for a name in another part of the tree. */
  #renamed(dn: Dn, names: ReadonlyMap<string, string>): Dn | undefined {
    if (!dn.isWithin(this.#suffix)) return undefined
    const depth = dn.rdns.length - this.#suffix.rdns.length
    return new Dn(
      dn.rdns.map((rdn, i) =>
        i < depth ? rdn.map(({ type, value }) => ({ type: renameType(type, names), value })) : rdn,
      ),
    )
  }
}

const rename = (name: string, names: ReadonlyMap<string, string>): string => names.get(name.toLowerCase()) ?? name

/** A name that is invalid in a distinguished name keeps the original type there. */
function renameType(type: string, names: ReadonlyMap<string, string>): string {
  const renamed = rename(type, names)
  return isAttributeType(renamed) ? renamed : type
}
