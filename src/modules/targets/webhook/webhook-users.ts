import { Attributes } from '#identity/attributes.ts'
import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import type { CreateOptions, PasswordTarget, SyncOptions, Target, TargetChange, TargetRequest } from '#sdk/target.ts'
import type { BodyValues } from './body-template.ts'
import { Memberships } from './memberships.ts'
import type { Operation } from './operation.ts'
import { refusedValue } from './refused-value.ts'
import { settled } from './settled.ts'
import type { Places, WebhookApi } from './webhook-api.ts'

/**
 * Each change reads the user first, and writes only what differs; changes to one user follow one another. What was
 * done is told as soon as it is done, so that a change that ends half way is told as far as it went.
 */
export class WebhookUsers implements Pick<Target, 'findUser' | 'createUser' | 'syncUser' | 'deleteUser'> {
  readonly #api: WebhookApi
  readonly #memberships: Memberships
  readonly #queue = new KeyedQueue()

  constructor(api: WebhookApi) {
    this.#api = api
    this.#memberships = new Memberships(api)
  }

  findUser(userID: string, _attributes: readonly string[], request: TargetRequest): Promise<User | undefined> {
    return this.#api.findUser(userID, request)
  }

  createUser(
    user: User,
    attributes: readonly string[],
    request: TargetRequest,
    { mustBeNew = false }: CreateOptions = {},
  ): Promise<void> {
    return this.#inTurn(user.userID, async () => {
      const wanted: User = { ...user, attributes: user.attributes.pick(attributes) }
      const missing = async () => {
        const found = await this.#api.findUser(user.userID, request)
        return found && changesOfUser(found, wanted, { attributes })
      }
      const before = await missing()
      if (before?.length === 0 && !mustBeNew) return
      if (before !== undefined) throw taken(user.userID)
      this.#refuseUnheld(wanted, attributes, this.#api.config.operations.createUser)
      const join = await this.#memberships.prepare(wanted.groups, [], request)
      const changes = userChanges(undefined, wanted, { addOnly: false, attributes })
      const { userID } = user
      await settled(
        async () => {
          await this.#write('createUser', { userID }, { values: valuesOf(wanted) }, request)
        },
        async (certain) => {
          if (certain && mustBeNew) return false
          const rest = await missing()
          return rest?.every(({ subject }) => !certain && subject === 'group' && join.some) ?? false
        },
      )
      tell(request, join.some ? changes.filter(({ subject }) => subject !== 'group') : changes)
      if (!join.some) return
      const made = await this.#api.findUser(userID, request)
      if (made === undefined)
        throw new GatewayError('TARGET_FAILED', `the user "${userID}" was created and is not there`)
      await join.apply(made)
    })
  }

  syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    return this.#inTurn(user.userID, async () => {
      const before = await this.#api.findUser(user.userID, request)
      requireVersion(before, options.expectedVersion)
      if (before === undefined) throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
      await this.#memberships.requireGroup(options.expectedGroup, request)
      const wanted = wantedUser(before, user, options)
      const changes = changesOfUser(before, wanted, options)
      if (changes.length === 0) return
      if (wanted.userID !== before.userID) await this.#requireFree(wanted.userID, before, request)
      const changed = changes.flatMap(({ subject, attribute }) => (subject === 'attribute' ? [attribute] : []))
      this.#refuseUnheld(wanted, changed, this.#api.config.operations.updateUser)
      const joined = changes.flatMap(({ subject, action, value = '' }) =>
        subject === 'group' && action === 'add' ? [value] : [],
      )
      const left = changes.flatMap(({ subject, action, value = '' }) =>
        subject === 'group' && action === 'delete' ? [value] : [],
      )
      const move = await this.#memberships.prepare(joined, left, request)
      const written = move.some ? changes.filter(({ subject }) => subject !== 'group') : changes
      if (written.length > 0) await this.#update(before, wanted, written, options, request)
      if (move.some) await move.apply({ ...before, userID: wanted.userID })
    })
  }

  deleteUser(user: User, request: TargetRequest, options?: { readonly expectedVersion?: string }): Promise<void> {
    return this.#inTurn(user.userID, async () => {
      const before = await this.#api.findUser(user.userID, request)
      if (before === undefined) return
      requireVersion(before, options?.expectedVersion)
      await settled(
        async () => {
          await this.#api.write('deleteUser', { ...placesOf(before), version: options?.expectedVersion }, { request })
        },
        async () => (await this.#api.findUser(before.userID, request)) === undefined,
      )
      tell(request, [entryChange('entry', 'delete', 'userID', before.userID)])
    })
  }

  /** The password stands in the body alone, and is told to nobody. */
  readonly setUserPassword: PasswordTarget['setUserPassword'] = (user, password, request) =>
    this.#inTurn(user.userID, async () => {
      const before = await this.#api.findUser(user.userID, request)
      const places = before && { ...placesOf(before), password }
      if (places === undefined || !(await this.#api.write('setPassword', places, { request }))) {
        throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
      }
      tell(request, [{ subject: 'attribute', action: 'replace', attribute: 'password' }])
    })

  async #update(
    before: User,
    wanted: User,
    changes: readonly TargetChange[],
    options: SyncOptions,
    request: TargetRequest,
  ): Promise<void> {
    const isPatch = this.#api.config.operations.updateUser?.request.method === 'PATCH'
    const names = new Set(changes.map(changedName))
    const body: BodyValues = {
      values: valuesOf(wanted, before),
      ...(isPatch ? { changed: (name) => alwaysSent.has(name) || names.has(name.toLowerCase()) } : {}),
    }
    await settled(
      async () => {
        const found = await this.#write('updateUser', placesOf(before), body, request)
        if (!found) throw new GatewayError('NOT_FOUND', `no user "${before.userID}"`)
      },
      async () => {
        const now = await this.#api.findUser(wanted.userID, request)
        if (now === undefined) return false
        const rest = changesOfUser(now, wanted, options)
        return rest.every((change) => !names.has(changedName(change)))
      },
    )
    tell(request, changes)
  }

  #write(name: 'createUser' | 'updateUser', places: Places, body: BodyValues, request: TargetRequest) {
    return this.#api.write(name, places, { body, request })
  }

  #inTurn<T>(userID: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(userID.toLowerCase(), work)
  }

  async #requireFree(userID: string, before: User, request: TargetRequest): Promise<void> {
    if (this.#api.config.can.renames !== true) {
      throw new GatewayError('NOT_SUPPORTED', `"${before.userID}" cannot have another login in its target`)
    }
    const other = await this.#api.findUser(userID, request)
    if (other !== undefined && other.userID !== before.userID) throw taken(userID)
  }

  /** A value that no request would carry is refused before anything is done. */
  #refuseUnheld(wanted: User, names: readonly string[], operation: Operation | undefined): void {
    const { aliases } = this.#api.config.user
    const held = new Set(operation?.body?.places.map(({ name }) => name.toLowerCase()))
    for (const name of names) {
      const key = name.toLowerCase()
      const values = wanted.attributes.values(name)
      const isLogin = aliases.has(key) && values.length === 1 && values[0] === wanted.userID
      const isGone = values.length === 0 && operation?.name === 'createUser'
      if (!held.has(key) && !isLogin && !isGone) throw refusedValue(name, `has no place in ${operation?.name}`)
    }
  }
}

/** The user as it is to be: what may not be touched stays as it is. */
function wantedUser(before: User, user: User, options: SyncOptions): User {
  const { addOnly, keepGroups, newUserID } = options
  const attributes = Attributes.from(before.attributes)
  for (const name of options.attributes) {
    const values = user.attributes.values(name)
    attributes.set(name, addOnly ? union(before.attributes.values(name), values) : values)
  }
  const groups = keepGroups ? before.groups : addOnly ? union(before.groups, user.groups) : user.groups
  return { ...before, userID: newUserID ?? before.userID, attributes, groups }
}

function changesOfUser(before: User, wanted: User, options: Pick<SyncOptions, 'attributes'>): TargetChange[] {
  const changes = userChanges(before, wanted, { addOnly: false, attributes: options.attributes })
  if (wanted.userID === before.userID) return changes
  return [{ subject: 'entry', action: 'replace', attribute: 'userID', value: wanted.userID }, ...changes]
}

/** The place in a body that a change is about, in small letters. */
const changedName = ({ subject, attribute }: TargetChange): string =>
  subject === 'group' ? 'groups' : attribute.toLowerCase()

const union = (held: readonly string[], more: readonly string[]): string[] => [...new Set([...held, ...more])]

const tell = (request: TargetRequest, changes: readonly TargetChange[]): void => {
  for (const change of changes) request.audit(change)
}

/** With the version that was just read, so that nobody else's change is overwritten unseen. */
const placesOf = ({ userID, id = userID, version }: User): Places => ({ userID, id, version })

/** What tells which user, rather than what it is to be. */
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

const taken = (userID: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a user "${userID}" already`, { keyword: 'uniqueness' })
