// A target that keeps its users in memory, as a start for one that talks to your own system: replace what touches
// `users` by calls to it. Every function may be async. Each is explained in docs/guides/writing-a-target.md.

/** userID -> { userID, attributes: Map(name -> values), groups: Set(name) } */
const users = new Map()

/** Parameters of the YAML come as { name: ['value', …] }. What is thrown here refuses the configuration. */
export function init(config, name) {
  for (const login of config.user ?? []) users.set(login, { userID: login, attributes: new Map(), groups: new Set() })
}

export function findUser(userID, attributes, request) {
  return plain(users.get(userID))
}

/** Only called for a user that findUser did not find. */
export function createUser(user, attributes, request) {
  users.set(user.userID, {
    userID: user.userID,
    attributes: new Map(Object.entries(user.attributes)),
    groups: new Set(user.groups),
  })
  request.log('user created', { userID: user.userID })
}

/** Touches the listed attributes only. With addOnly, nothing is taken away. */
export function syncUser(user, addOnly, attributes, request) {
  const stored = users.get(user.userID)
  if (stored === undefined) return createUser(user, attributes, request)
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
export function renameUser(userID, newUserID, request) {
  const stored = users.get(userID)
  users.delete(userID)
  users.set(newUserID, { ...stored, userID: newUserID })
}

/** Only called for a user that findUser found. */
export function deleteUser(user, request) {
  users.delete(user.userID)
}

export const lookupUserByLogin = (login) => plain(users.get(login))
export const lookupUserById = (id) => plain(users.get(id))

/** May return more than was asked for: the gateway filters and pages. */
export const searchUsers = (filterText, filter) => Array.from(users.values(), plain)

export function searchGroups(filterText, filter) {
  const names = new Set(Array.from(users.values()).flatMap((user) => [...user.groups]))
  return Array.from(names, group)
}

export const lookupGroupByName = (name) => searchGroups().find((found) => found.name === name) ?? null
export const lookupGroupById = (id) => lookupGroupByName(id)

/** Called once at the end; close connections here. */
export function shutdown() {
  users.clear()
}

function plain(user) {
  if (user === undefined) return null
  return { userID: user.userID, attributes: Object.fromEntries(user.attributes), groups: [...user.groups] }
}

function group(name) {
  const members = Array.from(users.values()).filter((user) => user.groups.has(name))
  return { id: name, name, members: members.map((user) => user.userID) }
}
