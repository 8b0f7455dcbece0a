import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type {
  ChangeRecorder,
  GroupUpdate,
  Page,
  UserChange,
  UserDirectory,
  UserSearch,
  UserSync,
} from '#identity/user-directory.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Collections, DirectoryCollections } from '#storage/sql/directory-collections.ts'
import { findEntry, searchEntries } from '#storage/sql/entry-reads.ts'
import type { Entry, Related } from '#storage/sql/entry-rows.ts'
import { changeMembers, createGroup, deleteGroup, updateGroup } from '#storage/sql/group-writes.ts'
import { recordedBy } from '#storage/sql/recorded-changes.ts'
import type { SqlClient } from '#storage/sql/sql-client.ts'
import { foldKey, isStorable } from '#storage/sql/text-keys.ts'
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

  async findGroupByName(name: string, options = { members: true }): Promise<Group | undefined> {
    const entry = await this.#find('groups', 'byKey', foldKey(name), options.members ? 'members' : 'none')
    return entry === undefined ? undefined : toGroup(entry)
  }

  async findGroupById(id: string, options = { members: true }): Promise<Group | undefined> {
    const entry = await this.#find('groups', 'byId', id, options.members ? 'members' : 'none')
    return entry === undefined ? undefined : toGroup(entry)
  }

  async searchGroups(search: UserSearch): Promise<Page<Group>> {
    const { groups } = this.#collections.known ?? (await this.#collections.get())
    const space = { collection: groups, nameAttribute: 'name' } as const
    const page = await searchEntries(this.#client, space, search, 'none')
    return { ...page, items: page.items.map(toGroup) }
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
    id,
    version,
    created,
    modified,
  }
}

function toGroup(entry: Entry): Group {
  const { id, name, version, created, modified, attributes } = entry
  const description = attributes.first('description')
  return {
    id,
    name,
    ...(description === undefined ? {} : { description }),
    members: entry.related,
    memberIds: entry.relatedIds,
    attributes,
    version,
    created,
    modified,
  }
}
