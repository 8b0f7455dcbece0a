import type { DatabaseReader, SqlClient } from '#database/sql-client.ts'
import { inserted, statement } from '#database/statement.ts'
import { assertStorable, foldKey, isStorable } from '#database/text-keys.ts'
import type { GroupChange, GroupReadOptions, MemberGroupChange } from '#identity/account-store.ts'
import type { EntryChange } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { ChangeRecorder, UserDirectory, UserSync } from '#identity/user-directory.ts'
import { type Awaitable, andThen } from '#kernel/awaitable.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { checkAttributes, checkName, checkNames, syncAttributes, valueRows } from './attributes.ts'
import {
  bumpEntries,
  checkVersion,
  type DirectoryWrite,
  deleteEntry,
  type Entry,
  explainConflict,
  findEntry,
  lockEntry,
  renameEntry,
  resize,
  storedAttributes,
} from './entries.ts'
import { changeMembers, createGroup, deleteGroup, updateGroup } from './groups.ts'
import { memberPages } from './member-pages.ts'
import { changeGroups, findGroups, lockGroupName, type MembershipChanges, syncGroups } from './memberships.ts'
import { changeMemberGroups, containingGroups } from './nested-groups.ts'
import { createEntry } from './new-entry.ts'
import { searchEntries } from './search.ts'

type Collections = Pick<DirectoryWrite, 'users' | 'groups'>

/** The users and groups of one name space in a SQL database. */
export class UserDirectoryStore implements UserDirectory {
  readonly #client: SqlClient
  readonly #name: string
  readonly #clock: Clock
  readonly #release: () => Promise<void>
  #known: Collections | undefined

  /** `release` returns the client. */
  constructor(client: SqlClient, name: string, clock: Clock, release: () => Promise<void>) {
    assertStorable('directory name', name)
    this.#client = client
    this.#name = name
    this.#clock = clock
    this.#release = release
  }

  findByLogin(userID: string): Awaitable<User | undefined> {
    return this.#findUser('key', foldKey(userID))
  }

  findById(id: string): Awaitable<User | undefined> {
    return this.#findUser('id', id)
  }

  #findUser(by: 'id' | 'key', wanted: string): Awaitable<User | undefined> {
    if (!isStorable(wanted)) return undefined
    return andThen(this.#collections(), ({ users }) =>
      andThen(findEntry(this.#client, users, by, wanted, 'groups'), (entry) => entry && toUser(entry)),
    )
  }

  async searchUsers(search: SearchQuery): Promise<SearchPage<User>> {
    const { users } = await this.#collections()
    const space = { collection: users, nameAttribute: 'userID' } as const
    const page = await searchEntries(this.#client, space, search, 'groups')
    return { ...page, items: page.items.map(toUser) }
  }

  async create(user: User, record?: ChangeRecorder): Promise<readonly EntryChange[]> {
    return createUser(await this.#write(record), user)
  }

  async sync(change: UserSync, record?: ChangeRecorder): Promise<readonly EntryChange[]> {
    return syncUser(await this.#write(record), change)
  }

  async delete(
    userID: string,
    options: { readonly expectedVersion?: string } = {},
    record?: ChangeRecorder,
  ): Promise<readonly EntryChange[]> {
    return deleteUser(await this.#write(record), userID, options.expectedVersion)
  }

  async findGroupByName(name: string, options?: GroupReadOptions): Promise<Group | undefined> {
    return this.#findGroup('key', foldKey(name), options)
  }

  async findGroupById(id: string, options?: GroupReadOptions): Promise<Group | undefined> {
    return this.#findGroup('id', id, options)
  }

  async #findGroup(
    by: 'id' | 'key',
    wanted: string,
    { members, display, inPages = false }: GroupReadOptions = { members: true },
  ): Promise<Group | undefined> {
    if (!isStorable(wanted)) return undefined
    const { groups } = await this.#collections()
    const related = !members ? 'none' : inPages ? 'fewMembers' : 'members'
    const entry = await findEntry(this.#client, groups, by, wanted, related, display)
    if (entry === undefined) return undefined
    const group = toGroup(entry, display !== undefined)
    const { memberKeys } = entry
    if (memberKeys === undefined) return group
    return { ...group, memberPages: () => memberPages(this.#client, memberKeys, display) }
  }

  async searchGroups(search: SearchQuery): Promise<SearchPage<Group>> {
    const { groups } = await this.#collections()
    const space = { collection: groups, nameAttribute: 'name' } as const
    const page = await searchEntries(this.#client, space, search, 'none')
    return { ...page, items: page.items.map((entry) => toGroup(entry, false)) }
  }

  async createGroup(name: string, attributes: ReadonlyMap<string, readonly string[]>): Promise<Group> {
    return createGroup(await this.#write(), name, attributes)
  }

  async updateGroup(name: string, update: GroupChange, record?: ChangeRecorder): Promise<readonly EntryChange[]> {
    return updateGroup(await this.#write(record), name, update)
  }

  async deleteGroup(name: string, options: { readonly expectedVersion?: string } = {}): Promise<boolean> {
    return deleteGroup(await this.#write(), name, options.expectedVersion)
  }

  async changeMembers(
    group: string,
    change: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Promise<readonly EntryChange[]> {
    return changeMembers(await this.#write(), group, change)
  }

  async changeMemberGroups(
    group: string,
    change: MemberGroupChange,
    record?: ChangeRecorder,
  ): Promise<readonly EntryChange[]> {
    return changeMemberGroups(await this.#write(record), group, change)
  }

  async containingGroups(ids: readonly string[]) {
    const { groups } = await this.#collections()
    return containingGroups(this.#client, groups, [...new Set(ids)].filter(isStorable))
  }

  close(): Promise<void> {
    return this.#release()
  }

  /** `record` gets the changes as part of their transaction, unless there are none. */
  async #write(record?: ChangeRecorder): Promise<DirectoryWrite> {
    const { users, groups } = await this.#collections()
    return {
      users,
      groups,
      now: this.#clock().getTime(),
      transaction: (work) => {
        if (record === undefined) return this.#client.transaction(work)
        return this.#client.transaction(async (tx) => {
          const result = await work(tx)
          if (isChanges(result)) await record(tx, result)
          return result
        })
      },
    }
  }

  /** Finds the directory's collections when they are first needed, and creates them if they are absent. */
  #collections(): Awaitable<Collections> {
    return this.#known ?? this.#openCollections()
  }

  async #openCollections(): Promise<Collections> {
    this.#known = (await this.#findCollections(this.#client)) ?? (await this.#createCollections())
    return this.#known
  }

  async #createCollections(): Promise<Collections> {
    return await this.#client.transaction(async (tx) => {
      for (const kind of ['users', 'groups']) await insertCollection.run(tx, { directory: this.#name, kind })
      const created = await this.#findCollections(tx)
      if (created === undefined) throw new GatewayError('INTERNAL', `cannot create the directory ${this.#name}`)
      return created
    })
  }

  async #findCollections(reader: DatabaseReader): Promise<Collections | undefined> {
    const rows = await findCollections.all(reader, { directory: this.#name })
    const users = rows.find(({ kind }) => kind === 'users')?.pk
    const groups = rows.find(({ kind }) => kind === 'groups')?.pk
    return users === undefined || groups === undefined ? undefined : { users, groups }
  }
}

const findCollections = statement<{ directory: string }, { pk: number; kind: string }>(
  `select pk, kind from collections where directory = :directory`,
)
const insertCollection = statement<{ directory: string; kind: string }>(
  `insert into collections ${inserted(['directory', 'kind'])} on conflict (directory, kind) do nothing`,
)

const isChanges = (result: unknown): result is readonly EntryChange[] => Array.isArray(result) && result.length > 0

function toUser(entry: Entry): User {
  const { id, name, version, created, modified, attributes, related, relatedIds, groupsAreNested } = entry
  return {
    userID: name,
    attributes,
    groups: related,
    groupIds: relatedIds,
    groupsAreNested,
    id,
    version,
    created,
    modified,
  }
}

function toGroup(entry: Entry, hasDisplays: boolean): Group {
  const { id, name, version, created, modified, attributes, related, relatedIds, displays, memberGroups } = entry
  const description = attributes.first('description')
  return {
    id,
    name,
    description,
    members: related,
    memberIds: relatedIds,
    ...(hasDisplays && displays !== undefined ? { memberDisplays: displays } : {}),
    memberGroups,
    attributes,
    version,
    created,
    modified,
  }
}

const loginTaken = 'A user with this login exists already.'

async function createUser(
  { transaction, users, groups, now }: DirectoryWrite,
  { userID, attributes, groups: groupNames }: User,
): Promise<readonly EntryChange[]> {
  checkName('login', userID)
  checkAttributes(attributes)
  const wantedGroups = checkNames('group name', groupNames)
  const values = valueRows(attributes)
  const stored = storedAttributes(attributes)
  const added: EntryChange[] = [
    { subject: 'entry', action: 'add', attribute: 'userID', value: userID },
    ...values.map(({ name, value }) => ({ subject: 'attribute', action: 'add', attribute: name, value }) as const),
  ]
  try {
    return await transaction(async (tx) => {
      const user = { collection: users, id: newId(), name: userID, attributes: stored, now }
      const counted = wantedGroups.size === 0
      const entry = await createEntry(tx, user, values, { counted })
      const joined = await changeGroups(tx, groups, entry, { join: wantedGroups }, { now })
      await bumpEntries(tx, joined.groups, now)
      await resize(tx, groups, joined.created)
      if (!counted) await resize(tx, users, 1)
      return [...added, ...joined.changes]
    })
  } catch (error) {
    throw explainConflict(error, loginTaken)
  }
}

const unchanged: MembershipChanges = { changes: [], groups: [], created: 0 }

async function syncUser(
  { transaction, users, groups, now }: DirectoryWrite,
  { userID, newUserID, attributes, groups: groupNames, addOnly, expectedVersion, expectedGroup }: UserSync,
): Promise<readonly EntryChange[]> {
  checkAttributes(attributes)
  const wantedGroups = groupNames === undefined ? undefined : checkNames('group name', groupNames)
  if (newUserID !== undefined) checkName('login', newUserID)
  try {
    return await transaction(async (tx) => {
      const entry = isStorable(userID) ? await lockEntry(tx, users, userID) : undefined
      if (entry === undefined) throw new GatewayError('NOT_FOUND', `no user ${userID}`)
      checkVersion(entry, expectedVersion)
      const changes: EntryChange[] = []
      if (newUserID !== undefined && (await renameEntry(tx, entry, newUserID))) {
        changes.push({ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID })
      }
      const ofAttributes = await syncAttributes(tx, entry, users, attributes, { addOnly, now })
      changes.push(...ofAttributes)
      const known = expectedGroup && (await lockGroupName(tx, groups, expectedGroup))
      const options = { addOnly, refusesFormerNames: expectedVersion !== undefined, known, now }
      const memberships =
        wantedGroups === undefined ? unchanged : await syncGroups(tx, entry.pk, groups, wantedGroups, options)
      changes.push(...memberships.changes)
      const needsVersion = changes.length > 0 && ofAttributes.length === 0
      await bumpEntries(tx, needsVersion ? [entry.pk, ...memberships.groups] : memberships.groups, now)
      await resize(tx, groups, memberships.created)
      return changes
    })
  } catch (error) {
    throw explainConflict(error, loginTaken)
  }
}

async function deleteUser(
  { transaction, users, groups, now }: DirectoryWrite,
  userID: string,
  expectedVersion: string | undefined,
): Promise<readonly EntryChange[]> {
  if (!isStorable(userID)) return []
  return await transaction(async (tx) => {
    const entry = await lockEntry(tx, users, userID)
    if (entry === undefined) return []
    checkVersion(entry, expectedVersion)
    const leave = await findGroups.all(tx, { user: entry.pk })
    const left = await changeGroups(tx, groups, entry.pk, { leave }, { now })
    await bumpEntries(tx, left.groups, now)
    await deleteEntry.run(tx, entry)
    await resize(tx, users, -1)
    return [{ subject: 'entry', action: 'delete', attribute: 'userID', value: entry.name }]
  })
}
