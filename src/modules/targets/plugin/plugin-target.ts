import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { KeyedQueue } from '#modules/shared/targets/keyed-queue.ts'
import { requireVersion } from '#modules/shared/targets/user-reconciler.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { ModuleHost } from '#sdk/host.ts'
import { loginSpellings } from '#sdk/new-account.ts'
import { loadPluginCode, type PluginCode } from '#sdk/plugin-code.ts'
import type { PasswordTarget, SyncOptions, Target, TargetRequest } from '#sdk/target.ts'
import { sameLogin } from '#sdk/workflow-user.ts'
import { readFlag, readOptional, readStorable, readUser } from './plugin-answers.ts'
import { type AuditedRequest, PluginCaller, plainRequest } from './plugin-caller.ts'
import { type Capabilities, capabilitiesOf, type Demands, pluginFunctions } from './plugin-functions.ts'
import { groupsOf } from './plugin-groups.ts'
import { lookupsOf } from './plugin-lookups.ts'

export interface PluginTargetConfig extends Demands {
  readonly code: PluginCode
  /** As the code declares its functions; undefined where that isn't known before it runs. */
  readonly can?: Capabilities
}

/** Loads the code and runs `init`; rejects with the reason when either fails. */
export async function openPluginTarget(
  { code, can: _, ...demands }: PluginTargetConfig,
  host: Pick<ModuleHost, 'name' | 'log' | 'javaScript'>,
): Promise<Target> {
  const { timeoutMillis, memoryMegabytes, config } = code
  const plugin = await PluginHost.open({
    ...(await loadPluginCode(code, host)),
    name: `target "${host.name}"`,
    functions: pluginFunctions,
    globals: { name: host.name },
    timeoutMillis,
    memoryMegabytes,
    log: host.log,
    start: () => [{ function: 'init', args: [config, host.name] }],
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

/**
 * Each change reads the user first: so a user that is there is not made again, one that is gone is not deleted
 * again, memberships can be kept, and the change can be told. Changes to one user follow one another.
 */
function accountsOf(caller: PluginCaller): Target {
  const queue = new KeyedQueue()
  const find = (userID: string, attributes: readonly string[], request: TargetRequest) =>
    caller.ask('findUser', [userID, attributes, plainRequest(request)], readOptional(readUser), request)

  async function sync(before: User | undefined, user: User, options: SyncOptions, request: AuditedRequest) {
    const { addOnly, attributes } = options
    const groups = options.keepGroups ? (before?.groups ?? []) : user.groups
    const wanted = { ...user, userID: spelled(user, before), groups }
    await request.change(
      'syncUser',
      (plain) => [plainUser(wanted, attributes, before), addOnly, attributes, plain],
      () => userChanges(before, wanted, options),
    )
  }

  /** Comes before all other changes, so that an attempt that ends half way is found by the new login and gone on with. */
  async function rename(before: User, newUserID: string, request: TargetRequest, audited: AuditedRequest) {
    if (!caller.has('renameUser')) throw new GatewayError('NOT_SUPPORTED', 'the plug-in has no function renameUser')
    const isOther = newUserID.toLowerCase() !== before.userID.toLowerCase()
    if (isOther && (await find(newUserID, [], request)) !== undefined) throw taken(newUserID)
    await audited.change(
      'renameUser',
      (plain) => [before.userID, newUserID, plain],
      () => [{ subject: 'entry', action: 'replace', attribute: 'userID', value: newUserID }],
    )
  }

  return {
    renamesUsers: caller.has('renameUser'),
    findUser: find,
    createUser: (user, attributes, request, { mustBeNew = false } = {}) =>
      queue.run(user.userID.toLowerCase(), async () => {
        const before = await find(user.userID, attributes, request)
        const options = { addOnly: false, attributes, keepGroups: false }
        if (before !== undefined) {
          const isSame = spelled(user, before) === user.userID && userChanges(before, user, options).length === 0
          if (!mustBeNew && isSame) return
          throw taken(user.userID)
        }
        for (const login of mustBeNew ? loginSpellings(user.userID) : []) {
          if ((await find(login, [], request)) !== undefined) throw taken(login)
        }
        await caller.auditing(request).change(
          'createUser',
          (plain) => [plainUser(user, attributes), attributes, plain],
          () => userChanges(undefined, user, options),
        )
      }),
    syncUser: (user, options, request) =>
      queue.run(user.userID.toLowerCase(), async () => {
        const before = await find(user.userID, options.attributes, request)
        requireVersion(before, options.expectedVersion)
        const audited = caller.auditing(request)
        const { newUserID = before?.userID } = options
        if (newUserID === before?.userID) return sync(before, user, options, audited)
        if (before === undefined || newUserID === undefined) {
          throw new GatewayError('NOT_FOUND', `no user "${user.userID}"`)
        }
        await rename(before, newUserID, request, audited)
        const renamed = { ...user, userID: newUserID }
        const wanted = options.keepGroups ? { ...renamed, groups: before.groups } : renamed
        if (userChanges(before, wanted, options).length === 0) return
        await sync({ ...before, userID: newUserID }, renamed, options, audited)
      }),
    deleteUser: (user, request, options) =>
      queue.run(user.userID.toLowerCase(), async () => {
        const before = await find(user.userID, [], request)
        if (before === undefined) return
        requireVersion(before, options?.expectedVersion)
        await caller.auditing(request).change(
          'deleteUser',
          (plain) => [plainUser({ ...user, userID: spelled(user, before) }, user.attributes.names(), before), plain],
          () => [entryChange('entry', 'delete', 'userID', before.userID)],
        )
      }),
  }
}

/** Asked once, as the other facts are. */
async function storableOf(caller: PluginCaller): Promise<Pick<Target, 'storable'>> {
  const attributes = await caller.ask('storableAttributes', [], readStorable)
  return { storable: async () => attributes }
}

/** The login in the letters of the user that the plug-in found, so that it need not look for others again. */
const spelled = ({ userID }: User, before: User | undefined): string =>
  before !== undefined && sameLogin(before.userID, userID) ? before.userID : userID

const taken = (userID: string): GatewayError =>
  new GatewayError('CONFLICT', `there is a user "${userID}" already`, { keyword: 'uniqueness' })

/** The value of a password never comes back into the audit, whatever the plug-in reports. */
function passwordsOf(caller: PluginCaller): Pick<PasswordTarget, 'setUserPassword'> {
  return {
    async setUserPassword(user, password, request) {
      const valueless: TargetRequest = {
        ...request,
        audit: ({ subject, action, attribute }) => request.audit({ subject, action, attribute }),
      }
      await caller.auditing(valueless).change(
        'setUserPassword',
        (plain) => [{ ...plainUser(user, user.attributes.names()), password }, plain],
        () => [{ subject: 'attribute', action: 'replace', attribute: 'password' }],
      )
    },
  }
}

/** Only the attributes that may be touched, under the names by which they were asked for. */
function plainUser(user: User, attributes: readonly string[], before?: User): Record<string, JsonValue> {
  const values: Record<string, readonly string[]> = Object.create(null)
  for (const name of attributes) {
    const held = user.attributes.values(name)
    if (held.length > 0) values[name] = held
  }
  const id = user.id ?? before?.id
  return { userID: user.userID, attributes: values, groups: user.groups, ...(id === undefined ? {} : { id }) }
}
