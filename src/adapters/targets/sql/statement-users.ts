import { groupCollection, userCollection } from '#adapters/targets/shared/collections.ts'
import type { AcceptedUser } from '#adapters/targets/shared/user-reconciler.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDatabase, SqlReader, SqlRow, SqlTransaction, SqlValue } from '#protocols/sql/sql-database.ts'
import type { LookupTarget, Target } from '#sdk/target/target.ts'
import { refuse } from './column.ts'
import { bindStatement, type StatementsConfig, type StatementText } from './statements.ts'
import { lockName, type SqlUsers, type StorageRule, type UserUpdate } from './user-store.ts'

const ownPlaces = new Set(['userID', 'id'])
const maxValueBytes = 1024 * 1024

/** Users behind configured statements. */
export class StatementUsers implements SqlUsers {
  readonly renames: boolean
  readonly attributes: ReadonlySet<string>
  readonly #config: StatementsConfig
  readonly #scope: string

  /** `scope` distinguishes the locks of this target from those of others. */
  constructor(config: StatementsConfig, scope: string) {
    this.#config = config
    this.#scope = scope
    this.renames = config.statements.has('renameUser')
    const places = ['createUser', 'updateUser'].flatMap((name) => config.statements.get(name)?.names ?? [])
    const named = places.filter((name) => !ownPlaces.has(name)).map((name) => name.toLowerCase())
    this.attributes = new Set([...named, ...config.multiValued])
  }

  accept(user: User, attributes: readonly string[]): AcceptedUser {
    const kept = new Attributes()
    for (const name of attributes) {
      const values = [...new Set(user.attributes.values(name))]
      if (values.length > 0 && !this.attributes.has(name.toLowerCase()))
        refuse(name, 'cannot be stored: no statement has a place for it')
      if (values.length > 1 && !this.#isMultiValued(name)) refuse(name, 'can have one value only')
      for (const value of values) checkText(name, value)
      kept.set(name, values)
    }
    checkText('userID', user.userID)
    for (const group of user.groups) checkText('groups', group)
    if (user.groups.length > 0 && !this.#config.statements.has('addMember'))
      refuse('groups', 'cannot be stored: no groups are kept')
    return { user: { userID: user.userID, attributes: kept, groups: [...new Set(user.groups)] }, attributes }
  }

  ruleOf(attribute: string): StorageRule {
    return { isMultiValued: this.#isMultiValued(attribute), keepsOrder: false, hasDefault: false }
  }

  isNamed = async (): Promise<undefined> => undefined
  /** The statements decide which logins are the same. */
  isTaken = async (): Promise<boolean> => false

  lock(tx: SqlTransaction, userID: string): Promise<void> {
    return lockName(tx, this.#scope, userID)
  }

  async find(reader: SqlReader, by: 'login' | 'id', value: string): Promise<User | undefined> {
    if (!isText(value)) return undefined
    const statement = by === 'login' ? 'findUser' : 'findUserById'
    const rows = await this.#query(reader, statement, new Map([[by === 'login' ? 'userID' : 'id', value]]))
    const [user, second] = readUsers(rows)
    if (second !== undefined) throw new GatewayError('TARGET_FAILED', `the statement ${statement} found several users`)
    return user === undefined ? undefined : this.withGroups(reader, user)
  }

  async withGroups(reader: SqlReader, user: User): Promise<User> {
    if (!this.#config.statements.has('findUserGroups')) return user
    const rows = await this.#query(reader, 'findUserGroups', placesOf(user))
    const groups = rows.map((row) => String(cell(row, 'name') ?? '')).filter((name) => name !== '')
    return { ...user, groups: [...new Set(groups)] }
  }

  async insert(tx: SqlTransaction, user: User): Promise<void> {
    await this.#run(tx, 'createUser', this.#places(user))
    const made = readUsers(await this.#query(tx, 'findUser', new Map([['userID', user.userID]])))[0]
    if (made === undefined)
      throw new GatewayError('TARGET_FAILED', 'the statement createUser made no user that findUser finds')
    for (const [name, values] of user.attributes)
      if (this.#isMultiValued(name)) await this.#values(tx, made, name, values)
    for (const group of user.groups) await this.#member(tx, 'addMember', made, group)
  }

  async update(tx: SqlTransaction, user: User, { attributes, join, leave, newUserID }: UserUpdate): Promise<void> {
    const wanted = user.attributes.clone()
    for (const [name, values] of attributes) {
      wanted.set(name, values)
      if (this.#isMultiValued(name)) await this.#values(tx, user, name, values)
    }
    for (const group of leave.toSorted()) await this.#member(tx, 'removeMember', user, group)
    for (const group of join.toSorted()) await this.#member(tx, 'addMember', user, group)
    const isPlain = [...attributes.keys()].some((name) => !this.#isMultiValued(name))
    if (isPlain) await this.#run(tx, 'updateUser', this.#places({ ...user, attributes: wanted }))
    if (newUserID === undefined) return
    checkText('userID', newUserID)
    await this.#run(tx, 'renameUser', new Map([...placesOf(user), ['newUserID', newUserID]]))
  }

  async delete(tx: SqlTransaction, user: User): Promise<void> {
    await this.#run(tx, 'deleteUser', placesOf(user))
  }

  setPassword(
    tx: SqlTransaction,
    user: User,
    password: { readonly plain: string; readonly hash: string },
  ): Promise<void> {
    const places = new Map([...placesOf(user), ['password', password.plain], ['hash', password.hash]])
    return this.#run(tx, 'setPassword', places)
  }

  /** Without groups. */
  async all(reader: SqlReader, limit: number): Promise<User[]> {
    const users = readUsers(await this.#query(reader, 'searchUsers', new Map()))
    if (users.length > limit)
      throw new GatewayError('TARGET_FAILED', `the statement searchUsers found more than ${limit} users`)
    return users
  }

  async #values(tx: SqlTransaction, user: User, name: string, wanted: readonly string[]): Promise<void> {
    const present = user.attributes.values(name)
    const change = (kind: string, value: string) =>
      this.#run(tx, this.#named(kind, name), new Map([...placesOf(user), ['value', value]]))
    for (const value of present) if (!wanted.includes(value)) await change('removeValue', value)
    for (const value of wanted) if (!present.includes(value)) await change('addValue', value)
  }

  #isMultiValued = (attribute: string): boolean => this.#config.multiValued.has(attribute.toLowerCase())

  #named(kind: string, attribute: string): string {
    const wanted = `${kind}.${attribute}`.toLowerCase()
    return [...this.#config.statements.keys()].find((name) => name.toLowerCase() === wanted) ?? wanted
  }

  #member(tx: SqlTransaction, statement: string, user: User, group: string): Promise<void> {
    return this.#run(tx, statement, new Map([...placesOf(user), ['group', group]]))
  }

  #places(user: User): Map<string, SqlValue> {
    const places = new Map<string, SqlValue>()
    for (const [name, [value = null]] of user.attributes) places.set(name.toLowerCase(), value)
    for (const [name, value] of placesOf(user)) places.set(name, value)
    return places
  }

  async #query(reader: SqlReader, name: string, places: ReadonlyMap<string, SqlValue>): Promise<readonly SqlRow[]> {
    return reader.query(bindStatement(this.statement(name), reader.dialect, valueIn(places)))
  }

  /** Throws TARGET_FAILED if the statement changed nothing. */
  async #run(tx: SqlTransaction, name: string, places: ReadonlyMap<string, SqlValue>): Promise<void> {
    const rows = await tx.run(bindStatement(this.statement(name), tx.dialect, valueIn(places)))
    if (rows === 0) throw new GatewayError('TARGET_FAILED', `the statement ${name} changed nothing`)
  }

  statement(name: string): StatementText {
    const statement = this.#config.statements.get(name)
    if (statement === undefined) throw new GatewayError('NOT_SUPPORTED', `there is no statement ${name}`)
    return statement
  }
}

const valueIn =
  (places: ReadonlyMap<string, SqlValue>) =>
  (name: string): SqlValue =>
    places.get(name) ?? places.get(name.toLowerCase()) ?? null

const placesOf = (user: User): Map<string, SqlValue> =>
  new Map<string, SqlValue>([
    ['userID', user.userID],
    ['id', user.id ?? user.userID],
  ])

/** A column by its name in any letter case, since databases change it. */
function cell(row: SqlRow, name: string): unknown {
  const wanted = name.toLowerCase()
  const found = Object.keys(row).find((key) => key.toLowerCase() === wanted)
  return found === undefined ? undefined : row[found]
}

/** One user may be in several rows, which together have its values. */
function readUsers(rows: readonly SqlRow[]): User[] {
  const users = new Map<string, User>()
  for (const row of rows) {
    const login = cell(row, 'userID')
    if (login === undefined || login === null)
      throw new GatewayError('TARGET_FAILED', 'a statement gives no column userID')
    const userID = String(login)
    const [id, version] = [cell(row, 'id'), cell(row, 'version')]
    const user = users.get(userID) ?? {
      userID,
      attributes: new Attributes(),
      groups: [],
      ...(id === undefined || id === null ? {} : { id: String(id) }),
      ...(version === undefined || version === null ? {} : { version: String(version) }),
    }
    users.set(userID, user)
    for (const [name, value] of Object.entries(row)) {
      if (value === null || /^(?:userid|id|version)$/i.test(name)) continue
      if (!user.attributes.values(name).includes(String(value))) user.attributes.add(name, [String(value)])
    }
  }
  return [...users.values()]
}

const isText = (value: string): boolean => value.isWellFormed() && !value.includes('\0')

function checkText(name: string, value: string): void {
  if (!isText(value)) refuse(name, 'holds a character that cannot be stored')
  if (Buffer.byteLength(value) > maxValueBytes) refuse(name, 'has a value that is too long')
}

/** The statement returns all users, which are then filtered in memory. */
export function statementLookups(
  database: SqlDatabase,
  users: StatementUsers,
  { statements }: StatementsConfig,
  limit: number,
): Omit<LookupTarget, keyof Target> {
  async function groups(): Promise<Group[]> {
    if (!statements.has('searchGroups')) return []
    const rows = await database.query(bindStatement(users.statement('searchGroups'), database.dialect, () => null))
    if (rows.length > limit)
      throw new GatewayError('TARGET_FAILED', `the statement searchGroups found more than ${limit} rows`)
    return rows.map(toGroup)
  }

  /** Not every statement returns ids, so the name identifies a group; the id is for the statement of its members. */
  const byName = (group: Group): Group => ({ ...group, id: group.name })

  async function named(name: string, members: boolean): Promise<Group | undefined> {
    const group = (await groups()).find((candidate) => candidate.name === name)
    if (group === undefined) return undefined
    if (!members || !statements.has('findGroupMembers')) return byName(group)
    const places = new Map([
      ['name', group.name],
      ['id', group.id],
    ])
    const statement = users.statement('findGroupMembers')
    const rows = await database.query(bindStatement(statement, database.dialect, (name) => places.get(name) ?? null))
    return { ...byName(group), members: rows.map((row) => String(cell(row, 'userID') ?? '')) }
  }

  return {
    groupMembersAreIds: false,
    userIdIsLogin: !statements.has('findUserById'),
    groupHasOwnId: false,
    lookupUserByLogin: (login) => users.find(database, 'login', login),
    lookupUserById: (id) => users.find(database, statements.has('findUserById') ? 'id' : 'login', id),
    async searchUsers(query) {
      const page = pageInMemory(await users.all(database, limit), query, userCollection)
      const items = []
      for (const user of page.items) items.push(await users.withGroups(database, user))
      return { ...page, items }
    },
    lookupGroupByName: (name, options) => named(name, options?.members ?? true),
    lookupGroupById: (id, options) => named(id, options?.members ?? true),
    searchGroups: async (query) => pageInMemory((await groups()).map(byName), query, groupCollection),
  }
}

function toGroup(row: SqlRow): Group {
  const name = String(cell(row, 'name') ?? '')
  const attributes = new Attributes()
  for (const [key, value] of Object.entries(row)) {
    if (value !== null && !/^(?:name|id)$/i.test(key)) attributes.set(key, [String(value)])
  }
  const description = attributes.first('description')
  return {
    id: String(cell(row, 'id') ?? name),
    name,
    members: [],
    attributes,
    description,
  }
}
