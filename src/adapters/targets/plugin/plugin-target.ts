import { groupCollection, userCollection, withAttributes } from '#adapters/targets/shared/collections.ts'
import { type GroupStore, reconcileGroups, type StoredGroup } from '#adapters/targets/shared/group-reconciler.ts'
import {
  inQueue,
  loginTaken,
  noUser,
  reconcileUsers,
  requireVersion,
  type StoredUser,
  type UserStore,
} from '#adapters/targets/shared/user-reconciler.ts'
import type { SyncOptions } from '#identity/account-store.ts'
import { entryChange, userChanges } from '#identity/entry-changes.ts'
import { printFilter } from '#identity/filter/filter-text.ts'
import type { Group } from '#identity/group.ts'
import { pageInMemory } from '#identity/paging.ts'
import type { SearchQuery } from '#identity/search.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { type LegacyParameter, type LegacySignatures, parameter, value } from '#openunison/scripts/legacy-signatures.ts'
import type { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { PluginAnswerReader } from '#sdk/plugin/plugin-answer.ts'
import { openPlugin, type PluginCode } from '#sdk/plugin/plugin-code.ts'
import type {
  GroupTarget,
  LookupTarget,
  PasswordTarget,
  StorableAttributes,
  Target,
  TargetChange,
  TargetRequest,
} from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

export interface PluginTargetConfig extends Demands {
  readonly code: PluginCode
  /** By the functions that the code declares; undefined if that isn't known before it runs. */
  readonly can?: Capabilities | undefined
}

/** Loads the code and runs `init`; rejects with the reason if either fails. */
export async function openPluginTarget(
  { code, can: _, ...demands }: PluginTargetConfig,
  host: ModuleHost,
): Promise<Target> {
  const plugin = await openPlugin(code, host, {
    name: `target "${host.name}"`,
    functions: pluginFunctions,
    init: [code.config, host.name],
  })
  try {
    const can = capabilitiesOf((name) => plugin.has(name), demands)
    const caller = new PluginCaller(plugin)
    return {
      ...accountsOf(caller),
      ...(can.passwords ? passwordsOf(caller) : {}),
      ...(can.lookups ? await lookupsOf(caller) : {}),
      ...(can.groups ? groupsOf(caller) : {}),
      ...(plugin.has('storableAttributes') ? await storableOf(caller) : {}),
      keepsVersions: plugin.has('keepsVersions') && (await caller.ask('keepsVersions', [], readFlag)),
      close: () => plugin.close(),
    }
  } catch (error) {
    await plugin.close()
    throw error
  }
}

interface FoundUser extends StoredUser {
  /** The plug-in's answer; its login may differ from the requested one. */
  readonly found: User
}

function accountsOf(caller: PluginCaller): Target {
  const find = (userID: string, attributes: readonly string[], request: TargetRequest) =>
    caller.ask('findUser', [userID, attributes, plainRequest(request)], readOptional(readUser), request)

  const store: UserStore<FoundUser> = {
    looksForSpellings: true,
    read: async (userID, attributes, request) => {
      const found = await find(userID, attributes, request)
      return found && { found, user: { ...found, userID: spelled(userID, found) } }
    },
    create: async (user, { attributes, changes, request }) => {
      await caller.change('createUser', [plainUser(user, attributes), attributes], changes, request)
      return []
    },
    // Not called: the plug-in's own `syncUser` replaces the reconciler's.
    write: async () => [],
    delete: async ({ found, user: { userID } }, { user, request }) => {
      const changes = [entryChange('entry', 'delete', 'userID', found.userID)]
      const args = [plainUser({ ...user, userID }, user.attributes.names(), found)]
      await caller.change('deleteUser', args, changes, request)
      return []
    },
  }
  const exclusively = inQueue(store)

  async function sync(before: User | undefined, user: User, options: SyncOptions, request: TargetRequest) {
    const { addOnly, attributes } = options
    const groups = options.keepGroups ? (before?.groups ?? []) : user.groups
    const wanted = { ...user, userID: spelled(user.userID, before), groups }
    const args = [plainUser(wanted, attributes, before), addOnly, attributes]
    await caller.change('syncUser', args, userChanges(before, wanted, { addOnly, attributes }), request)
  }

  /** Runs before all other changes, so that the next attempt finds the user by its new login and continues. */
  async function rename(before: User, newUserID: string, request: TargetRequest) {
    if (!caller.has('renameUser')) throw new GatewayError('NOT_SUPPORTED', 'the plug-in has no function renameUser')
    const isOther = newUserID.toLowerCase() !== before.userID.toLowerCase()
    if (isOther && (await find(newUserID, [], request)) !== undefined) loginTaken(newUserID)
    const changes = [entryChange('entry', 'replace', 'userID', newUserID)]
    await caller.change('renameUser', [before.userID, newUserID], changes, request)
  }

  return {
    ...reconcileUsers(exclusively),
    renamesUsers: caller.has('renameUser'),
    findUser: find,
    /** The plug-in decides itself what to write, so it is called even for a user that is missing or doesn't differ. */
    syncUser: (user, options, request) =>
      exclusively(user.userID, async () => {
        const before = await find(user.userID, options.attributes, request)
        requireVersion(before, options.expectedVersion)
        const { newUserID = before?.userID } = options
        if (newUserID === before?.userID) return sync(before, user, options, request)
        if (before === undefined || newUserID === undefined) throw noUser(user.userID)
        await rename(before, newUserID, request)
        const renamed = { ...user, userID: newUserID }
        const wanted = options.keepGroups ? { ...renamed, groups: before.groups } : renamed
        const { addOnly, attributes } = options
        if (userChanges(before, wanted, { addOnly, attributes }).length === 0) return
        await sync({ ...before, userID: newUserID }, renamed, options, request)
      }),
  }
}

/** Read once, like the other facts. */
async function storableOf(caller: PluginCaller): Promise<Pick<Target, 'storable' | 'requirePlaces'>> {
  const storable = await caller.ask('storableAttributes', [], readStorable)
  const { users } = storable
  return {
    storable: async () => storable,
    requirePlaces: async ({ userID, attributes: values }, { attributes, newUserID = userID }) => {
      const isLogin = (value: string): boolean => value === userID || value === newUserID
      const odd = attributes.find(
        (name) => users !== 'any' && !users.has(name.toLowerCase()) && !values.values(name).every(isLogin),
      )
      if (odd === undefined) return
      const publicText = (shown = `"${odd}"`): string => `${shown} cannot be stored: the plug-in has no place for it.`
      throw new GatewayError('BAD_REQUEST', publicText(), { attribute: odd, publicText, keyword: 'invalidValue' })
    },
  }
}

/** The login in the plug-in's spelling, if that differs only in letter case. */
const spelled = (userID: string, found: User | undefined): string =>
  found !== undefined && sameLogin(found.userID, userID) ? found.userID : userID

/** The audit never gets a password, even if the plug-in reports one. */
function passwordsOf(caller: PluginCaller): Pick<PasswordTarget, 'setUserPassword'> {
  return {
    async setUserPassword(user, password, request) {
      const valueless: TargetRequest = {
        ...request,
        audit: ({ subject, action, attribute }) => request.audit({ subject, action, attribute }),
      }
      const args = [{ ...plainUser(user, user.attributes.names()), password }]
      const changes = [{ subject: 'attribute', action: 'replace', attribute: 'password' }] as const
      await caller.change('setUserPassword', args, changes, valueless)
    },
  }
}

/** Only the attributes that may change, by the caller's names. */
function plainUser(user: User, attributes: readonly string[], before?: User): Record<string, JsonValue> {
  const values: Record<string, readonly string[]> = Object.create(null)
  for (const name of attributes) {
    const list = user.attributes.values(name)
    if (list.length > 0) values[name] = list
  }
  const id = user.id ?? before?.id
  return { userID: user.userID, attributes: values, groups: user.groups, ...(id === undefined ? {} : { id }) }
}

/** Every entry has it, for a search without a filter. */
const anything = { kind: 'present', attribute: 'objectClass' } as const

/** The three facts are read once; a plug-in without such a function gets the simplest answer. */
async function lookupsOf(caller: PluginCaller): Promise<Omit<LookupTarget, keyof Target>> {
  const fact = async (name: string, fallback: boolean) => (caller.has(name) ? caller.ask(name, [], readFlag) : fallback)
  const filterArgs = ({ filter = anything }: SearchQuery): JsonValue[] => [
    printFilter(filter),
    JSON.parse(JSON.stringify(filter)) as JsonValue,
  ]
  return {
    groupMembersAreIds: await fact('isGroupMembersUniqueIds', false),
    userIdIsLogin: await fact('isUniqueIdTremoloId', true),
    groupHasOwnId: await fact('isGroupIdUniqueId', false),
    lookupUserByLogin: (login) => caller.ask('lookupUserByLogin', [login], readOptional(readUser)),
    lookupUserById: (id) => caller.ask('lookupUserById', [id], readOptional(readUser)),
    lookupGroupByName: (name) => caller.ask('lookupGroupByName', [name], readOptional(readGroup)),
    lookupGroupById: (id) => caller.ask('lookupGroupById', [id], readOptional(readGroup)),
    searchUsers: async (query) => {
      const users = await caller.ask('searchUsers', filterArgs(query), readList(readUser))
      return withAttributes(pageInMemory(users, query, userCollection), query)
    },
    searchGroups: async (query) => {
      const groups = await caller.ask('searchGroups', filterArgs(query), readList(readGroup))
      return pageInMemory(groups, query, groupCollection)
    },
  }
}

function groupsOf(caller: PluginCaller): Omit<GroupTarget, keyof Target> {
  async function read(name: string): Promise<StoredGroup | undefined> {
    if (caller.has('lookupGroupByName')) {
      const group = await caller.ask('lookupGroupByName', [name], readOptional(readGroup))
      return group && { group: { ...group, members: [] } }
    }
    const exists = await caller.ask('isGroupExists', [name], readFlag)
    return exists ? { group: { id: name, name, members: [] } } : undefined
  }
  const store: GroupStore<StoredGroup> = {
    read,
    isTaken: async (name, { group }) =>
      name.toLowerCase() !== group.name.toLowerCase() && (await read(name)) !== undefined,
    create: async (name, attributes, { changes, request }) => {
      await caller.change('addGroup', [name, attributes.toObject()], changes, request)
      return []
    },
    write: async ({ group: { name } }, { newName, attributes, changes, request }) => {
      if (!caller.has('updateGroup')) {
        throw new GatewayError('NOT_SUPPORTED', 'the plug-in has no function updateGroup')
      }
      await caller.change('updateGroup', [name, newName, Object.fromEntries(attributes)], changes, request)
      return []
    },
    delete: async ({ group: { name } }, { changes, request }) => {
      await caller.change('deleteGroup', [name], changes, request)
      return []
    },
  }
  return { ...reconcileGroups(inQueue(store)), findGroup: async (name) => (await read(name))?.group }
}

/** Calls the plug-in's functions with plain values, and reads their answers. */
class PluginCaller {
  readonly #plugin: PluginHost

  constructor(plugin: PluginHost) {
    this.#plugin = plugin
  }

  has(functionName: string): boolean {
    return this.#plugin.has(functionName)
  }

  async ask<T>(functionName: string, args: readonly JsonValue[], read: Read<T>, request?: TargetRequest): Promise<T> {
    const services = request === undefined ? {} : { request: args.length - 1, log: request.log }
    const { value } = await this.#plugin.call({ function: functionName, args, ...services })
    return read(value, new PluginAnswerReader(functionName))
  }

  /**
   * Calls a function that changes something, with the request as its last argument. The audit gets the plug-in's own
   * entries, also those made before the call failed; if the plug-in makes none, it gets `changes`.
   */
  async change(
    functionName: string,
    args: readonly JsonValue[],
    changes: readonly TargetChange[],
    request: TargetRequest,
  ): Promise<void> {
    const reader = new PluginAnswerReader(functionName)
    let audited = false
    await this.#plugin.call({
      function: functionName,
      args: [...args, plainRequest(request)],
      request: args.length,
      log: request.log,
      onAudit: (entry) => {
        audited = true
        request.audit(reader.change(entry))
      },
    })
    if (audited) return
    for (const change of changes) request.audit(change)
  }
}

/** The part of the request that a plug-in sees; values that are not data are left out. */
function plainRequest({ workflow, idempotencyKey, requestor, params }: TargetRequest): JsonValue {
  return JSON.parse(JSON.stringify({ workflow, idempotencyKey, requestor, params })) as JsonValue
}

type Read<T> = (answer: JsonValue | undefined, reader: PluginAnswerReader) => T

/** Null and undefined both mean that there is none. */
const readOptional =
  <T>(read: Read<T>): Read<T | undefined> =>
  (answer, reader) =>
    answer === undefined || answer === null ? undefined : read(answer, reader)

const readList =
  <T>(read: Read<T>): Read<T[]> =>
  (answer, reader) => {
    if (!Array.isArray(answer)) throw reader.malformed('it must be a list')
    return answer.map((item: JsonValue, i) => read(item, reader.at(i)))
  }

const readFlag: Read<boolean> = (answer, reader) => reader.flag(answer)

const readUser: Read<User> = (answer, reader) => {
  const { userID, id, version, created, modified, attributes, groups } = reader.object(answer)
  return {
    userID: reader.text(userID, 'userID'),
    attributes: reader.attributes(attributes),
    groups: reader.texts(groups, 'groups'),
    ...reader.optionalText('id', id),
    ...reader.optionalText('version', version),
    ...reader.optionalTime('created', created),
    ...reader.optionalTime('modified', modified),
  }
}

/** The id of a group without one is its name. */
const readGroup: Read<Group> = (answer, reader) => {
  const { id, name, description, members, attributes, version, created, modified } = reader.object(answer)
  return {
    id: reader.text(id ?? name, 'id'),
    name: reader.text(name, 'name'),
    members: reader.texts(members, 'members'),
    ...reader.optionalText('description', description),
    ...reader.optionalText('version', version),
    ...reader.optionalTime('created', created),
    ...reader.optionalTime('modified', modified),
    ...(attributes === undefined || attributes === null ? {} : { attributes: reader.attributes(attributes) }),
  }
}

/** Without a list, every attribute can be stored. */
const readStorable: Read<StorableAttributes> = (answer, reader) => {
  const { users, groups } = reader.object(answer)
  const names = (list: JsonValue | undefined, name: string): ReadonlySet<string> | 'any' =>
    list === undefined || list === null
      ? 'any'
      : new Set(reader.texts(list, name).map((attribute) => attribute.toLowerCase()))
  return { users: names(users, 'users'), groups: names(groups, 'groups') }
}

/** Every plug-in target needs these. */
const requiredFunctions = ['findUser', 'createUser', 'syncUser', 'deleteUser'] as const

/** A target with all of these supports lookups. */
const lookupFunctions = [
  'lookupUserByLogin',
  'lookupUserById',
  'searchUsers',
  'lookupGroupByName',
  'lookupGroupById',
  'searchGroups',
] as const

/** Constant facts, read once. */
const factFunctions = ['isGroupMembersUniqueIds', 'isUniqueIdTremoloId', 'isGroupIdUniqueId'] as const

const groupFunctions = ['addGroup', 'deleteGroup'] as const

/** Optional functions that OpenUnison does not have, so `requireAllFunctions` does not require them. */
const laterFunctions = ['renameUser', 'updateGroup', 'keepsVersions', 'storableAttributes'] as const

const pluginFunctions: readonly string[] = [
  'init',
  'shutdown',
  'setUserPassword',
  ...requiredFunctions,
  ...lookupFunctions,
  ...factFunctions,
  ...groupFunctions,
  'isGroupExists',
  ...laterFunctions,
]

export interface Demands {
  readonly requireAllFunctions: boolean
  /** Undefined: used if the functions exist. */
  readonly lookups: boolean | undefined
  readonly groups: boolean | undefined
}

export interface Capabilities {
  readonly passwords: boolean
  readonly lookups: boolean
  readonly groups: boolean
}

/** What the target can do. Throws an Error that names the missing functions. */
export function capabilitiesOf(has: (name: string) => boolean, demands: Demands): Capabilities {
  const missing = (names: readonly string[]) => names.filter((name) => !has(name))
  const required = demands.requireAllFunctions
    ? ['init', 'shutdown', 'setUserPassword', ...requiredFunctions, ...lookupFunctions, ...factFunctions]
    : requiredFunctions
  refuse(missing(required), 'is required')

  const lookups = demands.lookups ?? lookupFunctions.some(has)
  if (lookups) {
    refuse(missing(lookupFunctions), 'is required for look-ups (enableUserLookups: "false" does without them)')
  }

  const groups = demands.groups ?? groupFunctions.every(has)
  if (groups) {
    refuse(missing(groupFunctions), 'is required for enableCreateGroups')
    if (!has('lookupGroupByName') && !has('isGroupExists')) refuse(['isGroupExists'], 'is required beside addGroup')
  }
  return { passwords: has('setUserPassword'), lookups, groups }
}

function refuse(missing: readonly string[], why: string): void {
  if (missing.length > 0) throw new Error(`the plug-in's code has no function ${missing.join(', ')}, which ${why}`)
}

const one: readonly LegacyParameter[] = [value(0)]

/** How OpenUnison calls the functions of a target. Later functions follow the same style. */
export const legacySignatures: LegacySignatures = {
  init: [parameter('attributes', 0), parameter('manager'), value(1)],
  shutdown: [],
  findUser: [value(0), parameter('set', 1), parameter('request', 2)],
  createUser: [parameter('user', 0), parameter('set', 1), parameter('request', 2)],
  syncUser: [parameter('user', 0), value(1), parameter('set', 2), parameter('request', 3)],
  deleteUser: [parameter('user', 0), parameter('request', 1)],
  setUserPassword: [parameter('user', 0), parameter('request', 1)],
  renameUser: [value(0), value(1), parameter('request', 2)],
  lookupUserByLogin: one,
  lookupUserById: one,
  searchUsers: one,
  lookupGroupByName: one,
  lookupGroupById: one,
  searchGroups: one,
  isGroupMembersUniqueIds: [],
  isUniqueIdTremoloId: [],
  isGroupIdUniqueId: [],
  keepsVersions: [],
  addGroup: [value(0), parameter('textMap', 1), parameter('requestor', 2), parameter('request', 2)],
  updateGroup: [value(0), value(1), parameter('textMap', 2), parameter('request', 3)],
  deleteGroup: [value(0), parameter('requestor', 1), parameter('request', 1)],
  isGroupExists: [value(0), parameter('requestor'), parameter('request')],
}
