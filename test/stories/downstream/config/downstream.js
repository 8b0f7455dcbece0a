// A target that is another SCIM server, whose user and group ids are logins and names.
let base = ''
let token = ''
const media = 'application/scim+json'
const patchOp = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

export function init(config) {
  base = config.url[0]
  token = config.token[0]
}

async function call(method, path, body) {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, accept: media, 'content-type': media },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  if (response.status === 404) return null
  const text = await response.text()
  if (!response.ok) throw new Error(`the server behind answered ${response.status}: ${text}`)
  return text === '' ? null : JSON.parse(text)
}

const patch = (path, Operations) => call('PATCH', path, { schemas: [patchOp], Operations })

const one = async (collection, filter) => {
  const found = await call('GET', `/${collection}?filter=${encodeURIComponent(filter)}`)
  return found?.Resources[0] ?? null
}

const quoted = (text) => JSON.stringify(text)

function toUser(resource) {
  if (resource === null) return null
  const { userName, displayName, active, groups = [] } = resource
  const attributes = { userName: [userName], active: [String(active ?? true)] }
  if (displayName !== undefined) attributes.displayName = [displayName]
  return { id: resource.id, userID: userName, attributes, groups: groups.map((group) => group.display) }
}

const toGroup = (resource) =>
  resource && {
    id: resource.id,
    name: resource.displayName,
    members: (resource.members ?? []).map((member) => member.value),
  }

const toResource = (user) => ({
  userName: user.userID,
  displayName: user.attributes.displayName?.[0],
  active: user.attributes.active?.[0] !== 'false',
})

async function setGroups(id, present, wanted, addOnly) {
  for (const name of wanted) {
    if (present.includes(name)) continue
    const group = await one('Groups', `displayName eq ${quoted(name)}`)
    await patch(`/Groups/${group.id}`, [{ op: 'add', path: 'members', value: [{ value: id }] }])
  }
  if (addOnly) return
  for (const name of present) {
    if (wanted.includes(name)) continue
    const group = await one('Groups', `displayName eq ${quoted(name)}`)
    await patch(`/Groups/${group.id}`, [{ op: 'remove', path: `members[value eq ${quoted(id)}]` }])
  }
}

export const findUser = async (userID) => toUser(await one('Users', `userName eq ${quoted(userID)}`))

export async function createUser(user) {
  const created = await call('POST', '/Users', toResource(user))
  await setGroups(created.id, [], user.groups, true)
}

export async function syncUser(user, addOnly, attributes) {
  const stored = await findUser(user.userID)
  const resource = toResource(user)
  const Operations = ['displayName', 'active']
    .filter((name) => attributes.includes(name) && resource[name] !== undefined)
    .map((path) => ({ op: 'replace', path, value: resource[path] }))
  if (Operations.length > 0) await patch(`/Users/${encodeURIComponent(stored.id)}`, Operations)
  await setGroups(stored.id, stored.groups, user.groups, addOnly)
}

export async function deleteUser(user) {
  const stored = await findUser(user.userID)
  if (stored !== null) await call('DELETE', `/Users/${encodeURIComponent(stored.id)}`)
}

export const lookupUserByLogin = findUser
export const lookupUserById = async (id) => toUser(await call('GET', `/Users/${encodeURIComponent(id)}`))
export const lookupGroupByName = async (name) => toGroup(await one('Groups', `displayName eq ${quoted(name)}`))
export const lookupGroupById = async (id) => toGroup(await call('GET', `/Groups/${encodeURIComponent(id)}`))

/** Everything, page by page; the gateway in front filters. */
async function all(collection) {
  const resources = []
  let cursor = ''
  do {
    const page = await call('GET', `/${collection}?cursor=${encodeURIComponent(cursor)}&count=100`)
    resources.push(...page.Resources)
    cursor = page.nextCursor ?? ''
  } while (cursor !== '')
  return resources
}

export const searchUsers = async () => (await all('Users')).map(toUser)
export const searchGroups = async () => (await all('Groups')).map(toGroup)
export const isGroupMembersUniqueIds = () => true
export const isUniqueIdTremoloId = () => false
export const isGroupIdUniqueId = () => true
