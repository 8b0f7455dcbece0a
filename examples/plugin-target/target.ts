// A target that keeps its users in memory, as a start for one that talks to your own system: replace what touches
// `users` by calls to it. Every function may be async. Each is explained in docs/guides/writing-a-target.md.
import type {
  PluginConfig,
  PluginFilter,
  PluginGroup,
  PluginTargetRequest,
  PluginUser,
} from '../../src/sdk/plugin/plugin-types.ts'

interface StoredUser {
  userID: string
  attributes: Map<string, string[]>
  groups: Set<string>
}

/** By login in lower case: letter case does not make another user. */
const users = new Map<string, StoredUser>()
const find = (login: string): StoredUser | undefined => users.get(login.toLowerCase())

/** Parameters of the YAML come as { name: ['value', …] }. What is thrown here refuses the configuration. */
export function init(config: PluginConfig, _name: string): void {
  for (const login of config['user'] ?? []) {
    users.set(login.toLowerCase(), { userID: login, attributes: new Map(), groups: new Set() })
  }
}

export function findUser(userID: string, _attributes: string[], _request: PluginTargetRequest): PluginUser | null {
  return plain(find(userID))
}

/** Only called for a user that findUser did not find. */
export function createUser(user: PluginUser, _attributes: string[], request: PluginTargetRequest): void {
  users.set(user.userID.toLowerCase(), {
    userID: user.userID,
    attributes: new Map(Object.entries(user.attributes)),
    groups: new Set(user.groups),
  })
  request.log('user created', { userID: user.userID })
}

/** Only called for a user that findUser found. Touches the listed attributes only. With addOnly, nothing is taken away. */
export function syncUser(user: PluginUser, addOnly: boolean, attributes: string[]): void {
  const stored = find(user.userID)
  if (stored === undefined) throw new Error(`there is no user ${user.userID}`)
  const given = new Map(Object.entries(user.attributes))
  for (const name of attributes) {
    const wanted = given.get(name) ?? []
    const values = addOnly ? [...new Set([...(stored.attributes.get(name) ?? []), ...wanted])] : wanted
    if (values.length === 0) stored.attributes.delete(name)
    else stored.attributes.set(name, values)
  }
  stored.groups = new Set(addOnly ? [...stored.groups, ...user.groups] : user.groups)
}

/** Optional: with it, logins can be changed. Only called for a user that is there, and a new login that is free. */
export function renameUser(userID: string, newUserID: string, _request: PluginTargetRequest): void {
  const stored = find(userID)
  if (stored === undefined) return
  users.delete(userID.toLowerCase())
  users.set(newUserID.toLowerCase(), { ...stored, userID: newUserID })
}

/** Only called for a user that findUser found. */
export function deleteUser(user: PluginUser, _request: PluginTargetRequest): void {
  users.delete(user.userID.toLowerCase())
}

export const lookupUserByLogin = (login: string): PluginUser | null => plain(find(login))
export const lookupUserById = (id: string): PluginUser | null => plain(find(id))

/** May return more than was asked for: the gateway filters and pages. */
export const searchUsers = (_filterText: string, _filter: PluginFilter) => Array.from(users.values(), plain)

export function searchGroups(_filterText?: string, _filter?: PluginFilter): PluginGroup[] {
  const names = new Set(Array.from(users.values()).flatMap((user) => [...user.groups]))
  return Array.from(names, group)
}

export const lookupGroupByName = (name: string): PluginGroup | null =>
  searchGroups().find((found) => found.name === name) ?? null
export const lookupGroupById = (id: string): PluginGroup | null => lookupGroupByName(id)

/** Called once at the end; close connections here. */
export function shutdown(): void {
  users.clear()
}

function plain(user: StoredUser | undefined): PluginUser | null {
  if (user === undefined) return null
  return { userID: user.userID, attributes: Object.fromEntries(user.attributes), groups: [...user.groups] }
}

function group(name: string): PluginGroup {
  const members = Array.from(users.values()).filter((user) => user.groups.has(name))
  return { id: name, name, members: members.map((user) => user.userID) }
}
