import type { Logger } from '#kernel/logger.ts'
import type { ScimConnection } from '#protocols/scim/client/scim-connection.ts'
import type { ServiceDiscovery, ServiceFeatures } from '#protocols/scim/client/service-discovery.ts'
import type { StorableAttributes } from '#sdk/target.ts'
import { ResourceMapping } from './resource-mapping.ts'

/** The server that a target stands for. */
export interface ScimService {
  readonly name: string
  readonly connection: ScimConnection
  readonly discovery: ServiceDiscovery
  readonly log: Logger
  /** Where a user's groups are told. */
  readonly memberships: 'user' | 'group'
}

/** What the server can do, and its resources as attributes. */
export interface ServiceModel {
  readonly features: ServiceFeatures
  readonly users: ResourceMapping
  readonly groups: ResourceMapping
  readonly storable: StorableAttributes
}

const ownOfUsers = new Set(['schemas', 'id', 'meta', 'userName', 'password', 'groups'])
const ownOfGroups = new Set(['schemas', 'id', 'meta', 'displayName', 'members'])

const models = new WeakMap<ServiceFeatures, ServiceModel>()

/** Throws TARGET_UNREACHABLE while the server has not answered yet. */
export async function modelOf({ discovery }: ScimService): Promise<ServiceModel> {
  const features = await discovery.features()
  const known = models.get(features)
  if (known !== undefined) return known
  const users = new ResourceMapping(features.users, ownOfUsers, ['username', 'userid'])
  const groups = new ResourceMapping(features.groups, ownOfGroups, ['displayname', 'name'])
  const model = { features, users, groups, storable: { users: writtenBy(users), groups: writtenBy(groups) } }
  models.set(features, model)
  return model
}

const writtenBy = ({ slots }: ResourceMapping): ReadonlySet<string> =>
  new Set(slots.written.map(({ name }) => name.toLowerCase()))
