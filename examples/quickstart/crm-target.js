// A target in plain JavaScript: an application with accounts and teams, kept in memory for the quickstart.
// A real one would call the application's API with fetch().

const accounts = new Map()
const teams = ['sales', 'support']

export function init(config) {
  accounts.set('alan', {
    userID: 'alan',
    attributes: { login: ['alan'], email: ['alan@example.com'], fullName: ['Alan Turing'], note: config.welcome ?? [] },
    groups: ['support'],
  })
}

export const findUser = (userID) => accounts.get(userID.toLowerCase()) ?? null

export function createUser(user, attributes) {
  accounts.set(user.userID.toLowerCase(), { userID: user.userID, attributes: pick(user, attributes), groups: user.groups })
}

export function syncUser(user, addOnly, attributes) {
  const account = accounts.get(user.userID.toLowerCase())
  const changed = pick(user, attributes)
  for (const name of attributes) {
    if (changed[name]) account.attributes[name] = changed[name]
    else if (!addOnly) delete account.attributes[name]
  }
  account.groups = addOnly ? [...new Set([...account.groups, ...user.groups])] : user.groups
}

export function deleteUser(user) {
  accounts.delete(user.userID.toLowerCase())
}

export const lookupUserByLogin = (login) => findUser(login)
export const lookupUserById = (id) => findUser(id)
export const searchUsers = () => [...accounts.values()]

export const lookupGroupByName = (name) => (teams.includes(name) ? team(name) : null)
export const lookupGroupById = (id) => lookupGroupByName(id)
export const searchGroups = () => teams.map(team)

export const isGroupMembersUniqueIds = () => false
export const isUniqueIdTremoloId = () => true
export const isGroupIdUniqueId = () => false

function team(name) {
  const members = [...accounts.values()].filter((account) => account.groups.includes(name))
  return { id: name, name, members: members.map((account) => account.userID) }
}

function pick(user, names) {
  return Object.fromEntries(names.filter((name) => user.attributes[name]).map((name) => [name, user.attributes[name]]))
}
