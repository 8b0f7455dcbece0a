import { createHash } from 'node:crypto'
import sql from 'sql-template-tag'
import {
  type AcceptedUser,
  type Exclusively,
  loginTaken,
  noUser,
  reconcileUsers,
  type StoredUser,
  type UserStore,
} from '#adapters/targets/shared/user-reconciler.ts'
import { orderChanges, userChanges } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { SqlDatabase, SqlReader, SqlTransaction } from '#protocols/sql/sql-database.ts'
import type { PasswordTarget, Target } from '#sdk/target/target.ts'
import { refuse } from './column.ts'

/** A change of a user. */
export interface UserUpdate {
  /** All values that these attributes have afterwards. */
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly join: readonly string[]
  readonly leave: readonly string[]
  readonly newUserID: string | undefined
}

/** How values of an attribute are stored. */
export interface StorageRule {
  readonly isMultiValued: boolean
  readonly keepsOrder: boolean
  /** The database gives a new user a value of it. */
  readonly hasDefault: boolean
}

/** Users in a database: in tables that the configuration describes, or behind statements that it contains. */
export interface SqlUsers {
  readonly renames: boolean
  /** The attributes that can be stored, in lower case, with those that are another name of the login. */
  readonly attributes: ReadonlySet<string>
  /**
   * The user with these attributes only, with values as they will be read back, and without other names of the login.
   * Throws BAD_REQUEST, by name, for a value that can't be stored, and for another name of the login whose value is
   * neither the present nor the new login.
   */
  accept(user: User, attributes: readonly string[], newUserID?: string): AcceptedUser
  ruleOf(attribute: string): StorageRule
  /** Other transactions that create or change the user wait. */
  lock(tx: SqlTransaction, userID: string): Promise<void>
  /** Whether a user other than the one with this id has the login in another letter case, which only the database distinguishes. */
  isTaken(reader: SqlReader, login: string, except?: string): Promise<boolean>
  find(reader: SqlReader, by: 'login' | 'id', value: string): Promise<User | undefined>
  /** Whether the group has this name; undefined if groups have no ids of their own. */
  isNamed(tx: SqlTransaction, group: NamedGroup): Promise<boolean | undefined>
  /** Writes these attributes and the groups of a new user. */
  insert(tx: SqlTransaction, user: User, attributes: readonly string[]): Promise<void>
  update(tx: SqlTransaction, user: User, update: UserUpdate): Promise<void>
  delete(tx: SqlTransaction, user: User): Promise<void>
  setPassword(
    tx: SqlTransaction,
    user: User,
    password: { readonly plain: string; readonly hash: string },
  ): Promise<void>
}

/** Locks a name until the transaction ends. SQLite has one writer at a time anyway. */
export async function lockName(tx: SqlTransaction, scope: string, name: string): Promise<void> {
  if (tx.dialect === 'sqlite') return
  const key = createHash('sha256').update(`gatehouse ${scope} ${name}`).digest().readBigInt64BE()
  await tx.query(sql`select pg_advisory_xact_lock(cast(${String(key)} as bigint))`)
}

/**
 * Each change locks, reads and writes the user in one transaction, and reports the changes after the commit. With
 * `readOnly`, a call that would change something fails.
 */
export function usersOf(
  database: SqlDatabase,
  open: () => Promise<SqlUsers>,
  readOnly: boolean,
): Pick<Target, 'findUser' | 'createUser' | 'syncUser' | 'deleteUser' | 'requirePlaces'> {
  const inTransaction: Exclusively<UserStore<StoredUser>> = async (userID, work) => {
    const users = await open()
    return database.transaction(async (tx) => {
      await users.lock(tx, userID)
      const store = storeIn(tx, users)
      return work(readOnly ? { ...store, create: refuseChange, write: refuseChange, delete: refuseChange } : store)
    })
  }
  return {
    ...reconcileUsers(inTransaction),
    async requirePlaces(user, { attributes, newUserID }) {
      ;(await open()).accept(user, attributes, newUserID)
    },
    async findUser(userID, attributes) {
      const user = await (await open()).find(database, 'login', userID)
      return user && { ...user, attributes: user.attributes.pick(attributes) }
    },
  }
}

async function refuseChange(): Promise<never> {
  throw new GatewayError('TARGET_FAILED', 'it is read-only (readOnly is "true"), so nothing was changed')
}

/** Hashes a password to a PHC string, which names its algorithm and parameters. */
export type HashPassword = (password: string) => Promise<string>

/** Hashing is expensive, so its input is bounded, and it runs before the transaction. */
export const passwordsOf = (
  database: SqlDatabase,
  open: () => Promise<SqlUsers>,
  hashPassword: HashPassword,
): Pick<PasswordTarget, 'setUserPassword'> => ({
  async setUserPassword({ userID }, plain, request) {
    const users = await open()
    if (plain === '' || plain.length > 1024) refuse('password', 'must have 1 to 1024 characters')
    const hash = await hashPassword(plain)
    await database.transaction(async (tx) => {
      await users.lock(tx, userID)
      const user = await users.find(tx, 'login', userID)
      if (user === undefined) throw noUser(userID)
      await users.setPassword(tx, user, { plain, hash })
    })
    request.audit({ subject: 'attribute', action: 'replace', attribute: 'password' })
  },
})

function storeIn(tx: SqlTransaction, users: SqlUsers): UserStore<StoredUser> {
  const read = async (userID: string) => {
    const user = await users.find(tx, 'login', userID)
    return user && { user }
  }
  return {
    renames: users.renames,
    looksForSpellings: true,
    rereadsConflicts: true,
    read,
    accept: (user, attributes, newUserID) => users.accept(user, attributes, newUserID),
    create: async (user, { attributes, changes }) => {
      if (await users.isTaken(tx, user.userID)) loginTaken(user.userID)
      await users.insert(tx, user, attributes)
      return changes
    },
    write: async ({ user }, wanted, { changes }) => {
      const changed = new Set(changes.filter(({ subject }) => subject === 'attribute').map((each) => each.attribute))
      await users.update(tx, user, {
        attributes: new Map(Array.from(changed, (name) => [name, wanted.attributes.values(name)])),
        join: wanted.groups.filter((name) => !user.groups.includes(name)),
        leave: user.groups.filter((name) => !wanted.groups.includes(name)),
        newUserID: wanted.userID === user.userID ? undefined : wanted.userID,
      })
      return changes
    },
    delete: async ({ user }, { changes }) => {
      await users.delete(tx, user)
      return changes
    },
    /** When a user is created, values that the database sets are not compared. Another order can be a change. */
    changes: (before, wanted, attributes, isNew) => {
      const compared = attributes.filter(
        (name) => !isNew || wanted.attributes.has(name) || !users.ruleOf(name).hasDefault,
      )
      const ordered = compared.filter((name) => users.ruleOf(name).keepsOrder)
      const reordered = orderChanges(before.attributes, wanted.attributes, ordered)
      return [...userChanges(before, wanted, { attributes: compared }), ...reordered]
    },
    /** A single value is not overwritten if values are only added. */
    join: (attribute, present, added) => {
      if (present.length === 0) return added
      return users.ruleOf(attribute).isMultiValued ? [...new Set([...present, ...added])] : present
    },
    requireGroup: async (group) => {
      if ((await users.isNamed(tx, group)) !== false) return
      throw new GatewayError('VERSION_MISMATCH', `the group "${group.name}" was renamed or deleted`)
    },
    isTaken: async (userID, { user }) => {
      await users.lock(tx, userID)
      const other = await read(userID)
      return (other !== undefined && other.user.id !== user.id) || users.isTaken(tx, userID, user.id)
    },
  }
}
