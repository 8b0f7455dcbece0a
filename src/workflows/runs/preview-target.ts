import type { CreateOptions, GroupChange, MemberGroupChange, SyncOptions } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { groupChanges, valueChanges } from '#identity/entry-changes.ts'
import type { Group } from '#identity/group.ts'
import type { User } from '#identity/user.ts'
import type { Awaitable } from '#kernel/awaitable.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { type ClusterObject, type ClusterResource, objectPath } from '#protocols/kubernetes/cluster.ts'
import { type ClusterApi, isCluster } from '#sdk/target/kubernetes-cluster.ts'
import {
  type GroupTarget,
  hasGroups,
  hasPasswords,
  nestsGroups,
  type PlannedWrite,
  type Target,
  type TargetRequest,
} from '#sdk/target/target.ts'
import { sameLogin, unionOfGroups, withoutGroups } from '#sdk/workflow/workflow-user.ts'
import { maskStored } from '#workflows/runs/masked-secrets.ts'
import type { EntryChange, PreviewSteps } from '#workflows/runs/preview-steps.ts'

interface PreviewTargetParts {
  readonly name: string
  readonly steps: PreviewSteps
  /** Counts a read; throws when there were too many. */
  readonly countRead: () => void
}

/** The target refuses to be read, as without a table that it needs: a write would fail as well. */
export class UnreadableTarget extends GatewayError {
  constructor(target: string, cause: GatewayError) {
    const { message, ownText } = cause
    super('TARGET_FAILED', message, { cause, publicText: ownText ?? `Target "${target}" can't be read.` })
    this.name = 'UnreadableTarget'
  }
}

async function readFrom<T>(target: string, read: () => Awaitable<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof GatewayError && error.code === 'TARGET_FAILED' ? new UnreadableTarget(target, error) : error
  }
}

/**
 * A target for a preview: reads come from the real target, writes become steps of the preview and are visible to later
 * reads here only. It has the abilities of the real target, so that tasks behave the same.
 */
export function previewTarget(target: Target, parts: PreviewTargetParts): Target {
  const users = new PreviewUsers(target, parts)
  const groups = hasGroups(target) ? new PreviewGroups(target, parts) : undefined
  return {
    ...(isCluster(target) && { objects: previewObjects(target.objects, parts) }),
    renamesUsers: target.renamesUsers ?? false,
    keepsVersions: target.keepsVersions ?? false,
    findUser: (userID, attributes, request) => users.findUser(userID, attributes, request),
    createUser: (user, attributes, request) => users.createUser(user, attributes, request),
    syncUser: (user, options, request) => users.syncUser(user, options, request),
    deleteUser: (user, request) => users.deleteUser(user, request),
    ...(hasPasswords(target) && { setUserPassword: users.setUserPassword.bind(users) }),
    ...(groups && {
      findGroup: groups.findGroup.bind(groups),
      createGroup: groups.createGroup.bind(groups),
      updateGroup: groups.updateGroup.bind(groups),
      deleteGroup: groups.deleteGroup.bind(groups),
      ...(nestsGroups(target) && { changeMemberGroups: groups.changeMemberGroups.bind(groups) }),
    }),
  }
}

/** Reads and dry runs come from the real cluster; a dry run stores nothing. */
function previewObjects(api: ClusterApi, { name: target, steps, countRead }: PreviewTargetParts): ClusterApi {
  /** Undefined: deleted by the preview. */
  const written = new Map<string, ClusterObject | undefined>()
  /** Each kind is read once, since the reads of a preview are few. */
  const kinds = new Map<string, ReturnType<ClusterApi['servedKind']>>()
  const kindNames = new Map<string, string>()
  const add = (action: 'create' | 'change' | 'delete', path: string): void => {
    const objectKind = kindNames.get(path)
    steps.add({ kind: 'object', action, target, name: path, ...(objectKind === undefined ? {} : { objectKind }) })
  }
  const noteKind = (path: string, { kind }: ClusterObject['content']): void => {
    if (typeof kind === 'string') kindNames.set(path, kind)
  }
  const read = <T>(call: () => Promise<T>): Promise<T> => {
    countRead()
    return call()
  }
  const get = async (resource: ClusterResource, name: string): Promise<ClusterObject | undefined> => {
    const path = objectPath(resource, name)
    const found = written.has(path) ? written.get(path) : await read(() => api.get(resource, name))
    if (found !== undefined) noteKind(path, found.content)
    return found
  }
  const change = (path: string, content: ClusterObject['content'], known?: ClusterObject): ClusterObject => {
    noteKind(path, content)
    add(known === undefined ? 'create' : 'change', path)
    const name = path.slice(path.lastIndexOf('/') + 1)
    const stored = { metadata: known?.metadata ?? { name, uid: path, resourceVersion: 'preview' }, content }
    written.set(path, stored)
    return { ...stored, metadata: { ...stored.metadata, resourceVersion: 'preview' } }
  }
  return {
    get,
    servedKind: (apiVersion, kind) => {
      const key = `${apiVersion} ${kind}`
      const served = kinds.get(key) ?? read(() => api.servedKind(apiVersion, kind))
      kinds.set(key, served)
      return served
    },
    list: (resource, most, selection) => read(() => api.list(resource, most, selection)),
    create: async (resource, object) => {
      const { metadata } = object
      return change(objectPath(resource, isJsonObject(metadata) ? String(metadata['name']) : ''), object)
    },
    replace: async (resource, name, object, options) => {
      const path = objectPath(resource, name)
      if (options?.dryRun !== true) return change(path, object, await get(resource, name))
      return written.get(path) ?? (await read(() => api.replace(resource, name, object, options)))
    },
    patch: async (resource, name, patch, options) => {
      const path = objectPath(resource, name)
      const found = await get(resource, name)
      if (found === undefined) return undefined
      if (options?.dryRun !== true) return change(path, found.content, found)
      return written.has(path) ? undefined : await read(() => api.patch(resource, name, patch, options))
    },
    remove: async (resource, name) => {
      const path = objectPath(resource, name)
      add('delete', path)
      written.set(path, undefined)
      return true
    },
  }
}

/** A user as the preview knows it. */
interface KnownUser {
  /** Undefined if the target has no such user, or the preview deleted it. */
  user: User | undefined
  /** The login at the target, also after a previewed rename. */
  readonly login: string
  /** The attributes that were read, in lower case; undefined if nothing is left to read. */
  readNames: ReadonlySet<string> | undefined
}

/** Reads each user and attribute from the target once, and never writes to it. */
class PreviewUsers implements Target {
  readonly #target: Target
  readonly #parts: PreviewTargetParts
  readonly #known = new Map<string, KnownUser>()

  constructor(target: Target, parts: PreviewTargetParts) {
    this.#target = target
    this.#parts = parts
  }

  async findUser(userID: string, attributes: readonly string[], request: TargetRequest): Promise<User | undefined> {
    const known = await this.#find(userID, attributes, request)
    return known.user && { ...known.user, attributes: known.user.attributes.pick(attributes) }
  }

  async createUser(user: User, attributes: readonly string[], request: TargetRequest): Promise<void> {
    const known = await this.#find(user.userID, attributes, request)
    if (known.user !== undefined) throw this.#loginTaken(user.userID)
    await this.#requirePlaces(user, { attributes, isNew: true })
    this.#add('create', user.userID, {
      attributes: [...user.attributes].map(([name, values]) => [name, [], values]),
      joins: user.groups,
    })
    this.#put(user.userID, { ...user, attributes: user.attributes.clone() })
  }

  async syncUser(user: User, options: SyncOptions, request: TargetRequest): Promise<void> {
    const known = await this.#find(user.userID, options.attributes, request)
    const { user: found } = known
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no "${user.userID}"`)
    const { addOnly, keepGroups, newUserID } = options
    const attributes = found.attributes.clone()
    const changes = options.attributes.map((name) => {
      const before = found.attributes.values(name)
      const wanted = user.attributes.values(name)
      const after = addOnly ? [...new Set([...before, ...wanted])] : wanted
      attributes.set(name, after)
      return [name, before, after] as const
    })
    const joins = keepGroups ? [] : withoutGroups(user.groups, found.groups)
    const leaves = keepGroups || addOnly ? [] : withoutGroups(found.groups, user.groups)
    const renamed = newUserID === undefined || newUserID === found.userID ? undefined : newUserID
    const newLogin = renamed === undefined ? {} : { newUserID: renamed }
    if (renamed !== undefined && !sameLogin(renamed, found.userID)) {
      const { user: other } = await this.#find(renamed, [], request)
      const isSame =
        other !== undefined && (other.id === undefined ? sameLogin(other.userID, found.userID) : other.id === found.id)
      if (other !== undefined && !isSame) throw this.#loginTaken(renamed)
    }
    const changed = changes.filter(([name, before, after]) => valueChanges(name, before, after).length > 0)
    await this.#requirePlaces(user, { attributes: changed.map(([name]) => name), isNew: false, ...newLogin })
    this.#add('change', found.userID, {
      attributes: changes,
      joins,
      leaves,
      ...(renamed === undefined ? {} : { newName: renamed }),
    })
    const groups = unionOfGroups(withoutGroups(found.groups, leaves), joins)
    const { groupIds: _, ...rest } = found
    if (renamed !== undefined && !sameLogin(renamed, found.userID)) this.#put(found.userID, undefined)
    const userID = renamed ?? found.userID
    this.#put(userID, { ...rest, userID, attributes, groups }, known)
  }

  async deleteUser({ userID }: User, request: TargetRequest): Promise<void> {
    const { user } = await this.#find(userID, [], request)
    if (user === undefined) return
    this.#add('delete', user.userID, { attributes: [], leaves: user.groups })
    this.#put(userID, undefined)
  }

  async setUserPassword({ userID }: User): Promise<void> {
    this.#add('change', userID, { attributes: [['password', [], ['set']]] })
  }

  #loginTaken(login: string): GatewayError {
    const { name } = this.#parts
    return new GatewayError('CONFLICT', `target "${name}" has another user "${login.slice(0, 100)}"`, {
      publicText: `Target "${name}" has another account with this login. Choose another login, or change that account.`,
      keyword: 'uniqueness',
    })
  }

  /** Throws BAD_REQUEST, naming the attribute and the target. */
  async #requirePlaces(user: User, write: PlannedWrite): Promise<void> {
    try {
      await this.#target.requirePlaces?.(user, write)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'BAD_REQUEST') throw error
      const { name } = this.#parts
      throw new GatewayError('BAD_REQUEST', `target "${name}": ${error.message}`, {
        cause: error,
        attribute: error.attribute,
        publicText: (shown) => `${error.textNaming(shown)} Target "${name}" refuses it.`,
        keyword: error.keyword,
      })
    }
  }

  #add(
    action: 'create' | 'change' | 'delete',
    name: string,
    change: Pick<EntryChange, 'attributes' | 'joins' | 'leaves' | 'newName'>,
  ): void {
    this.#parts.steps.addEntry({ kind: 'user', action, target: this.#parts.name, name, ...change })
  }

  #put(userID: string, user: User | undefined, read?: KnownUser): void {
    this.#known.set(userID.toLowerCase(), { user, login: read?.login ?? userID, readNames: read?.readNames })
  }

  /** Reads missing attributes. Values that the preview wrote win over those at the target. */
  async #find(userID: string, attributes: readonly string[], request: TargetRequest): Promise<KnownUser> {
    const key = userID.toLowerCase()
    const known = this.#known.get(key)
    const readNames = known?.readNames
    const missing = attributes.filter((name) => readNames?.has(name.toLowerCase()) === false)
    if (known !== undefined && missing.length === 0) return known
    this.#parts.countRead()
    const login = known?.login ?? userID
    const read = () => this.#target.findUser(login, known === undefined ? attributes : missing, request)
    const found = await readFrom(this.#parts.name, read)
    const names = new Set([...(readNames ?? []), ...attributes.map((name) => name.toLowerCase())])
    const user = joined(known?.user, found, missing)
    const now: KnownUser = { user, login, readNames: found === undefined ? undefined : names }
    this.#known.set(key, now)
    return now
  }
}

/** Adds the attributes that were missing. */
function joined(known: User | undefined, read: User | undefined, missing: readonly string[]): User | undefined {
  const attributes = maskStored(read?.attributes ?? new Attributes())
  if (known === undefined) return read && { ...read, attributes }
  const all = known.attributes.clone()
  for (const name of missing) all.set(name, attributes.values(name))
  return { ...known, attributes: all }
}

type Values = Readonly<Record<string, readonly string[]>>

/** Reads each group from the target once, and never writes to it. */
class PreviewGroups {
  readonly #target: GroupTarget
  readonly #parts: PreviewTargetParts
  readonly #known = new Map<string, Group | undefined>()

  constructor(target: GroupTarget, parts: PreviewTargetParts) {
    this.#target = target
    this.#parts = parts
  }

  async findGroup(name: string): Promise<Group | undefined> {
    const key = name.toLowerCase()
    if (!this.#known.has(key)) {
      this.#parts.countRead()
      this.#known.set(key, await readFrom(this.#parts.name, () => this.#target.findGroup(name)))
    }
    return this.#known.get(key)
  }

  async createGroup(name: string, attributes: Values, _: unknown, options: CreateOptions = {}): Promise<void> {
    const found = await this.findGroup(name)
    if (found !== undefined && options.mustBeNew === true) {
      throw new GatewayError('CONFLICT', `there is a group "${name}" already`)
    }
    if (found === undefined) {
      this.#add('create', name, Object.entries(attributes), () => [])
      this.#put(name, { id: name, name, members: [], attributes: Attributes.from(attributes) })
    } else if (groupChanges(found, found.name, Object.entries(attributes)).length > 0) {
      throw new GatewayError('CONFLICT', `there is another group "${name}" already`)
    }
  }

  async updateGroup(name: string, { newName, attributes = {} }: GroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    const wanted = Object.entries(attributes)
    this.#add('change', found.name, wanted, (attribute, values) => valuesBefore(found, attribute, values), newName)
    const changed = (found.attributes ?? new Attributes()).clone()
    for (const [attribute, values] of wanted) changed.set(attribute, values)
    const { description: _, ...rest } = found
    if (newName !== undefined) this.#put(name, undefined)
    this.#put(newName ?? name, { ...rest, name: newName ?? found.name, attributes: changed })
  }

  async deleteGroup(name: string): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) return
    this.#add('delete', found.name, [], () => [])
    this.#put(name, undefined)
  }

  /** A preview does not read the members, so every requested change counts. */
  async changeMemberGroups(name: string, { add, remove }: MemberGroupChange): Promise<void> {
    const found = await this.findGroup(name)
    if (found === undefined) throw new GatewayError('NOT_FOUND', `there is no group "${name}"`)
    this.#add('change', found.name, [['members', add.map((group) => group.name)]], () =>
      remove.map((group) => group.name),
    )
  }

  #put(name: string, group: Group | undefined): void {
    this.#known.set(name.toLowerCase(), group)
  }

  #add(
    action: 'create' | 'change' | 'delete',
    name: string,
    wanted: readonly (readonly [string, readonly string[]])[],
    before: (attribute: string, values: readonly string[]) => readonly string[],
    newName?: string,
  ): void {
    this.#parts.steps.addEntry({
      kind: 'group',
      action,
      target: this.#parts.name,
      name,
      attributes: wanted.map(([attribute, values]) => [attribute, before(attribute, values), values]),
      ...(newName === undefined || newName === name ? {} : { newName }),
    })
  }
}

/** Attributes that the target does not return count as unchanged. */
function valuesBefore({ attributes, description }: Group, name: string, values: readonly string[]): readonly string[] {
  if (name.toLowerCase() === 'description' && description !== undefined) return [description]
  return attributes === undefined ? values : attributes.values(name)
}
