import { Attributes } from '#identity/attributes.ts'
import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { SqlDatabase } from '#protocols/sql/sql-database.ts'
import { loginSpellings } from '#sdk/new-account.ts'
import type { SyncOptions, Target, TargetChange, TargetRequest } from '#sdk/target.ts'
import type { AccountStore } from './account-store.ts'

/** Each change locks the user, reads it, and writes what differs, in one transaction; it is told once that is durable. */
export function accountsOf(database: SqlDatabase, open: () => Promise<AccountStore>): Omit<Target, keyof Capabilities> {
  return {
    async findUser(userID, attributes) {
      const user = await (await open()).find(database, 'login', userID)
      return user === undefined ? undefined : { ...user, attributes: user.attributes.pick(attributes) }
    },

    async createUser(given, listed, request, options) {
      const mustBeNew = options?.mustBeNew === true
      const store = await open()
      const user = store.held(given, listed)
      const attributes = store.written(listed)
      const compared = attributes.filter((name) => user.attributes.has(name) || !store.hasDefault(name))
      const isThere = (found: User): boolean =>
        !mustBeNew && found.userID === user.userID && changesBetween(store, found, user, compared).length === 0
      try {
        const changes = await database.transaction(async (tx) => {
          await store.lock(tx, user.userID)
          const found = await store.find(tx, 'login', user.userID)
          if (found !== undefined) return isThere(found) ? [] : taken(user.userID)
          if (await store.isTaken(tx, user.userID)) taken(user.userID)
          for (const login of mustBeNew ? loginSpellings(user.userID) : []) {
            if ((await store.find(tx, 'login', login)) !== undefined) taken(login)
          }
          await store.insert(tx, user, attributes)
          return userChanges(undefined, user, { addOnly: false, attributes })
        })
        report(changes, request)
      } catch (error) {
        // The same asked twice is no conflict: the first time may have been an attempt whose answer was lost.
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        const found = await store.find(database, 'login', user.userID)
        if (found === undefined || !isThere(found)) throw error
      }
    },

    async syncUser(given, options, request) {
      const store = await open()
      const { newUserID } = options
      const user = store.held(given, options.attributes, newUserID)
      const attributes = store.written(options.attributes)
      const changes = await database.transaction(async (tx) => {
        await store.lock(tx, user.userID)
        const found = await store.find(tx, 'login', user.userID)
        requireVersion(found, options.expectedVersion)
        if (found === undefined) throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
        const { expectedGroup } = options
        if (expectedGroup !== undefined && (await store.isNamed(tx, expectedGroup)) === false) {
          throw new GatewayError('VERSION_MISMATCH', `the group "${expectedGroup.name}" is not what it was`)
        }
        const wanted = wantedState(store, found, user, { ...options, attributes })
        const changed = changesBetween(store, found, wanted, attributes)
        const renamed = newUserID !== undefined && newUserID !== found.userID
        if (changed.length === 0 && !renamed) return []
        if (renamed) {
          if (!store.renames) throw new GatewayError('NOT_SUPPORTED', 'logins cannot be changed here')
          await store.lock(tx, newUserID)
          const other = await store.find(tx, 'login', newUserID)
          if (other !== undefined && other.id !== found.id) taken(newUserID)
          if (await store.isTaken(tx, newUserID, found.id)) taken(newUserID)
        }
        const touched = new Set(changed.filter(({ subject }) => subject === 'attribute').map((each) => each.attribute))
        await store.update(tx, found, {
          attributes: new Map(Array.from(touched, (name) => [name, wanted.attributes.values(name)])),
          join: wanted.groups.filter((name) => !found.groups.includes(name)),
          leave: found.groups.filter((name) => !wanted.groups.includes(name)),
          newUserID: renamed ? newUserID : undefined,
        })
        const entry: TargetChange[] = renamed
          ? [{ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID }]
          : []
        return [...entry, ...changed]
      })
      report(changes, request)
    },

    async deleteUser(user, request, options) {
      const store = await open()
      const changes = await database.transaction(async (tx) => {
        await store.lock(tx, user.userID)
        const found = await store.find(tx, 'login', user.userID)
        if (found === undefined) return []
        requireVersion(found, options?.expectedVersion)
        await store.delete(tx, found)
        return [entryChange('entry', 'delete', 'userID', found.userID)]
      })
      report(changes, request)
    },
  }
}

type Capabilities = Pick<Target, 'close' | 'renamesUsers' | 'keepsVersions' | 'auditsWithin' | 'storable'>

/** What the user is to have in the end. An attribute that can have one value is not overwritten where only adding is asked. */
function wantedState(store: AccountStore, found: User, user: User, options: SyncOptions): User {
  const { addOnly, attributes, keepGroups } = options
  const wanted = new Attributes()
  for (const name of attributes) {
    const present = found.attributes.values(name)
    const added = user.attributes.values(name)
    wanted.set(name, addOnly ? joined(store, name, present, added) : added)
  }
  const groups = keepGroups ? found.groups : addOnly ? [...new Set([...found.groups, ...user.groups])] : user.groups
  return { ...user, attributes: wanted, groups }
}

function joined(
  store: AccountStore,
  name: string,
  present: readonly string[],
  added: readonly string[],
): readonly string[] {
  if (present.length === 0) return added
  return store.isMultiValued(name) ? [...new Set([...present, ...added])] : present
}

/** Another order alone is a change as well where orders are kept. */
function changesBetween(
  store: AccountStore,
  found: User,
  wanted: User,
  attributes: readonly string[],
): readonly TargetChange[] {
  const changes = userChanges(found, wanted, { addOnly: false, attributes })
  const changed = new Set(changes.map(({ attribute }) => attribute))
  const reordered = attributes.flatMap((attribute): TargetChange[] => {
    const values = wanted.attributes.values(attribute)
    const [value] = values
    if (value === undefined || changed.has(attribute) || !store.keepsOrder(attribute)) return []
    const present = found.attributes.values(attribute)
    if (present.every((each, i) => each === values[i])) return []
    return [{ subject: 'attribute', action: 'replace', attribute, value }]
  })
  return [...changes, ...reordered]
}

const report = (changes: readonly TargetChange[], request: TargetRequest): void => {
  for (const change of changes) request.audit(change)
}

function taken(userID: string): never {
  throw new GatewayError('CONFLICT', `there is a user "${userID}" already`, { keyword: 'uniqueness' })
}
