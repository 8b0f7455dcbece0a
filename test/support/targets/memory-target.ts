import type { CreateOptions, SyncOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { PasswordTarget, TargetRequest } from '#sdk/target/target.ts'

/** The calls of a target, in order. */
export interface TargetCall {
  readonly method: 'findUser' | 'createUser' | 'syncUser' | 'deleteUser' | 'setUserPassword'
  readonly userID: string
  readonly request: TargetRequest
}

interface Stored {
  userID: string
  attributes: Attributes
  groups: string[]
  version: number
}

/**
 * A target in memory that follows the contract of targets. `reports: false` makes one that reports nothing to the
 * audit; `before` runs before each call and may wait or throw.
 */
export class MemoryTarget implements PasswordTarget {
  readonly renamesUsers: boolean = true
  readonly keepsVersions = true
  readonly calls: TargetCall[] = []
  readonly passwords = new Map<string, string>()
  readonly #users = new Map<string, Stored>()
  readonly #reports: boolean
  before: (call: TargetCall) => Promise<void> | void = () => {}

  constructor(
    users: readonly { userID: string; attributes?: Record<string, string[]>; groups?: string[] }[] = [],
    reports = true,
  ) {
    this.#reports = reports
    for (const user of users) this.put(user)
  }

  put({
    userID,
    attributes = {},
    groups = [],
  }: {
    userID: string
    attributes?: Record<string, string[]>
    groups?: string[]
  }): void {
    const stored = { userID, attributes: Attributes.from(attributes), groups: [...groups], version: 1 }
    this.#users.set(userID.toLowerCase(), stored)
  }

  /** The stored user, as plain data; undefined if absent. */
  stored(userID: string): { attributes: Record<string, string[]>; groups: string[] } | undefined {
    const user = this.#users.get(userID.toLowerCase())
    return user && { attributes: { ...user.attributes.toObject() }, groups: [...user.groups] }
  }

  touch(userID: string, groups: string[]): void {
    const user = this.#users.get(userID.toLowerCase())
    if (user === undefined) return
    user.groups = groups
    user.version++
  }

  methods(): string[] {
    return this.calls.map(({ method }) => method)
  }

  async findUser(userID: string, attributes: readonly string[], request: TargetRequest): Promise<User | undefined> {
    await this.#called('findUser', userID, request)
    const user = this.#users.get(userID.toLowerCase())
    if (user === undefined) return undefined
    return {
      userID: user.userID,
      attributes: user.attributes.pick(attributes),
      groups: [...user.groups],
      version: String(user.version),
    }
  }

  async createUser(
    user: User,
    attributes: readonly string[],
    request: TargetRequest,
    { mustBeNew = false }: CreateOptions = {},
  ): Promise<void> {
    await this.#called('createUser', user.userID, request)
    const key = user.userID.toLowerCase()
    const present = this.#users.get(key)
    const wanted = user.attributes.pick(attributes)
    if (present !== undefined) {
      if (!mustBeNew && isSame(present, { attributes: wanted, groups: user.groups })) return
      throw new GatewayError('CONFLICT', `${user.userID} is there`)
    }
    const stored = {
      userID: user.userID,
      attributes: wanted,
      groups: [...user.groups],
      version: 1,
    }
    this.#users.set(key, stored)
    if (!this.#reports) return
    request.audit({ subject: 'entry', action: 'add', attribute: 'userID', value: user.userID })
    for (const [attribute, values] of stored.attributes) {
      for (const value of values) request.audit({ subject: 'attribute', action: 'add', attribute, value })
    }
    for (const value of user.groups) request.audit({ subject: 'group', action: 'add', attribute: 'groups', value })
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    await this.#called('syncUser', user.userID, request)
    const stored = this.#users.get(user.userID.toLowerCase())
    if (stored === undefined) throw new GatewayError('NOT_FOUND', `${user.userID} is gone`)
    if (options.expectedVersion !== undefined && options.expectedVersion !== String(stored.version)) {
      throw new GatewayError('VERSION_MISMATCH', 'changed meanwhile')
    }
    const { newUserID } = options
    if (newUserID !== undefined && newUserID !== stored.userID) {
      const key = newUserID.toLowerCase()
      if (key !== user.userID.toLowerCase() && this.#users.has(key)) {
        throw new GatewayError('CONFLICT', `${newUserID} is there`)
      }
      this.#users.delete(user.userID.toLowerCase())
      stored.userID = newUserID
      this.#users.set(key, stored)
      if (this.#reports) request.audit({ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID })
    }
    stored.version++
    for (const attribute of options.attributes) {
      const present = stored.attributes.values(attribute)
      const wanted = user.attributes.values(attribute)
      const values = options.addOnly ? [...new Set([...present, ...wanted])] : wanted
      if (values.join('\n') === present.join('\n')) continue
      stored.attributes.set(attribute, values)
      const value = values[0]
      if (!this.#reports) continue
      if (value === undefined) request.audit({ subject: 'attribute', action: 'delete', attribute })
      else request.audit({ subject: 'attribute', action: 'replace', attribute, value })
    }
    if (options.keepGroups) return
    const groups = options.addOnly ? [...new Set([...stored.groups, ...user.groups])] : [...user.groups]
    if (this.#reports) {
      for (const value of groups.filter((name) => !stored.groups.includes(name))) {
        request.audit({ subject: 'group', action: 'add', attribute: 'groups', value })
      }
      for (const value of stored.groups.filter((name) => !groups.includes(name))) {
        request.audit({ subject: 'group', action: 'delete', attribute: 'groups', value })
      }
    }
    stored.groups = groups
  }

  async deleteUser(
    user: User,
    request: TargetRequest,
    options: { readonly expectedVersion?: string } = {},
  ): Promise<void> {
    await this.#called('deleteUser', user.userID, request)
    const { expectedVersion } = options
    const stored = this.#users.get(user.userID.toLowerCase())
    if (stored !== undefined && expectedVersion !== undefined && expectedVersion !== String(stored.version)) {
      throw new GatewayError('VERSION_MISMATCH', 'changed meanwhile')
    }
    if (!this.#users.delete(user.userID.toLowerCase()) || !this.#reports) return
    request.audit({ subject: 'entry', action: 'delete', attribute: 'userID', value: user.userID })
  }

  async setUserPassword(user: User, password: string, request: TargetRequest): Promise<void> {
    await this.#called('setUserPassword', user.userID, request)
    this.passwords.set(user.userID, password)
    if (this.#reports)
      request.audit({ subject: 'attribute', action: 'replace', attribute: 'userPassword', value: password })
  }

  async #called(method: TargetCall['method'], userID: string, request: TargetRequest): Promise<void> {
    const call = { method, userID, request }
    this.calls.push(call)
    await this.before(call)
  }
}

const isSame = (present: Pick<User, 'attributes' | 'groups'>, wanted: Pick<User, 'attributes' | 'groups'>): boolean =>
  JSON.stringify([present.attributes.toObject(), present.groups]) ===
  JSON.stringify([wanted.attributes.toObject(), wanted.groups])
