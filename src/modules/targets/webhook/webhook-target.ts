import type { ModuleHost } from '#sdk/host.ts'
import type { StorableAttributes, Target } from '#sdk/target.ts'
import { ApiCaller } from './api-caller.ts'
import { EntryReader } from './entry-reader.ts'
import { ListReader } from './list-reader.ts'
import type { Operation } from './operation.ts'
import { WebhookApi } from './webhook-api.ts'
import type { EntryPaths, WebhookConfig } from './webhook-config.ts'
import { WebhookGroups } from './webhook-groups.ts'
import { lookupsOf } from './webhook-lookups.ts'
import { WebhookUsers } from './webhook-users.ts'

/** The API is not asked until there is something to ask. */
export async function openWebhookTarget(
  config: WebhookConfig,
  host: Pick<ModuleHost, 'name' | 'clock'>,
): Promise<Target> {
  const { can, limits, operations } = config
  const caller = await ApiCaller.open(config.connection, host.name, host.clock)
  const reader = new EntryReader(host.name)
  const api = new WebhookApi(config, caller, reader, new ListReader(caller, reader, limits, host.name))
  const users = new WebhookUsers(api)
  const storable: StorableAttributes = {
    users: written(config.user, operations.createUser, operations.updateUser),
    groups: written(config.group, operations.createGroup, operations.updateGroup),
  }
  return {
    storable: async () => storable,
    renamesUsers: can.renames,
    keepsVersions: can.versions,
    findUser: (userID, attributes, request) => users.findUser(userID, attributes, request),
    createUser: (user, attributes, request, options) => users.createUser(user, attributes, request, options),
    syncUser: (user, options, request) => users.syncUser(user, options, request),
    deleteUser: (user, request, options) => users.deleteUser(user, request, options),
    ...(operations.setPassword === undefined ? {} : { setUserPassword: users.setUserPassword }),
    ...(can.lookups ? lookupsOf(api) : {}),
    ...(can.groups ? groupsOf(api) : {}),
    close: () => api.close(),
  } satisfies Target
}

/** Attributes that the body of a request has a place for. */
function written({ attributes, aliases }: EntryPaths, ...operations: readonly (Operation | undefined)[]): Set<string> {
  const places = new Set(operations.flatMap((one) => one?.body?.places ?? []).map(({ name }) => name.toLowerCase()))
  const named = [...attributes.keys()].map((name) => name.toLowerCase()).filter((name) => places.has(name))
  return new Set([...named, ...aliases])
}

function groupsOf(api: WebhookApi) {
  const { findGroup, createGroup, updateGroup, deleteGroup } = new WebhookGroups(api)
  return { findGroup, createGroup, updateGroup, deleteGroup }
}
