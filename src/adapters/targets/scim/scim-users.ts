import { hasCode, loginTaken, noUser, report, requireVersion } from '#adapters/targets/shared/user-reconciler.ts'
import type { SyncOptions } from '#identity/account-store.ts'
import type { Attributes } from '#identity/attributes.ts'
import { entryChange, missingNames, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { internalName } from '#protocols/scim/schema/resource-schema.ts'
import type { Target, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import type { ScimProfile } from './profiles.ts'
import { applyEdits, type Edit, unfit } from './resource-mapping.ts'
import type { UserLookups } from './scim-lookups.ts'
import type { MembershipChange, Memberships } from './scim-memberships.ts'
import {
  changeRequest,
  isUncertain,
  modelOf,
  newResource,
  patchSchema,
  readUser,
  requiredPath,
  type ScimService,
  type ServerUser,
  type ServiceModel,
  send,
} from './scim-service.ts'

const maxAttempts = 5
const unfinishedMillis = 60 * 60_000

/** The writes of a sync, planned from the resource that was read. */
interface Plan {
  readonly edits: readonly Edit[]
  readonly newName: string | undefined
  readonly memberships: readonly MembershipChange[]
  readonly changes: readonly TargetChange[]
}

export function scimUsers(
  service: ScimService,
  lookups: UserLookups,
  memberships: Memberships,
  clock: Clock,
): Pick<Target, 'createUser' | 'syncUser' | 'deleteUser' | 'requirePlaces'> {
  const users = new ScimUsers(service, lookups, memberships, clock)
  return {
    createUser: (user, attributes, request, options) => users.create(user, attributes, request, options?.mustBeNew),
    syncUser: (user, options, request) => users.sync(user, options, request),
    deleteUser: (user, request, options) => users.delete(user, request, options?.expectedVersion),
    requirePlaces: async (user, { attributes, isNew, newUserID = user.userID }) => {
      checkLogin(user, attributes, [user.userID, newUserID])
      if (isNew || newUserID !== user.userID) checkSpelling(newUserID, service.profile)
      const { users } = await modelOf(service)
      const edits = users.edits({}, user.attributes, { attributes, addOnly: false })
      if (isNew) requireAttributes(edits, service.profile)
    },
  }
}

/**
 * Each change reads the user and writes the differences. Changes of one user run one after the other, and are bound to
 * the version that was read if the server has versions. After a lost answer, the user is read again, so that nothing is
 * done twice and only real changes are reported. This needs the plan that was sent, and compares resources rather than
 * attributes, so it does not use the shared user reconciler.
 */
class ScimUsers {
  readonly #service: ScimService
  readonly #users: UserLookups
  readonly #memberships: Memberships
  readonly #queue = new KeyedQueue()
  readonly #clock: Clock
  /** Users that a step began to create, by the step: its next attempt continues with them. */
  readonly #unfinished: BoundedCache<string>

  constructor(service: ScimService, users: UserLookups, memberships: Memberships, clock: Clock) {
    this.#service = service
    this.#users = users
    this.#memberships = memberships
    this.#clock = clock
    this.#unfinished = new BoundedCache(1000, clock)
  }

  create(user: User, attributes: readonly string[], request: TargetRequest, mustBeNew = false): Promise<void> {
    return this.#inTurn(user.userID, async () => {
      const model = await modelOf(this.#service)
      const options = { attributes, addOnly: false, mustBeNew }
      checkLogin(user, attributes, [user.userID])
      const edits = model.users.edits({}, user.attributes, options)
      const found = await this.#users.byLogin(user.userID)
      if (found !== undefined && mustBeNew) loginTaken(found.entry.userID)
      if (found !== undefined) return this.#continue(found, user, options, request, model)
      checkSpelling(user.userID, this.#service.profile)
      requireAttributes(edits, this.#service.profile)
      const groups = await this.#memberships.named(missingNames([], user.groups), request)
      const key = stepKey(request, user)
      this.#unfinished.set(key, user.userID, new Date(this.#clock().getTime() + unfinishedMillis))
      const made = await this.#post(user, edits, options, request, model)
      if (made === undefined) return
      await this.#join(made, groups, request)
      this.#unfinished.delete(key)
      const wanted = { userID: user.userID, attributes: attributesAfter({}, edits, model), groups: names(groups) }
      report(userChanges(undefined, wanted, listed(options)), request)
    })
  }

  sync(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const { newUserID = user.userID, expectedVersion, expectedGroup } = options
    return this.#inTurn(user.userID, async () => {
      const model = await modelOf(this.#service)
      checkLogin(user, options.attributes, [user.userID, newUserID])
      let sent: Plan | undefined
      for (let attempt = 1; ; attempt++) {
        const stored = await this.#present(user, newUserID, sent !== undefined)
        if (expectedGroup !== undefined) await this.#memberships.expect(expectedGroup)
        const plan = await this.#plan(stored, user, { ...options, request }, model)
        // An attempt whose answer was lost gave the user a new version.
        if (!isDone(plan, sent)) requireVersion(stored.entry, expectedVersion)
        sent = { ...plan, changes: sent?.changes ?? plan.changes }
        try {
          await this.#write(stored, plan, request, model)
          break
        } catch (error) {
          const lostRace = hasCode(error, 'VERSION_MISMATCH') && expectedVersion === undefined
          if (attempt >= maxAttempts || !(lostRace || (isUncertain(error) && attempt === 1))) throw error
          if (lostRace) sent = undefined
        }
      }
      report(sent.changes, request)
    })
  }

  delete(user: User, request: TargetRequest, expectedVersion: string | undefined): Promise<void> {
    return this.#inTurn(user.userID, async () => {
      const stored = await this.#users.byLogin(user.userID)
      if (stored === undefined) return
      requireVersion(stored.entry, expectedVersion)
      if (this.#service.profile.users.keepsDeleted === true) return this.#deactivate(stored, request)
      const path = requiredPath(this.#service, '/Users', stored.entry.id)
      try {
        await send(this.#service, { method: 'DELETE', path, ifMatch: expectedVersion }, request)
      } catch (error) {
        if (hasCode(error, 'NOT_FOUND')) return
        if (!isUncertain(error) || (await this.#users.byLogin(user.userID)) !== undefined) throw error
      }
      report([entryChange('entry', 'delete', 'userID', stored.entry.userID)], request)
    })
  }

  /** In place of a DELETE that would not delete. The report is about what happens: the user stays, deactivated. */
  async #deactivate({ entry, resource }: ServerUser, request: TargetRequest): Promise<void> {
    if (resource['active'] === false) return
    const path = requiredPath(this.#service, '/Users', entry.id)
    const Operations = [{ op: 'replace', path: 'active', value: false }]
    try {
      await send(this.#service, { method: 'PATCH', path, body: { schemas: [patchSchema], Operations } }, request)
    } catch (error) {
      const now = isUncertain(error) ? await this.#users.byLogin(entry.userID) : undefined
      if (now?.resource['active'] !== false) throw error
    }
    report([{ subject: 'attribute', action: 'replace', attribute: 'active', value: 'false' }], request)
  }

  #inTurn(userID: string, work: () => Promise<void>): Promise<void> {
    return this.#queue.run(userID.toLowerCase(), work)
  }

  /** The user exists: as requested, as an earlier attempt left it, or created by another caller. */
  async #continue(
    found: ServerUser,
    user: User,
    options: { readonly attributes: readonly string[]; readonly addOnly: boolean },
    request: TargetRequest,
    model: ServiceModel,
  ): Promise<void> {
    const key = stepKey(request, user)
    const isOwn = this.#unfinished.get(key) === user.userID
    const sameName = found.entry.userID === user.userID
    const edits = model.users.edits(found.resource, user.attributes, options)
    const missing = missingNames(found.entry.groups, user.groups)
    const isSubset = missingNames(user.groups, found.entry.groups).length === 0
    if (!sameName || edits.length > 0 || !isSubset || (missing.length > 0 && !isOwn)) loginTaken(user.userID)
    if (!isOwn) return
    const groups = await this.#memberships.named(missing, request)
    const added = groups.map((group) => ({ action: 'add', group }) as const)
    await this.#memberships.change(found.entry.id, added, request)
    this.#unfinished.delete(key)
    report(userChanges(undefined, { ...found.entry, groups: user.groups }, listed(options)), request)
  }

  /** Deletes the new user again if a group rejects it. */
  async #join(made: ServerUser, groups: readonly MembershipChange['group'][], request: TargetRequest): Promise<void> {
    const { id } = made.entry
    try {
      await this.#memberships.change(
        id,
        groups.map((group) => ({ action: 'add', group }) as const),
        request,
      )
    } catch (error) {
      if (isUncertain(error)) throw error
      const path = requiredPath(this.#service, '/Users', id)
      await send(this.#service, { method: 'DELETE', path }, request).catch((failure: unknown) => {
        this.#service.log.error('could not delete a user that failed to join its groups', { id, err: failure })
      })
      throw error
    }
  }

  /** Undefined if an identical user exists already and nothing is left to do. */
  async #post(
    user: User,
    edits: readonly Edit[],
    options: { readonly attributes: readonly string[]; readonly addOnly: boolean; readonly mustBeNew: boolean },
    request: TargetRequest,
    model: ServiceModel,
  ): Promise<ServerUser | undefined> {
    const resource = newResource(model.features.users, { attribute: 'userName', value: user.userID }, edits)
    const body = this.#service.profile.users.saysActive === true ? { active: true, ...resource } : resource
    for (let attempt = 1; ; attempt++) {
      try {
        const raw = await send(this.#service, { method: 'POST', path: '/Users', body }, request)
        const made = raw === undefined ? await this.#users.byLogin(user.userID) : readUser(raw, model, this.#service)
        if (made === undefined) throw new GatewayError('TARGET_FAILED', `target "${this.#service.name}" made no user`)
        return made
      } catch (error) {
        const isTaken = hasCode(error, 'CONFLICT')
        if (!isTaken && !isUncertain(error)) throw this.#ended(user, request, error)
        const found = await this.#users.byLogin(user.userID)
        if (found === undefined) {
          if (isTaken || attempt > 1) throw this.#ended(user, request, error)
          continue
        }
        const isSame =
          found.entry.userID === user.userID && model.users.edits(found.resource, user.attributes, options).length === 0
        // A conflict on the first attempt means that another caller created the user.
        const isOther = isTaken && options.mustBeNew && attempt === 1
        if (!isSame || isOther) {
          this.#unfinished.delete(stepKey(request, user))
          loginTaken(user.userID, error)
        }
        if (!isTaken) return found
        this.#unfinished.delete(stepKey(request, user))
        if (missingNames(found.entry.groups, user.groups).length > 0) loginTaken(user.userID, error)
        return undefined
      }
    }
  }

  /** Only after an error with an unknown outcome may there be a user to continue with. */
  #ended(user: User, request: TargetRequest, error: unknown): unknown {
    if (!isUncertain(error)) this.#unfinished.delete(stepKey(request, user))
    return error
  }

  /** By the login, or by the new one if an earlier attempt renamed the user. Throws NOT_FOUND. */
  async #present(user: User, newUserID: string, wasSent: boolean): Promise<ServerUser> {
    const found = await this.#users.byLogin(user.userID)
    if (found !== undefined) return found
    const renamed = newUserID === user.userID ? undefined : await this.#users.byLogin(newUserID)
    if (renamed !== undefined && (wasSent || renamed.entry.id === user.id)) return renamed
    throw noUser(user.userID)
  }

  async #plan(
    stored: ServerUser,
    user: User,
    options: SyncOptions & { readonly request: TargetRequest },
    model: ServiceModel,
  ): Promise<Plan> {
    const { addOnly, keepGroups, newUserID, request } = options
    const { entry, resource } = stored
    const edits = model.users.edits(resource, user.attributes, options)
    const newName = newUserID === undefined || newUserID === entry.userID ? undefined : newUserID
    requireChangeable(edits, newName, this.#service.profile)
    if (newName !== undefined && newName.toLowerCase() !== entry.userID.toLowerCase()) {
      if ((await this.#users.byLogin(newName)) !== undefined) loginTaken(newName)
    }
    const joined = keepGroups ? [] : await this.#memberships.named(missingNames(entry.groups, user.groups), request)
    const left = keepGroups || addOnly ? [] : missingNames(user.groups, entry.groups)
    const leaving = left.map((name) => ({ name, id: entry.groupIds?.[entry.groups.indexOf(name)] ?? '' }))
    const groups = [...entry.groups.filter((name) => !left.includes(name)), ...names(joined)]
    const after = { ...entry, attributes: attributesAfter(resource, edits, model), groups }
    const renamed: TargetChange[] =
      newName === undefined ? [] : [{ subject: 'entry', action: 'replace', attribute: 'userID', value: newName }]
    return {
      edits,
      newName,
      memberships: [
        ...joined.map((group) => ({ action: 'add', group }) as const),
        ...leaving.map((group) => ({ action: 'remove', group }) as const),
      ],
      changes: [...renamed, ...userChanges(entry, after, { ...listed(options), addOnly: false })],
    }
  }

  async #write(stored: ServerUser, plan: Plan, request: TargetRequest, model: ServiceModel): Promise<void> {
    const { edits, newName, memberships } = plan
    const path = requiredPath(this.#service, '/Users', stored.entry.id)
    if (edits.length > 0 || newName !== undefined) {
      const naming = { attribute: 'userName', value: newName } as const
      const how = { path, model, schema: model.features.users }
      await send(this.#service, changeRequest(stored, naming, edits, how), request)
    }
    if (memberships.length > 0) await this.#memberships.change(stored.entry.id, memberships, request)
  }
}

const isDone = ({ edits, newName }: Plan, sent: Plan | undefined): boolean =>
  sent !== undefined && edits.length === 0 && newName === undefined

const stepKey = ({ workflow, idempotencyKey }: TargetRequest, { userID }: User): string =>
  JSON.stringify([workflow.id, idempotencyKey, userID])

/** The login is `userID`; an attribute with another value would be lost. */
function checkLogin(user: User, attributes: readonly string[], logins: readonly string[]): void {
  for (const login of logins) {
    if (login === '' || !login.isWellFormed() || login.includes('\0'))
      throw unfit('userName', 'it is not a valid login')
  }
  const isListed = attributes.some((name) => name.toLowerCase() === 'username')
  const names = isListed ? user.attributes.values('userName') : []
  if (names.some((name) => !logins.includes(name))) throw unfit('userName', 'it is not the login')
}

/** Throws BAD_REQUEST for a login that the application would change or refuse. */
function checkSpelling(login: string, { title, users }: ScimProfile): void {
  if (users.login === undefined || users.login.pattern.test(login)) return
  throw unfit('userName', `${title} accepts ${users.login.rule}`)
}

/** Throws BAD_REQUEST for a new user without an attribute that the application needs. */
function requireAttributes(edits: readonly Edit[], { title, users }: ScimProfile): void {
  const missing = users.required?.find((name) => !edits.some(({ path }) => path.attribute.name === name))
  if (missing !== undefined) throw unfit(missing, `${title} needs it for a new user`)
}

/** Throws BAD_REQUEST for a change of what the application accepts with a new user only. */
function requireChangeable(edits: readonly Edit[], newName: string | undefined, profile: ScimProfile): void {
  const { fixed = [] } = profile.users
  const reason = `${profile.title} accepts it with a new user only`
  if (newName !== undefined) {
    if (fixed.includes('userName')) throw unfit('userName', reason)
    checkSpelling(newName, profile)
  }
  const edit = edits.find(({ path }) => fixed.includes(path.attribute.name))
  if (edit !== undefined) throw unfit(internalName(edit.path), reason)
}

function attributesAfter(resource: object, edits: readonly Edit[], { users }: ServiceModel): Attributes {
  return users.attributes(applyEdits({ ...resource }, edits))
}

/** The login is reported as the entry, not as an attribute. */
function listed<O extends { readonly attributes: readonly string[]; readonly addOnly: boolean }>(options: O) {
  const isLogin = (name: string) => ['username', 'userid'].includes(name.toLowerCase())
  return { addOnly: options.addOnly, attributes: options.attributes.filter((name) => !isLogin(name)) }
}

const names = (groups: readonly { readonly name: string }[]): string[] => groups.map(({ name }) => name)
