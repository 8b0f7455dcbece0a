import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { userCollection } from '#modules/shared/targets/collections.ts'
import type { FilterName } from './filter-to-scim.ts'
import type { GroupLookups } from './group-lookups.ts'
import { resourceAt } from './resource-address.ts'
import { ResourceSearch, type Searched, theOne } from './resource-search.ts'
import { modelOf, type ScimService, type ServiceModel } from './service-model.ts'
import { slotName, timeName } from './slot-name.ts'
import { readUser, type StoredUser } from './stored-resource.ts'

const width = 8

/** Finds users with their groups. */
export class UserLookups {
  readonly #service: ScimService
  readonly #groups: GroupLookups
  readonly search: ResourceSearch<User>

  constructor(service: ScimService, groups: GroupLookups) {
    this.#service = service
    this.#groups = groups
    const searched: Searched<User> = {
      endpoint: '/Users',
      collection: userCollection,
      read: (raw, model) => readUser(raw, model, service),
      nameOf: userFilterName,
      excluded: () => undefined,
      complete: (found) => inParallel(found, width, (user) => this.withGroups(user)),
    }
    this.search = new ResourceSearch(service, searched)
  }

  async byLogin(login: string): Promise<StoredUser | undefined> {
    if (login === '') return undefined
    const found = await this.search.having('userID', login, await modelOf(this.#service))
    return theOne(found, ({ entry }) => entry.userID === login, 'users')
  }

  async byId(id: string): Promise<StoredUser | undefined> {
    const model = await modelOf(this.#service)
    const raw = await resourceAt(this.#service, '/Users', id)
    if (raw === undefined) return undefined
    const user = readUser(raw, model, this.#service)
    if (user.entry.id !== id)
      throw new GatewayError('TARGET_FAILED', `target "${this.#service.name}" gave another user`)
    return this.withGroups(user)
  }

  /** Names of groups that the resource does not tell are read from the groups. */
  async withGroups(user: StoredUser): Promise<StoredUser> {
    const { entry } = user
    if (this.#service.memberships === 'group') {
      const groups = await this.#groups.of(entry.id)
      const told = { groups: groups.map(({ name }) => name), groupIds: groups.map(({ id }) => id) }
      return { ...user, entry: { ...entry, ...told } }
    }
    if (entry.groups.every((name) => name !== '')) return user
    const known = (entry.groupIds ?? []).map((id, i) => ({ id, name: entry.groups[i] ?? '' }))
    const named = await inParallel(known, width, async ({ id, name }) => ({
      id,
      name: name !== '' ? name : (await this.#groups.byId(id, false))?.entry.name,
    }))
    // One that is gone meanwhile has no members.
    const groups = named.flatMap(({ id, name }) => (name === undefined ? [] : [{ id, name }]))
    const told = { groups: groups.map(({ name }) => name), groupIds: groups.map(({ id }) => id) }
    return { ...user, entry: { ...entry, ...told } }
  }
}

function userFilterName(attribute: string, { features, users }: ServiceModel): FilterName {
  const own = (name: string, more: object): FilterName => {
    const path = features.users.resolveAttribute(name, true)
    return path === undefined
      ? { kind: 'unknown' }
      : { kind: 'path', path, leaf: path.attribute, always: true, ...more }
  }
  switch (attribute.toLowerCase()) {
    case 'userid':
    case 'username':
      return own('userName', {})
    case 'id':
      return own('id', { exact: true })
    case 'groups':
      return { kind: 'unknown' }
    default:
      return timeName(attribute, features.users) ?? slotName(attribute, users)
  }
}
