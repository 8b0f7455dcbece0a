import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type {
  ChangeRecorder,
  GroupReading,
  GroupUpdate,
  NestingChange,
  Page,
  UserChange,
  UserDirectory,
  UserSearch,
  UserSync,
} from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import type { SqlClient } from '#storage/client/sql-client.ts'
import { foldKey, isStorable } from '#storage/client/text-keys.ts'
import { type Collections, DirectoryCollections } from '#storage/sql/directory-collections.ts'
import { findEntry, findWithMembers, searchEntries } from '#storage/sql/entry-reads.ts'
import type { Entry, Related } from '#storage/sql/entry-rows.ts'
import { changeMemberGroups, changeMembers, createGroup, deleteGroup, updateGroup } from '#storage/sql/group-writes.ts'
import { containingGroups } from '#storage/sql/nested-groups.ts'
import { recordedBy } from '#storage/sql/recorded-changes.ts'
import { createUser, deleteUser, syncUser } from '#storage/sql/user-writes.ts'

/** The users and groups of one name space in a SQL database. */
export class SqlUserDirectory implements UserDirectory {
  readonly #client: SqlClient
  readonly #clock: Clock
  readonly #collections: DirectoryCollections
  readonly #release: () => Promise<void>

  /** `release` gives back whatever the client was opened with. */
  constructor(client: SqlClient, name: string, clock: Clock, release: () => Promise<void>) {
    this.#client = client
    this.#clock = clock
    this.#collections = new DirectoryCollections(client, name)
    this.#release = release
  }

  async findByLogin(userID: string): Promise<User | undefined> {
    const entry = await this.#find('users', 'byKey', foldKey(userID), 'groups')
    return entry === undefined ? undefined : toUser(entry)
  }

  async findById(id: string): Promise<User | undefined> {
    const entry = await this.#find('users', 'byId', id, 'groups')
    return entry === undefined ? undefined : toUser(entry)
  }

  async searchUsers(search: UserSearch): Promise<Page<User>> {
    const { users } = this.#collections.known ?? (await this.#collections.get())
    const space = { collection: users, nameAttribute: 'userID' } as const
    const page = await searchEntries(this.#client, space, search, 'groups')
    return { ...page, items: page.items.map(toUser) }
  }

  create(user: User, record?: ChangeRecorder): Promise<readonly UserChange[]> {
    const client = recordedBy(this.#client, record)
    return this.#write((collections, now) => createUser(client, collections, user, now))
  }

  sync(change: UserSync, record?: ChangeRecorder): Promise<readonly UserChange[]> {
    const client = recordedBy(this.#client, record)
    return this.#write((collections, now) => syncUser(client, collections, change, now))
  }

  delete(
    userID: string,
    { expectedVersion }: { readonly expectedVersion?: string } = {},
    record?: ChangeRecorder,
  ): Promise<readonly UserChange[]> {
    const client = recordedBy(this.#client, record)
    return this.#write((collections, now) => deleteUser(client, collections, userID, expectedVersion, now))
  }

  findGroupByName(name: string, options: GroupReading = { members: true }): Promise<Group | undefined> {
    return this.#findGroup('byKey', foldKey(name), options)
  }

  findGroupById(id: string, options: GroupReading = { members: true }): Promise<Group | undefined> {
    return this.#findGroup('byId', id, options)
  }

  async searchGroups(search: UserSearch): Promise<Page<Group>> {
    const { groups } = this.#collections.known ?? (await this.#collections.get())
    const space = { collection: groups, nameAttribute: 'name' } as const
    const page = await searchEntries(this.#client, space, search, 'none')
    return { ...page, items: page.items.map((entry) => toGroup(entry)) }
  }

  createGroup(name: string, attributes: ReadonlyMap<string, readonly string[]>): Promise<Group> {
    return this.#write((collections, now) => createGroup(this.#client, collections, name, attributes, now))
  }

  updateGroup(name: string, update: GroupUpdate, record?: ChangeRecorder): Promise<readonly UserChange[]> {
    const client = recordedBy(this.#client, record)
    return this.#write((collections, now) => updateGroup(client, collections, name, update, now))
  }

  deleteGroup(name: string, { expectedVersion }: { readonly expectedVersion?: string } = {}): Promise<boolean> {
    return this.#write((collections, now) => deleteGroup(this.#client, collections, name, expectedVersion, now))
  }

  changeMembers(
    group: string,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<readonly UserChange[]> {
    return this.#write((collections, now) => changeMembers(this.#client, collections, group, change, now))
  }

  changeMemberGroups(group: string, change: NestingChange, record?: ChangeRecorder): Promise<readonly UserChange[]> {
    const client = recordedBy(this.#client, record)
    return this.#write((collections, now) => changeMemberGroups(client, collections, group, change, now))
  }

  async containingGroups(ids: readonly string[]) {
    const { groups } = this.#collections.known ?? (await this.#collections.get())
    return containingGroups(this.#client, groups, [...new Set(ids)].filter(isStorable))
  }

  close(): Promise<void> {
    return this.#release()
  }

  async #find(
    kind: keyof Collections,
    by: 'byId' | 'byKey',
    wanted: string,
    related: Related,
  ): Promise<Entry | undefined> {
    if (!isStorable(wanted)) return undefined
    const collections = this.#collections.known ?? (await this.#collections.get())
    return findEntry(this.#client, by, wanted, collections[kind], related)
  }

  async #findGroup(by: 'byId' | 'byKey', wanted: string, { members, display }: GroupReading) {
    if (!members) {
      const entry = await this.#find('groups', by, wanted, 'none')
      return entry === undefined ? undefined : toGroup(entry)
    }
    if (!isStorable(wanted)) return undefined
    const { groups } = this.#collections.known ?? (await this.#collections.get())
    const entry = await findWithMembers(this.#client, by, wanted, groups, display)
    return entry === undefined ? undefined : toGroup(entry, display !== undefined)
  }

  async #write<T>(work: (collections: Collections, now: number) => Promise<T>): Promise<T> {
    return work(this.#collections.known ?? (await this.#collections.get()), this.#clock().getTime())
  }
}

function toUser(entry: Entry): User {
  const { id, version, created, modified, attributes } = entry
  return {
    userID: entry.name,
    attributes,
    groups: entry.related,
    groupIds: entry.relatedIds,
    ...(entry.groupsAreNested === undefined ? {} : { groupsAreNested: entry.groupsAreNested }),
    id,
    version,
    created,
    modified,
  }
}

function toGroup(entry: Entry, hasDisplays = false): Group {
  const { id, name, version, created, modified, attributes } = entry
  const description = attributes.first('description')
  return {
    id,
    name,
    ...(description === undefined ? {} : { description }),
    members: entry.related,
    memberIds: entry.relatedIds,
    ...(hasDisplays && entry.displays !== undefined ? { memberDisplays: entry.displays } : {}),
    ...(entry.memberGroups === undefined ? {} : { memberGroups: entry.memberGroups }),
    attributes,
    version,
    created,
    modified,
  }
}
