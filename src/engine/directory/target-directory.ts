import { withObjectClass } from '#engine/directory/object-class.ts'
import { Attributes } from '#identity/attributes.ts'
import type { DirectoryEntry, DirectorySearch, MemberDirectory } from '#identity/directory.ts'
import type { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { hasLookups, type LookupTarget, type Target } from '#sdk/target.ts'

/** At most this many entries are asked of one target for one search. */
const maxEntries = 1000

interface Branch {
  readonly target: LookupTarget
  readonly base: Dn
  readonly groups: Dn
}

/**
 * The virtual directory over the configured targets. Each target with look-ups is a branch: people are
 * `uid=<login>,ou=<target>,<root>`, groups `cn=<name>,ou=groups,ou=<target>,<root>`.
 */
export class TargetDirectory implements MemberDirectory {
  readonly #branches: readonly Branch[]

  constructor(root: Dn, targets: ReadonlyMap<string, Target>) {
    this.#branches = [...targets].flatMap(([name, target]) => {
      if (!hasLookups(target)) return []
      const base = root.child('ou', name)
      return [{ target, base, groups: base.child('ou', 'groups') }]
    })
  }

  async search(search: DirectorySearch): Promise<readonly DirectoryEntry[]> {
    const limit = Math.min(search.limit, maxEntries)
    const found: DirectoryEntry[] = []
    for (const branch of this.#branches) {
      if (found.length >= limit) break
      found.push(...(await this.#searchBranch(branch, search, limit - found.length)))
    }
    return found
  }

  async isMember(group: Dn, member: Dn): Promise<boolean> {
    for (const branch of this.#branches) {
      const name = leafBelow(branch.groups, group, 'cn')
      const login = leafBelow(branch.base, member, 'uid')
      if (name === undefined || login === undefined) continue
      const user = await branch.target.lookupUserByLogin(login)
      return user?.groups.some((held) => held.toLowerCase() === name.toLowerCase()) ?? false
    }
    return false
  }

  async members(group: Dn, limit: number): Promise<readonly DirectoryEntry[]> {
    for (const branch of this.#branches) {
      const name = leafBelow(branch.groups, group, 'cn')
      if (name === undefined) continue
      const { target } = branch
      const found = await target.lookupGroupByName(name)
      const members: DirectoryEntry[] = []
      for (const member of found?.members.slice(0, limit) ?? []) {
        const user = await (target.groupMembersAreIds
          ? target.lookupUserById(member)
          : target.lookupUserByLogin(member))
        if (user !== undefined) members.push(userEntry(user, branch))
      }
      return members
    }
    return []
  }

  async #searchBranch(branch: Branch, search: DirectorySearch, limit: number): Promise<DirectoryEntry[]> {
    const login = leafBelow(branch.base, search.base, 'uid')
    if (login !== undefined)
      return this.#single(await branch.target.lookupUserByLogin(login), userEntry, branch, search)
    const groupName = leafBelow(branch.groups, search.base, 'cn')
    if (groupName !== undefined) {
      return this.#single(await branch.target.lookupGroupByName(groupName), groupEntry, branch, search)
    }
    if (search.scope === 'base') return []
    const entries: DirectoryEntry[] = []
    if (covers(search, branch.base)) entries.push(...(await this.#users(branch, search, limit)))
    if (covers(search, branch.groups) && entries.length < limit) {
      entries.push(...(await this.#groups(branch, search, limit - entries.length)))
    }
    return entries
  }

  #single<T>(
    found: T | undefined,
    toEntry: (found: T, branch: Branch) => DirectoryEntry,
    branch: Branch,
    search: DirectorySearch,
  ): DirectoryEntry[] {
    if (found === undefined || search.scope === 'one') return []
    const entry = toEntry(found, branch)
    return matches(search.filter, entry.attributes) ? [entry] : []
  }

  async #users(branch: Branch, search: DirectorySearch, limit: number): Promise<DirectoryEntry[]> {
    const filter = withObjectClass(search.filter, personClasses, 'uid', 'userID')
    if (filter === false) return []
    const page = await branch.target.searchUsers({ ...(filter === true ? {} : { filter }), offset: 0, limit })
    return page.items.map((user) => userEntry(user, branch))
  }

  async #groups(branch: Branch, search: DirectorySearch, limit: number): Promise<DirectoryEntry[]> {
    const filter = withObjectClass(search.filter, groupClasses, 'cn', 'name')
    if (filter === false) return []
    const page = await branch.target.searchGroups({ ...(filter === true ? {} : { filter }), offset: 0, limit })
    return page.items.map((group) => groupEntry(group, branch))
  }
}

const personClasses = ['top', 'person', 'organizationalPerson', 'inetOrgPerson']
const groupClasses = ['top', 'groupOfUniqueNames', 'groupOfNames']

/** Entries directly in `container` are within the search. */
function covers(search: DirectorySearch, container: Dn): boolean {
  return search.scope === 'one' ? container.equals(search.base) : container.isWithin(search.base)
}

/** The value of the one RDN of this type that `dn` has below `container`; undefined when it stands elsewhere. */
function leafBelow(container: Dn, dn: Dn, type: string): string | undefined {
  const [first] = dn.rdns
  const [rdn] = first ?? []
  if (first?.length !== 1 || rdn === undefined || rdn.type.toLowerCase() !== type) return undefined
  return dn.parent?.equals(container) ? rdn.value : undefined
}

function userEntry(user: User, branch: Branch): DirectoryEntry {
  const attributes = user.attributes.clone()
  attributes.set('uid', [user.userID])
  if (!attributes.has('objectClass')) attributes.set('objectClass', personClasses)
  attributes.set(
    'memberOf',
    user.groups.map((name) => branch.groups.child('cn', name).toString()),
  )
  return { dn: branch.base.child('uid', user.userID), attributes }
}

function groupEntry(group: Group, branch: Branch): DirectoryEntry {
  const attributes = group.attributes?.clone() ?? new Attributes()
  attributes.set('cn', [group.name])
  if (group.description !== undefined) attributes.set('description', [group.description])
  if (!attributes.has('objectClass')) attributes.set('objectClass', groupClasses)
  if (!branch.target.groupMembersAreIds) {
    attributes.set(
      'uniqueMember',
      group.members.map((login) => branch.base.child('uid', login).toString()),
    )
  }
  return { dn: branch.groups.child('cn', group.name), attributes }
}
