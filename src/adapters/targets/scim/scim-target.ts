import { withAttributes } from '#adapters/targets/shared/collections.ts'
import { type GroupStore, noGroup, reconcileGroups } from '#adapters/targets/shared/group-reconciler.ts'
import { retry } from '#adapters/targets/shared/retry.ts'
import { type Exclusively, hasCode, noUser } from '#adapters/targets/shared/user-reconciler.ts'
import type { GroupReadOptions, MemberGroupChange } from '#identity/account-store.ts'
import { Attributes } from '#identity/attributes.ts'
import { timeAttributes } from '#identity/entry-times.ts'
import type { Group } from '#identity/group.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import { type HttpPool, openHttpPool } from '#protocols/http/http-client.ts'
import { type ClientProof, ClientToken } from '#protocols/oauth/client-token.ts'
import type { ModuleHost } from '#sdk/host/host.ts'
import { type Authority, loadAuthority } from '#sdk/module/authority.ts'
import type { GroupTarget, LookupTarget, PasswordTarget, TargetRequest } from '#sdk/target/target.ts'
import { groupFacts, type ProfileName, profileOf, standardProfile } from './profiles.ts'
import { unfit } from './resource-mapping.ts'
import { type Credentials, ScimConnection } from './scim-connection.ts'
import { GroupLookups, UserLookups, withoutMembers } from './scim-lookups.ts'
import { GroupNesting, Memberships } from './scim-memberships.ts'
import {
  changeRequest,
  isUncertain,
  modelOf,
  newResource,
  patchSchema,
  requiredPath,
  type ScimService,
  type ServerGroup,
  type ServiceModel,
  type Stored,
  send,
} from './scim-service.ts'
import { scimUsers } from './scim-users.ts'
import { ServiceDiscovery } from './service-discovery.ts'

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
  readonly authority: Authority
  readonly profile: ProfileName | undefined
  readonly memberships: 'user' | 'group'
  /** What to do with a group that a user joins and that doesn't exist. */
  readonly missingGroups: 'refuse' | 'create'
  readonly passwords: boolean
  readonly timeoutMillis: number
}

/** Reads the server's capabilities; if it does not answer yet, on the first call that needs them. */
export async function openScimTarget(config: ScimConfig, host: ModuleHost): Promise<ScimTarget> {
  const { authority, timeoutMillis, memberships } = config
  const profile = profileOf(config.profile)
  const { name, log, clock } = host
  const http = openHttpPool(await loadAuthority(authority))
  const connection = new ScimConnection(http.send, {
    base: config.url,
    name,
    credentials: credentialsOf(config, http, host),
    timeoutMillis,
    clock,
  })
  const discovery = new ServiceDiscovery(connection, profile, clock, log)
  const service = { name, connection, discovery, log, memberships, profile }
  await discovery.features().catch((error: unknown) => {
    log.warn('could not read what the SCIM server supports; trying again later', { err: error })
  })
  const { passwords, missingGroups } = config
  return scimTarget(service, { clock, passwords, missingGroups, close: () => http.close() })
}

function credentialsOf(
  { access, timeoutMillis }: ScimConfig,
  { send }: HttpPool,
  { name, clock }: ModuleHost,
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
  Required<Pick<LookupTarget, 'storable' | 'close'>> &
  Partial<Omit<GroupTarget, keyof LookupTarget>> &
  Partial<PasswordTarget>

function scimTarget(service: ScimService, { clock, passwords, missingGroups, close }: TargetOptions): ScimTarget {
  const { profile } = service
  const groups = new GroupLookups(service)
  const users = new UserLookups(service, groups)
  const ofGroups = scimGroups(service, groups)
  const createGroup = missingGroups === 'create' ? ofGroups.createGroup : undefined
  const memberships = new Memberships(service, groups, createGroup)
  const lookupUser = async (login: string) => (await users.byLogin(login))?.entry
  return {
    ...scimUsers(service, users, memberships, clock),
    ...(profile.groups === 'none' ? withoutGroups : { ...ofGroups, ...groupMethods(service, groups, memberships) }),
    ...(passwords ? { setUserPassword: passwordSetter(service, users) } : {}),
    groupMembersAreIds: true,
    userIdIsLogin: false,
    groupHasOwnId: true,
    /** RFC 7643 3.1 requires it of every service. */
    idsAreUnique: true,
    renamesUsers: profile.users.fixed?.includes('userName') !== true,
    keepsDeleted: profile.users.keepsDeleted === true,
    /** As the server reports it; false until it answers. */
    get keepsVersions() {
      return service.discovery.known?.etag === true
    },
    /** They are made from the server's lists: as JSON, and the plain ones with the primary first. */
    ownsValues: true,
    /** Only for servers that can filter: for others, the target would have to read every entry. */
    get servedTimes() {
      const served = service.discovery.known?.filter === true && profile === standardProfile ? timeAttributes : []
      return { users: served, groups: served }
    },
    findUser: lookupUser,
    lookupUserByLogin: lookupUser,
    lookupUserById: async (id) => (await users.byId(id))?.entry,
    searchUsers: async (query) => withAttributes(await users.search.page(query, await modelOf(service)), query),
    storable: async () => (await modelOf(service)).storable,
    close,
  }
}

/** An application without groups has none to find, and can't get any. */
const withoutGroups: Pick<LookupTarget, 'lookupGroupByName' | 'lookupGroupById' | 'searchGroups'> = {
  lookupGroupByName: async () => undefined,
  lookupGroupById: async () => undefined,
  searchGroups: async () => ({ items: [], total: 0 }),
}

function groupMethods(service: ScimService, groups: GroupLookups, memberships: Memberships) {
  const lookup = async (name: string, options: GroupReadOptions = { members: true }) =>
    shown((await groups.byName(name, options.members))?.entry, options)
  const methods: Pick<GroupTarget, 'findGroup'> & typeof withoutGroups = {
    findGroup: (name) => lookup(name, { members: false }),
    lookupGroupByName: lookup,
    lookupGroupById: async (id, options = { members: true }) =>
      shown((await groups.byId(id, options.members))?.entry, options),
    searchGroups: async (query) => {
      const page = await groups.search.page(query, await modelOf(service))
      return { ...page, items: page.items.map(withoutMembers) }
    },
  }
  // The applications of profiles have no groups in groups.
  if (service.profile !== standardProfile) return methods
  const nesting = new GroupNesting(service, groups, memberships)
  return {
    ...methods,
    containingGroups: (ids: readonly string[]) => nesting.containing(ids),
    changeMemberGroups: (name: string, change: MemberGroupChange, request: TargetRequest) =>
      nesting.change(name, change, request),
  }
}

interface TargetOptions {
  readonly clock: Clock
  /** The server accepts passwords. */
  readonly passwords: boolean
  readonly missingGroups: ScimConfig['missingGroups']
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

/** Members have the display names of the server, whichever attribute is requested: it reports no other. */
function shown(group: Group | undefined, { members, display }: GroupReadOptions): Group | undefined {
  if (group === undefined || !members) return group && withoutMembers(group)
  const { memberDisplays, ...rest } = group
  const hasNames = display !== undefined && memberDisplays?.some((name) => name !== undefined) === true
  return hasNames && memberDisplays !== undefined ? { ...rest, memberDisplays } : rest
}

const maxAttempts = 5

interface FoundGroup extends ServerGroup {
  readonly group: ServerGroup['entry']
}

/** SCIM does not require that names of groups are unique, so the target checks it. */
function scimGroups(
  service: ScimService,
  groups: GroupLookups,
): Pick<GroupTarget, 'createGroup' | 'updateGroup' | 'deleteGroup'> {
  const queue = new KeyedQueue()
  /** A change that loses against another writer is decided again, unless it expects a version. */
  const exclusively: Exclusively<GroupStore<FoundGroup>> = (name, work, expectedVersion) =>
    queue.run(name.toLowerCase(), async () => {
      const store = storeOf(service, groups, await modelOf(service))
      const isStale = (error: unknown) => hasCode(error, 'VERSION_MISMATCH') && expectedVersion === undefined
      return retry(maxAttempts, isStale, () => work(store))
    })
  return reconcileGroups(exclusively)
}

function storeOf(service: ScimService, groups: GroupLookups, model: ServiceModel): GroupStore<FoundGroup> {
  const read = async (name: string): Promise<FoundGroup | undefined> => {
    // Without PATCH the whole group is written, with its members.
    const found = await groups.byName(name, !model.features.patch)
    return found && { ...found, group: found.entry }
  }
  const facts = groupFacts(service.profile)
  const editsOf = ({ resource }: Pick<Stored<unknown>, 'resource'>, wanted: Attributes, attributes = wanted.names()) =>
    model.groups.edits(resource, wanted, { attributes, addOnly: false })
  return {
    touches: true,
    rereadsConflicts: true,
    read,
    isSame: (stored, name, wanted) => stored.group.name === name && editsOf(stored, wanted).length === 0,
    create: async (name, wanted, { changes, request, isDone }) => {
      checkName(name)
      const edits = editsOf({ resource: {} }, wanted)
      const resource = newResource(model.features.groups, { attribute: 'displayName', value: name }, edits)
      const body = facts.namesExternal === true ? { externalId: name, ...resource } : resource
      try {
        await send(service, { method: 'POST', path: '/Groups', body }, request)
      } catch (error) {
        if (!isUncertain(error) || !(await isDone())) throw error
      }
      return changes
    },
    write: async (stored, { newName, attributes, changes, expectedVersion, request }) => {
      checkName(newName)
      const wanted = Attributes.from(attributes)
      const path = requiredPath(service, '/Groups', stored.group.id)
      const change = (current: FoundGroup) => {
        const edits = editsOf(current, wanted, [...attributes.keys()])
        const isRenamed = current.group.name !== newName
        return { edits, isRenamed, isNothing: edits.length === 0 && !isRenamed }
      }
      const write = async (current: FoundGroup) => {
        const { edits, isRenamed, isNothing } = change(current)
        // If only the version is expected, writing the same name makes the server compare it.
        const naming = { attribute: 'displayName', value: isRenamed || isNothing ? newName : undefined } as const
        const how = { path, model, schema: model.features.groups }
        await send(service, changeRequest(current, naming, edits, how), request)
      }
      const { isRenamed, isNothing } = change(stored)
      if (isNothing && expectedVersion === undefined) return []
      if (isRenamed && facts.keepsNames === true) {
        const said = `${service.profile.title} can't rename a group. Create a group with the new name, and delete this one.`
        throw new GatewayError('NOT_SUPPORTED', said, { publicText: said })
      }
      try {
        await write(stored)
      } catch (error) {
        if (!isUncertain(error)) throw error
        const current = (await read(stored.group.name)) ?? (await read(newName))
        if (current === undefined) throw noGroup(stored.group.name, error)
        if (!change(current).isNothing) await write(current)
      }
      return changes
    },
    delete: async ({ group }, { changes, expectedVersion, request }) => {
      const path = requiredPath(service, '/Groups', group.id)
      try {
        await send(service, { method: 'DELETE', path, ifMatch: expectedVersion }, request)
      } catch (error) {
        if (hasCode(error, 'NOT_FOUND')) return []
        if (!isUncertain(error) || (await read(group.name)) !== undefined) throw error
      }
      return changes
    },
  }
}

function checkName(name: string): void {
  if (name === '' || !name.isWellFormed() || name.includes('\0')) {
    throw unfit('displayName', 'it is not a valid group name')
  }
}
