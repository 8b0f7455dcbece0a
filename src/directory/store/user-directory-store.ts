import type { DatabaseReader, SqlClient } from '#database/sql-client.ts'
import { inserted, statement } from '#database/statement.ts'
import { assertStorable, foldKey, isStorable } from '#database/text-keys.ts'
import type { ChangeAudit, EntryChange, GroupReadOptions, SyncOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Group, MembersPage } from '#identity/group.ts'
import type { SearchPage, SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import type { UserDirectory } from '#identity/user-directory.ts'
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
  firstValue,
  lockEntry,
  membersPerPage,
  renameEntry,
  resize,
  storedAttributes,
} from './entries.ts'
import { createGroup, deleteGroup, updateGroup } from './groups.ts'
import { changeGroups, findGroups, lockGroupName, type MembershipChanges, syncGroups } from './memberships.ts'
import { changeMemberGroups, containingGroups } from './nested-groups.ts'
import { createEntry } from './new-entry.ts'
import { keyList, listedKeys, searchEntries } from './search.ts'

type Collections = Pick<DirectoryWrite, 'users' | 'groups'>

/** The users and groups of one name space in a SQL database. Its methods are properties, so that targets can spread them. */
export class UserDirectoryStore implements UserDirectory {
  readonly #client: SqlClient
  readonly #name: string
  readonly #clock: Clock
  #known: Collections | undefined
  readonly close: () => Promise<void>

  /** `release` returns the client. */
  constructor(client: SqlClient, name: string, clock: Clock, release: () => Promise<void>) {
    assertStorable('directory name', name)
    this.#client = client
    this.#name = name
    this.#clock = clock
    this.close = release
  }

  readonly lookupUserByLogin = (login: string): Awaitable<User | undefined> => this.#findUser('key', foldKey(login))

  readonly lookupUserById = (id: string): Awaitable<User | undefined> => this.#findUser('id', id)

  #findUser(by: 'id' | 'key', wanted: string): Awaitable<User | undefined> {
    if (!isStorable(wanted)) return undefined
    return andThen(this.#collections(), ({ users }) =>
      andThen(findEntry(this.#client, users, by, wanted, 'groups'), (entry) => entry && toUser(entry)),
    )
  }

  readonly searchUsers = async (query: SearchQuery): Promise<SearchPage<User>> => {
    const { users } = await this.#collections()
    const space = { collection: users, nameAttribute: 'userID' } as const
    const page = await searchEntries(this.#client, space, query, 'groups')
    return { ...page, items: page.items.map(toUser) }
  }

  readonly createUser: UserDirectory['createUser'] = async (user, attributes, request, options) => {
    const wanted = { ...user, attributes: user.attributes.pick(attributes) }
    await unlessThere(
      () => this.#change(request, (write) => createUser(write, wanted)),
      async () => {
        if (options?.mustBeNew === true) return false
        const stored = await this.lookupUserByLogin(user.userID)
        return stored !== undefined && stored.userID === user.userID && isSameUser(stored, wanted)
      },
    )
  }

  readonly syncUser: UserDirectory['syncUser'] = (user, options, request) =>
    this.#change(request, (write) => syncUser(write, user, options))

  readonly deleteUser: UserDirectory['deleteUser'] = ({ userID }, request, options) =>
    this.#change(request, (write) => deleteUser(write, userID, options?.expectedVersion))

  readonly lookupGroupByName = (name: string, options?: GroupReadOptions): Promise<Group | undefined> =>
    this.#findGroup('key', foldKey(name), options)

  readonly lookupGroupById = (id: string, options?: GroupReadOptions): Promise<Group | undefined> =>
    this.#findGroup('id', id, options)

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

  readonly searchGroups = async (query: SearchQuery): Promise<SearchPage<Group>> => {
    const { groups } = await this.#collections()
    const space = { collection: groups, nameAttribute: 'name' } as const
    const page = await searchEntries(this.#client, space, query, 'none')
    return { ...page, items: page.items.map((entry) => toGroup(entry, false)) }
  }

  readonly createGroup: UserDirectory['createGroup'] = async (name, attributes, request, options) => {
    const wanted = Attributes.from(attributes)
    await unlessThere(
      () => this.#change(request, (write) => createGroup(write, name, wanted)),
      async () => {
        if (options?.mustBeNew === true) return false
        const stored = await this.lookupGroupByName(name, { members: false })
        return stored?.name === name && isSame(stored.attributes ?? new Attributes(), wanted)
      },
    )
  }

  readonly updateGroup: UserDirectory['updateGroup'] = (name, change, request) =>
    this.#change(request, (write) => updateGroup(write, name, change))

  readonly deleteGroup: UserDirectory['deleteGroup'] = (name, request, options) =>
    this.#change(request, (write) => deleteGroup(write, name, options?.expectedVersion))

  readonly changeMemberGroups: UserDirectory['changeMemberGroups'] = (group, change, request) =>
    this.#change(request, (write) => changeMemberGroups(write, group, change))

  readonly containingGroups: UserDirectory['containingGroups'] = async (ids) => {
    const { groups } = await this.#collections()
    return containingGroups(this.#client, groups, [...new Set(ids)].filter(isStorable))
  }

  /** Makes changes and audits them: in their own transaction if possible, else after it. */
  async #change(request: ChangeAudit, work: (write: DirectoryWrite) => Promise<readonly EntryChange[]>): Promise<void> {
    const { users, groups } = await this.#collections()
    const { auditWithin } = request
    let audited = false
    const changes = await work({
      users,
      groups,
      now: this.#clock().getTime(),
      transaction: (change) => {
        if (auditWithin === undefined) return this.#client.transaction(change)
        return this.#client.transaction(async (tx) => {
          const made = await change(tx)
          if (made.length > 0) audited = await auditWithin(tx, made)
          return made
        })
      },
    })
    for (const made of changes) request.audit(audited ? { ...made, audited } : made)
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

/** Creating the same entry again is not a conflict: the answer to the first attempt may have been lost. */
async function unlessThere(create: () => Promise<void>, isThere: () => Promise<boolean>): Promise<void> {
  try {
    await create()
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'CONFLICT' || !(await isThere())) throw error
  }
}

function isSameUser(stored: User, wanted: User): boolean {
  const keys = (groups: readonly string[]) => [...new Set(groups.map((name) => name.toLowerCase()))].sort()
  return isSame(stored.attributes, wanted.attributes) && isSameList(keys(stored.groups), keys(wanted.groups))
}

const isSame = (stored: Attributes, wanted: Attributes): boolean =>
  stored.size === wanted.size && Array.from(wanted).every(([name, values]) => isSameList(stored.values(name), values))

const isSameList = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i])

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
  { userID, attributes: given, groups: groupNames }: User,
  { newUserID, attributes: names, keepGroups, addOnly, expectedVersion, expectedGroup }: SyncOptions,
): Promise<readonly EntryChange[]> {
  const attributes = new Map(names.map((name) => [name, given.values(name)]))
  checkAttributes(attributes)
  const wantedGroups = keepGroups ? undefined : checkNames('group name', groupNames)
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

/** The users with these keys in the order of creation, one statement per page. Users that no longer exist are left out. */
async function* memberPages(
  reader: DatabaseReader,
  keys: readonly number[],
  display: GroupReadOptions['display'],
): AsyncGenerator<MembersPage> {
  const sorted = keys.toSorted((a, b) => a - b)
  const userDisplay = foldKey(display?.users ?? '')
  for (let start = 0; start < sorted.length; start += membersPerPage) {
    const some = keyList[reader.dialect](sorted.slice(start, start + membersPerPage))
    const rows = await findMembers.all(reader, { keys: some, userDisplay })
    yield {
      members: rows.map(({ name }) => name),
      memberIds: rows.map(({ id }) => id),
      memberDisplays: display === undefined ? undefined : rows.map(({ shown }) => shown ?? undefined),
    }
  }
}

const findMembers = statement<{ keys: string; userDisplay: string }, MemberRow>(
  ({ name }) => `with page as (${listedKeys[name]})
    select r.name, r.id, ${firstValue(':userDisplay')} as shown
    from page cross join entries r where r.pk = page.pk order by r.pk`,
)

interface MemberRow {
  readonly name: string
  readonly id: string
  readonly shown: string | null
}
