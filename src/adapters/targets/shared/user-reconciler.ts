import type { SyncOptions } from '#identity/account-store.ts'
import { entryChange, missingValues, orderChanges, userChanges } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { loginSpellings } from '#sdk/target/new-account.ts'
import type { PasswordTarget, Target, TargetChange, TargetRequest } from '#sdk/target/target.ts'

/** A user as read, with the data that the target needs to write it again. */
export interface StoredUser {
  readonly user: User
}

/** A user with the attributes that may be written, as the target will read them back. */
export interface AcceptedUser {
  readonly user: User
  readonly attributes: readonly string[]
}

export interface CreateCall {
  readonly attributes: readonly string[]
  readonly changes: readonly TargetChange[]
  readonly mustBeNew: boolean
  readonly request: TargetRequest
  /** Reads the user again, and returns what is missing; undefined if the user doesn't exist. */
  remaining(): Promise<readonly TargetChange[] | undefined>
}

export interface WriteCall {
  readonly changes: readonly TargetChange[]
  readonly options: SyncOptions
  readonly request: TargetRequest
}

export interface DeleteCall {
  /** As the caller gave it. */
  readonly user: User
  readonly changes: readonly TargetChange[]
  readonly expectedVersion: string | undefined
  readonly request: TargetRequest
}

/** Changes that were made and are not in the audit yet. */
type Unreported = readonly TargetChange[]

/**
 * How a target reads and writes one user, and what it can do. The reconciler decides the changes, and calls these
 * functions while no other change to the user runs.
 */
export interface UserStore<S extends StoredUser> {
  /** `groups` is false if the memberships don't matter. */
  read(
    userID: string,
    attributes: readonly string[],
    request: TargetRequest,
    options: { readonly groups: boolean },
  ): Promise<S | undefined>
  create(user: User, call: CreateCall): Promise<Unreported>
  write(stored: S, wanted: User, call: WriteCall): Promise<Unreported>
  delete(stored: S, call: DeleteCall): Promise<Unreported>
  /** Throws BAD_REQUEST, naming the attribute, for a value that the target can't store. */
  accept?(user: User, attributes: readonly string[], newUserID: string | undefined): AcceptedUser
  /** Any user that the target would take for one with this login; `read` if absent. */
  readAlike?(userID: string, attributes: readonly string[], request: TargetRequest): Promise<S | undefined>
  /** Completes a user that an earlier attempt began to create. Undefined if `missing` has another cause. */
  finish?(stored: S, missing: readonly TargetChange[], request: TargetRequest): Promise<Unreported> | undefined
  /** Removes what an earlier attempt left behind of a user that doesn't exist. */
  cleanUp?(user: User): Promise<void>
  /** Throws VERSION_MISMATCH if the group has another name by now. */
  requireGroup?(group: NamedGroup, request: TargetRequest): Promise<void>
  /** Whether a user other than this one has the login. By `read` if absent. */
  isTaken?(userID: string, by: S, request: TargetRequest): Promise<boolean>
  /** The values after `added` joined `present`; their union if absent. */
  join?(attribute: string, present: readonly string[], added: readonly string[]): readonly string[]
  /** The changes from a stored user to the wanted one; `userChanges` if absent. */
  changes?(before: User, wanted: User, attributes: readonly string[], isNew: boolean): TargetChange[]
  /** False, or absent: logins can't be changed. */
  readonly renames?: boolean
  /** Group names that differ only in letter case are the same. */
  readonly foldGroups?: boolean
  /** The system accepts logins that differ only in spelling, so the reconciler looks for those of a new user. */
  readonly looksForSpellings?: boolean
  /** `create` throws CONFLICT also if another writer just created the same user, which isn't a conflict. */
  readonly rereadsConflicts?: boolean
}

/**
 * Runs the work while no other change to the entry with this name runs, and again if another writer was faster and no
 * version is expected.
 */
export type Exclusively<T> = <R>(name: string, work: (store: T) => Promise<R>, expectedVersion?: string) => Promise<R>

/** One change after the other for each name, without regard to letter case. */
export function inQueue<T>(store: T): Exclusively<T> {
  const queue = new KeyedQueue()
  return (name, work) => queue.run(name.toLowerCase(), () => work(store))
}

/** Creates, changes and deletes users: each change reads, checks the version, and writes and reports differences. */
export function reconcileUsers<S extends StoredUser>(
  exclusively: Exclusively<UserStore<S>>,
): Pick<Target, 'createUser' | 'syncUser' | 'deleteUser'> {
  /** Attributes whose values the system returned in another order than they were written. */
  const unordered = new Set<string>()
  return {
    async createUser(given, listed, request, { mustBeNew = false } = {}) {
      let existed = false
      const existing = async (store: UserStore<S>, stored: S, { user, attributes }: AcceptedUser) => {
        existed = true
        const missing = differences(store, stored.user, user, attributes, true)
        const isSame = !mustBeNew && stored.user.userID === user.userID
        if (isSame && missing.length === 0) return []
        return (isSame ? await store.finish?.(stored, missing, request) : undefined) ?? loginTaken(user.userID)
      }
      const create = async (store: UserStore<S>): Promise<Unreported> => {
        const accepted = accept(store, given, listed)
        const { user, attributes } = accepted
        const read = (userID: string) => store.read(userID, attributes, request, { groups: true })
        const found = await (store.readAlike?.(user.userID, attributes, request) ?? read(user.userID))
        if (found !== undefined) return existing(store, found, accepted)
        for (const login of mustBeNew && store.looksForSpellings ? loginSpellings(user.userID) : []) {
          if ((await read(login)) !== undefined) loginTaken(login)
        }
        const changes = userChanges(undefined, user, { attributes, foldGroups: store.foldGroups ?? false })
        const remaining = async () => {
          const stored = await read(user.userID)
          return stored && differences(store, stored.user, user, attributes, true)
        }
        return store.create(user, { attributes, changes, mustBeNew, request, remaining })
      }
      const changes = await exclusively(given.userID, create).catch((error: unknown) => {
        if (mustBeNew || existed || !hasCode(error, 'CONFLICT')) throw error
        return exclusively(given.userID, async (store): Promise<Unreported> => {
          if (!store.rereadsConflicts) throw error
          const accepted = accept(store, given, listed)
          const found = await store.read(accepted.user.userID, accepted.attributes, request, { groups: true })
          if (found === undefined) throw error
          return existing(store, found, accepted)
        })
      })
      report(changes, request)
    },

    async syncUser(given, options, request) {
      const { expectedVersion, expectedGroup, newUserID, keepGroups, addOnly } = options
      const sync = async (store: UserStore<S>): Promise<Unreported> => {
        const { user, attributes } = accept(store, given, options.attributes, newUserID)
        const stored = await store.read(user.userID, attributes, request, { groups: !keepGroups })
        requireVersion(stored?.user, expectedVersion)
        if (stored === undefined) throw noUser(user.userID)
        if (expectedGroup !== undefined) await store.requireGroup?.(expectedGroup, request)
        const wanted = wantedUser(store, stored.user, user, { ...options, attributes })
        const asked = attributes.filter((name) => store.changes === undefined && !unordered.has(name.toLowerCase()))
        const moved = addOnly ? [] : orderChanges(stored.user.attributes, wanted.attributes, asked)
        const changes = [...differences(store, stored.user, wanted, attributes), ...moved]
        if (changes.length === 0) return []
        if (wanted.userID !== stored.user.userID) await requireFree(store, wanted.userID, stored, request)
        const call = { changes, options: { ...options, attributes }, request }
        if (moved.length === 0) return store.write(stored, wanted, call)
        const isOther = (change: TargetChange): boolean => !moved.includes(change)
        const audit = (change: TargetChange): void => (isOther(change) ? request.audit(change) : undefined)
        const unreported = await store.write(stored, wanted, { ...call, request: { ...request, audit } })
        const lost = await lostOrder(store, wanted, moved, request)
        for (const name of lost) unordered.add(name.toLowerCase())
        return [...unreported.filter(isOther), ...moved.filter(({ attribute }) => !lost.includes(attribute))]
      }
      report(await exclusively(given.userID, sync, expectedVersion), request)
    },

    async deleteUser(user, request, { expectedVersion } = {}) {
      const remove = async (store: UserStore<S>): Promise<Unreported> => {
        const stored = await store.read(user.userID, [], request, { groups: false })
        if (stored === undefined) await store.cleanUp?.(user)
        if (stored === undefined) return []
        requireVersion(stored.user, expectedVersion)
        const changes = [entryChange('entry', 'delete', 'userID', stored.user.userID)]
        return store.delete(stored, { user, changes, expectedVersion, request })
      }
      report(await exclusively(user.userID, remove, expectedVersion), request)
    },
  }
}

/** The attributes of `moved` whose values the system has in another order than wanted: it need not keep any. */
async function lostOrder<S extends StoredUser>(
  store: UserStore<S>,
  wanted: User,
  moved: readonly TargetChange[],
  request: TargetRequest,
): Promise<readonly string[]> {
  const names = moved.map(({ attribute }) => attribute)
  // The system accepted the change. One that does not answer now counts as one that keeps the order.
  const found = await store.read(wanted.userID, names, request, { groups: false }).catch(() => undefined)
  if (found === undefined) return []
  return orderChanges(found.user.attributes, wanted.attributes, names).map(({ attribute }) => attribute)
}

/** `set` returns false if the user no longer exists. The password itself is never reported. */
export const reconcilePasswords = <S extends StoredUser>(
  exclusively: Exclusively<Pick<UserStore<S>, 'read'>>,
  set: (stored: S, password: string, request: TargetRequest) => Promise<boolean>,
): Pick<PasswordTarget, 'setUserPassword'> => ({
  setUserPassword: (user, password, request) =>
    exclusively(user.userID, async (store) => {
      const stored = await store.read(user.userID, [], request, { groups: false })
      if (stored === undefined || !(await set(stored, password, request))) throw noUser(user.userID)
      request.audit({ subject: 'attribute', action: 'replace', attribute: 'password' })
    }),
})

function accept<S extends StoredUser>(
  store: UserStore<S>,
  user: User,
  attributes: readonly string[],
  newUserID?: string,
): AcceptedUser {
  if (store.accept !== undefined) return store.accept(user, attributes, newUserID)
  return { user: { ...user, attributes: user.attributes.pick(attributes) }, attributes }
}

/** The user after the change: attributes that may not change stay. */
function wantedUser<S extends StoredUser>(store: UserStore<S>, before: User, user: User, options: SyncOptions): User {
  const { addOnly, keepGroups, newUserID = before.userID } = options
  const join = store.join ?? ((_: string, present, added) => union(present, added))
  const attributes = before.attributes.clone()
  for (const name of options.attributes) {
    const values = user.attributes.values(name)
    attributes.set(name, addOnly ? join(name, before.attributes.values(name), values) : values)
  }
  const groups = keepGroups ? before.groups : addOnly ? union(before.groups, user.groups) : [...new Set(user.groups)]
  return { ...before, userID: newUserID, attributes, groups }
}

const union = (present: readonly string[], added: readonly string[]): string[] => [
  ...present,
  ...missingValues(present, added),
]

function differences<S extends StoredUser>(
  store: UserStore<S>,
  before: User,
  wanted: User,
  attributes: readonly string[],
  isNew = false,
): TargetChange[] {
  const changes =
    store.changes?.(before, wanted, attributes, isNew) ??
    userChanges(before, wanted, { attributes, foldGroups: store.foldGroups ?? false })
  if (wanted.userID === before.userID) return changes
  return [entryChange('entry', 'replace', 'userID', wanted.userID), ...changes]
}

async function requireFree<S extends StoredUser>(
  store: UserStore<S>,
  userID: string,
  stored: S,
  request: TargetRequest,
): Promise<void> {
  if (store.renames !== true) {
    throw new GatewayError('NOT_SUPPORTED', `the target can't change the login of "${stored.user.userID}"`)
  }
  const read = () => store.read(userID, [], request, { groups: false })
  const isTaken =
    store.isTaken === undefined
      ? ((await read())?.user.userID ?? stored.user.userID) !== stored.user.userID
      : await store.isTaken(userID, stored, request)
  if (isTaken) loginTaken(userID)
}

export function loginTaken(userID: string, cause?: unknown): never {
  throw new GatewayError('CONFLICT', `a user "${userID.slice(0, 100)}" already exists`, {
    cause,
    keyword: 'uniqueness',
  })
}

export const noUser = (userID: string): GatewayError =>
  new GatewayError('NOT_FOUND', `there is no user "${userID.slice(0, 100)}"`)

/** Throws VERSION_MISMATCH if a version is expected that the user or group doesn't have. */
export function requireVersion(
  found: { readonly version?: string | undefined } | undefined,
  expected: string | undefined,
): void {
  if (expected === undefined || found?.version === expected) return
  throw new GatewayError('VERSION_MISMATCH', `expected version ${expected}, found ${found?.version ?? 'none'}`)
}

export function report(changes: readonly TargetChange[], request: TargetRequest): void {
  for (const change of changes) request.audit(change)
}

export const hasCode = (error: unknown, code: GatewayError['code']): error is GatewayError =>
  error instanceof GatewayError && error.code === code
