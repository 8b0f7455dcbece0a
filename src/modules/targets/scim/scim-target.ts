import { timeAttributes } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { readSmallFile } from '#kernel/small-file.ts'
import { withAttributes } from '#modules/shared/targets/collections.ts'
import { noUser } from '#modules/shared/targets/user-reconciler.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { type ClientProof, ClientToken } from '#protocols/oauth/client-token.ts'
import { type Credentials, ScimConnection } from '#protocols/scim/client/scim-connection.ts'
import { ServiceDiscovery } from '#protocols/scim/client/service-discovery.ts'
import type { ModuleHost } from '#sdk/module/host.ts'
import type { GroupReadOptions, GroupTarget, LookupTarget, PasswordTarget } from '#sdk/target/target.ts'
import { scimGroups } from './scim-groups.ts'
import { GroupLookups, UserLookups, withoutMembers } from './scim-lookups.ts'
import { GroupNesting, Memberships } from './scim-memberships.ts'
import { modelOf, patchSchema, requiredPath, type ScimService, send } from './scim-service.ts'
import { scimUsers } from './scim-users.ts'

export interface ScimConfig {
  readonly url: URL
  readonly access:
    | { readonly kind: 'token'; readonly token: string }
    | {
        readonly kind: 'client'
        readonly tokenUrl: URL
        readonly clientId: string
        readonly proof: ClientProof
        readonly scope: string | undefined
        readonly audience: string | undefined
      }
  readonly authority: { readonly file?: string | undefined; readonly text?: string | undefined }
  readonly memberships: 'user' | 'group'
  readonly passwords: boolean
  readonly timeoutMillis: number
}

/** Reads what the server can do; where it does not answer yet, on the first call that needs it. */
export async function openScimTarget(
  config: ScimConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'clock'>,
): Promise<ScimTarget> {
  const { authority, timeoutMillis, memberships } = config
  const { name, log, clock } = host
  const http = openHttpPool(authority.file === undefined ? authority.text : await readSmallFile(authority.file))
  const connection = new ScimConnection(http.send, {
    base: config.url,
    name,
    credentials: credentialsOf(config, http, host),
    timeoutMillis,
    clock,
  })
  const discovery = new ServiceDiscovery(connection, clock, log)
  const service = { name, connection, discovery, log, memberships }
  await discovery.features().catch((error: unknown) => {
    log.warn('could not read what the SCIM server supports; trying again later', { err: error })
  })
  return scimTarget(service, { clock, passwords: config.passwords, close: () => http.close() })
}

function credentialsOf(
  { access, timeoutMillis }: ScimConfig,
  { send }: HttpPool,
  { name, clock }: Pick<ModuleHost, 'name' | 'clock'>,
): Credentials {
  if (access.kind === 'token') return { header: async () => `Bearer ${access.token}`, renew: () => false }
  const token = new ClientToken(send, { ...access, name, clock })
  return {
    header: async () => `Bearer ${await token.get(timeoutMillis)}`,
    renew: () => {
      token.forget()
      return true
    },
  }
}

/** Another SCIM 2.0 server: logins are its userNames, ids are its ids, and group names are its displayNames. */
export type ScimTarget = LookupTarget &
  GroupTarget &
  Required<Pick<GroupTarget & LookupTarget, 'changeMemberGroups' | 'containingGroups' | 'storable' | 'close'>> &
  Partial<PasswordTarget>

function scimTarget(service: ScimService, { clock, passwords, close }: TargetOptions): ScimTarget {
  const groups = new GroupLookups(service)
  const users = new UserLookups(service, groups)
  const memberships = new Memberships(service, groups)
  const nesting = new GroupNesting(service, groups, memberships)
  const lookupUser = async (login: string) => (await users.byLogin(login))?.entry
  const lookupGroup = async (name: string, options: GroupReadOptions = { members: true }) =>
    shown((await groups.byName(name, options.members))?.entry, options)
  return {
    ...scimUsers(service, users, memberships, clock),
    ...scimGroups(service, groups),
    ...(passwords ? { setUserPassword: passwordSetter(service, users) } : {}),
    groupMembersAreIds: true,
    userIdIsLogin: false,
    groupHasOwnId: true,
    /** RFC 7643 3.1 requires it of every service. */
    idsAreUnique: true,
    renamesUsers: true,
    /** As the server reports it; false until it answered. */
    get keepsVersions() {
      return service.discovery.known?.etag === true
    },
    /** Only of servers that can filter: of others, the target would have to read every entry. */
    get servedTimes() {
      const served = service.discovery.known?.filter === true ? timeAttributes : []
      return { users: served, groups: served }
    },
    findUser: lookupUser,
    lookupUserByLogin: lookupUser,
    lookupUserById: async (id) => (await users.byId(id))?.entry,
    searchUsers: async (query) => withAttributes(await users.search.page(query, await modelOf(service)), query),
    findGroup: (name) => lookupGroup(name, { members: false }),
    lookupGroupByName: lookupGroup,
    lookupGroupById: async (id, options = { members: true }) =>
      shown((await groups.byId(id, options.members))?.entry, options),
    searchGroups: async (query) => {
      const page = await groups.search.page(query, await modelOf(service))
      return { ...page, items: page.items.map(withoutMembers) }
    },
    containingGroups: (ids) => nesting.containing(ids),
    changeMemberGroups: (name, change, request) => nesting.change(name, change, request),
    storable: async () => (await modelOf(service)).storable,
    close,
  }
}

interface TargetOptions {
  readonly clock: Clock
  /** The server accepts passwords. */
  readonly passwords: boolean
  close(): void
}

const passwordSetter =
  (service: ScimService, users: UserLookups): PasswordTarget['setUserPassword'] =>
  async (user, password, request) => {
    const stored = await users.byLogin(user.userID)
    if (stored === undefined) throw noUser(user.userID)
    const { features } = await modelOf(service)
    if (!features.patch) {
      throw new GatewayError('NOT_SUPPORTED', `target "${service.name}" has no PATCH, which setting a password needs`)
    }
    const Operations = [{ op: 'replace', path: 'password', value: password }]
    const path = requiredPath(service, '/Users', stored.entry.id)
    const body = { schemas: [patchSchema], Operations }
    await send(service, { method: 'PATCH', path, body, secret: true }, request)
    request.audit({ subject: 'attribute', action: 'replace', attribute: 'password' })
  }

/** Members have the display names of the server, whichever attribute is asked for: it reports no other. */
function shown(group: Group | undefined, { members, display }: GroupReadOptions): Group | undefined {
  if (group === undefined || !members) return group && withoutMembers(group)
  const { memberDisplays, ...rest } = group
  const hasNames = display !== undefined && memberDisplays?.some((name) => name !== undefined) === true
  return hasNames && memberDisplays !== undefined ? { ...rest, memberDisplays } : rest
}
