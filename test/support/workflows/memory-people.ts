import { targetBranches } from '#directory/create-directory.ts'
import { VirtualDirectory } from '#directory/virtual-directory.ts'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import { matches } from '#identity/filter/evaluate.ts'
import type { Group } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { LookupTarget } from '#sdk/target/target.ts'

const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

/** Users and groups of one target, as the virtual directory shows them, and as the test changes them. */
export class MemoryPeople {
  readonly root = Dn.parse('o=Tremolo')
  readonly directory: VirtualDirectory
  /** If given, every lookup fails with it. */
  failure: Error | undefined
  readonly #membersAreIds: boolean
  #users: User[] = []
  #groups: Group[] = []

  constructor(membersAreIds = false) {
    this.#membersAreIds = membersAreIds
    const lookups = {
      lookupUserByLogin: async (login: string) =>
        this.#ask(() => this.#users.find(({ userID }) => same(userID, login))),
      lookupUserById: async (id: string) => this.#ask(() => this.#users.find((user) => user.id === id)),
      searchUsers: async (query: SearchQuery) =>
        this.#ask(() =>
          page(this.#users, (user) => [...user.attributes, ['userID', [user.userID]], ['id', [user.id ?? '']]], query),
        ),
      lookupGroupByName: async (name: string) => this.#ask(() => this.#groups.find((group) => same(group.name, name))),
      searchGroups: async (query: SearchQuery) =>
        this.#ask(() =>
          page(
            this.#groups,
            (group) => [
              ['name', [group.name]],
              ['id', [group.id]],
            ],
            query,
          ),
        ),
      groupMembersAreIds: membersAreIds,
    } as unknown as LookupTarget
    this.directory = new VirtualDirectory(targetBranches(this.root, new Map([['people', lookups]])))
  }

  /** Adds or replaces the user; creates the named groups. */
  put(userID: string, groups: readonly string[] = [], attributes: Record<string, string[]> = {}): this {
    this.remove(userID)
    const id = `id of ${userID}`
    this.#users.push({ userID, id, groups, attributes: Attributes.from({ mail: [`${userID}@x.org`], ...attributes }) })
    for (const name of groups) this.putGroup(name)
    return this
  }

  remove(userID: string): void {
    this.#users = this.#users.filter((user) => !same(user.userID, userID))
    for (const { name, attributes } of [...this.#groups]) this.putGroup(name, attributes?.toObject())
  }

  putGroup(name: string, attributes: Record<string, string[]> = {}): void {
    const members = this.#users.filter(({ groups }) => groups.includes(name))
    this.#groups = this.#groups.filter((group) => group.name !== name)
    this.#groups.push({
      id: `id of ${name}`,
      name,
      members: members.map(({ userID, id = '' }) => (this.#membersAreIds ? id : userID)),
      attributes: Attributes.from(attributes),
    })
  }

  userDn(login: string): Dn {
    return this.root.child('ou', 'people').child('uid', login)
  }

  groupDn(name: string): Dn {
    return this.root.child('ou', 'people').child('ou', 'groups').child('cn', name)
  }

  #ask<T>(answer: () => T): T {
    if (this.failure !== undefined) throw this.failure
    return answer()
  }
}

function page<T>(
  items: readonly T[],
  attributesOf: (item: T) => Iterable<readonly [string, readonly string[]]>,
  { filter, offset, limit }: SearchQuery,
): SearchPage<T> {
  const found = items.filter((item) => filter === undefined || matches(filter, Attributes.from(attributesOf(item))))
  return { items: found.slice(offset, offset + limit), total: found.length }
}
