import {
  type CreateCall,
  inQueue,
  noUser,
  reconcilePasswords,
  reconcileUsers,
  report,
  type StoredUser,
  type UserStore,
  type WriteCall,
} from '#adapters/targets/shared/user-reconciler.ts'
import { userChanges } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Target, TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { settle } from './api-caller.ts'
import { refusedValue } from './templates.ts'
import type { Places, WebhookApi } from './webhook-api.ts'
import { hasPlace, type Operation } from './webhook-config.ts'

type Users = Pick<Target, 'findUser' | 'createUser' | 'syncUser' | 'deleteUser' | 'requirePlaces'>

export function webhookUsers(api: WebhookApi): Users {
  const store = new WebhookUserStore(api)
  const exclusively = inQueue(store)
  const { createUser, updateUser } = api.config.operations
  return {
    findUser: (userID, _, request) => api.findUser(userID, request),
    ...reconcileUsers<StoredUser>(exclusively),
    requirePlaces: async (user, { attributes, isNew, newUserID = user.userID }) =>
      store.requirePlaces({ ...user, userID: newUserID }, attributes, isNew ? createUser : updateUser),
    // The password is sent in the body only.
    ...(api.config.operations.setPassword === undefined
      ? {}
      : reconcilePasswords<StoredUser>(exclusively, ({ user }, password, request) =>
          api.write('setPassword', { ...placesOf(user), password }, { request }),
        )),
  }
}

/** Reports each request as soon as it is done, so that a change that fails part way is reported as far as it went. */
class WebhookUserStore implements UserStore<StoredUser> {
  readonly renames: boolean
  readonly #api: WebhookApi

  constructor(api: WebhookApi) {
    this.#api = api
    this.renames = api.config.can.renames
  }

  async read(userID: string, _: readonly string[], request: TargetRequest): Promise<StoredUser | undefined> {
    const user = await this.#api.findUser(userID, request)
    return user && { user }
  }

  async create(user: User, call: CreateCall): Promise<readonly TargetChange[]> {
    const { attributes, changes, mustBeNew, request, remaining } = call
    const { userID } = user
    this.requirePlaces(user, attributes, this.#api.config.operations.createUser)
    const join = await this.#prepareMemberships(user.groups, [], request)
    await settle(
      () => this.#api.write('createUser', { userID }, { body: { values: valuesOf(user) }, request }),
      async (certain) => {
        if (certain && mustBeNew) return false
        const rest = await remaining()
        return rest?.every(({ subject }) => !certain && subject === 'group' && join !== undefined) ?? false
      },
    )
    if (join === undefined) return changes
    report(withoutGroups(changes), request)
    const created = await this.#api.findUser(userID, request)
    if (created === undefined) throw new GatewayError('TARGET_FAILED', `user "${userID}" was created but is not found`)
    await join(created)
    return []
  }

  async write({ user: before }: StoredUser, wanted: User, call: WriteCall): Promise<readonly TargetChange[]> {
    const { changes, request } = call
    const changed = changes.flatMap(({ subject, attribute }) => (subject === 'attribute' ? [attribute] : []))
    this.requirePlaces(wanted, changed, this.#api.config.operations.updateUser)
    const groups = (wantedAction: TargetChange['action']) =>
      changes.flatMap(({ subject, action, value = '' }) =>
        subject === 'group' && action === wantedAction ? [value] : [],
      )
    const changeMemberships = await this.#prepareMemberships(groups('add'), groups('delete'), request)
    const inBody = changeMemberships === undefined ? changes : withoutGroups(changes)
    if (inBody.length > 0) await this.#update(before, wanted, inBody, call)
    await changeMemberships?.({ ...before, userID: wanted.userID })
    return []
  }

  async delete({ user }: StoredUser, call: Parameters<UserStore<StoredUser>['delete']>[1]) {
    const { changes, expectedVersion, request } = call
    await settle(
      () => this.#api.write('deleteUser', { ...placesOf(user), version: expectedVersion }, { request }),
      async () => (await this.#api.findUser(user.userID, request)) === undefined,
    )
    return changes
  }

  /** Throws VERSION_MISMATCH if the group was renamed or deleted. */
  async requireGroup(expected: NamedGroup, request: TargetRequest): Promise<void> {
    if (this.#api.config.group.id === undefined) return
    const found = await this.#api.findGroup(expected.name, request)
    if (found?.id === expected.id) return
    throw new GatewayError('VERSION_MISMATCH', `the group "${expected.name}" was renamed or deleted`)
  }

  async #update(before: User, wanted: User, changes: readonly TargetChange[], { options, request }: WriteCall) {
    const isPatch = this.#api.config.operations.updateUser?.request.method === 'PATCH'
    const names = new Set(changes.map(changedName))
    const body = {
      values: valuesOf(wanted, before),
      ...(isPatch ? { changed: (name: string) => alwaysSent.has(name) || names.has(name.toLowerCase()) } : {}),
    }
    await settle(
      async () => {
        if (!(await this.#api.write('updateUser', placesOf(before), { body, request }))) throw noUser(before.userID)
      },
      async () => {
        const now = await this.#api.findUser(wanted.userID, request)
        if (now?.userID !== wanted.userID) return false
        const rest = userChanges(now, wanted, { attributes: options.attributes })
        return rest.every((change) => !names.has(changedName(change)))
      },
    )
    report(changes, request)
  }

  /** Throws BAD_REQUEST for a value without a placeholder in the request. */
  requirePlaces(wanted: User, names: readonly string[], operation: Operation | undefined): void {
    const { aliases } = this.#api.config.user
    const places = new Set(operation?.body?.places.map(({ name }) => name.toLowerCase()))
    for (const name of names) {
      const key = name.toLowerCase()
      const values = wanted.attributes.values(name)
      const isLogin = aliases.has(key) && values.length === 1 && values[0] === wanted.userID
      const isAbsent = values.length === 0 && operation?.name === 'createUser'
      if (!places.has(key) && !isLogin && !isAbsent) throw refusedValue(name, `has no place in ${operation?.name}`)
    }
  }

  /**
   * Finds the groups and changes nothing yet. Returns the function that changes the memberships of a user; undefined if
   * none change, or the user's own request changes them. Throws BAD_REQUEST for a group that does not exist, and
   * NOT_SUPPORTED if the API has no memberships.
   */
  async #prepareMemberships(
    join: readonly string[],
    leave: readonly string[],
    request: TargetRequest,
  ): Promise<((user: User) => Promise<void>) | undefined> {
    const { memberships } = this.#api.config.can
    if (join.length + leave.length === 0 || memberships === 'body') return undefined
    if (memberships === 'none') throw new GatewayError('NOT_SUPPORTED', 'the target has no requests for memberships')
    const joined = await this.#groupIds('addMember', join, request)
    const left = await this.#groupIds('removeMember', leave, request)
    return async (user) => {
      for (const [group, id] of joined) await this.#changeMembership('addMember', user, group, id, request)
      for (const [group, id] of left) await this.#changeMembership('removeMember', user, group, id, request)
    }
  }

  /** The groups, with their ids if the request needs them. A missing group to leave is skipped. */
  async #groupIds(
    name: 'addMember' | 'removeMember',
    groups: readonly string[],
    request: TargetRequest,
  ): Promise<Map<string, string | undefined>> {
    const operation = this.#api.config.operations[name]
    const byId = operation !== undefined && hasPlace(operation, 'groupId')
    const ids = new Map<string, string | undefined>()
    for (const group of new Set(groups)) {
      const found = byId ? await this.#api.findGroup(group, request) : undefined
      if (byId && found === undefined && name === 'addMember') {
        throw refusedValue('groups', `names the group "${group}", which does not exist`)
      }
      if (!byId || found !== undefined) ids.set(group, found?.id)
    }
    return ids
  }

  async #changeMembership(
    name: 'addMember' | 'removeMember',
    { userID, id = userID }: User,
    group: string,
    groupId: string | undefined,
    request: TargetRequest,
  ): Promise<void> {
    const isJoin = name === 'addMember'
    await settle(
      async () => {
        const found = await this.#api.write(name, { userID, id, group, groupId }, { request })
        if (!found && isJoin) throw new GatewayError('NOT_FOUND', `there is no user "${userID}" or no group "${group}"`)
      },
      async () => {
        const now = await this.#api.findUser(userID, request)
        return now !== undefined && now.groups.includes(group) === isJoin
      },
    )
    request.audit({ subject: 'group', action: isJoin ? 'add' : 'delete', attribute: 'groups', value: group })
  }
}

const withoutGroups = (changes: readonly TargetChange[]): TargetChange[] =>
  changes.filter(({ subject }) => subject !== 'group')

/** The placeholder in a body that a change is about, in lower case. */
const changedName = ({ subject, attribute }: TargetChange): string =>
  subject === 'group' ? 'groups' : attribute.toLowerCase()

/** With the version that was just read, so that it does not overwrite another writer's change. */
const placesOf = ({ userID, id = userID, version }: User): Places => ({ userID, id, version })

/** These identify the user, and never change. */
const alwaysSent = new Set(['id', 'version'])

const valuesOf =
  (wanted: User, before?: User) =>
  (name: string): readonly string[] => {
    if (name === 'userID') return [wanted.userID]
    if (name === 'groups') return wanted.groups
    if (name === 'id') return before === undefined ? [] : [before.id ?? before.userID]
    if (name === 'version') return before?.version === undefined ? [] : [before.version]
    return wanted.attributes.values(name)
  }
