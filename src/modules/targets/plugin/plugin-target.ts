import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { PluginHost } from '#protocols/plugin/plugin-host.ts'
import type { ModuleHost } from '#sdk/host.ts'
import { loadPluginCode, type PluginCode } from '#sdk/plugin-code.ts'
import type { PasswordTarget, SyncOptions, Target, TargetRequest } from '#sdk/target.ts'
import { readOptional, readUser } from './plugin-answers.ts'
import { type AuditedRequest, PluginCaller, plainRequest } from './plugin-caller.ts'
import { changesOfDelete, changesOfSync } from './plugin-changes.ts'
import { capabilitiesOf, type Demands, pluginFunctions } from './plugin-functions.ts'
import { groupsOf } from './plugin-groups.ts'
import { lookupsOf } from './plugin-lookups.ts'
import { UserQueue } from './user-queue.ts'

export interface PluginTargetConfig extends Demands {
  readonly code: PluginCode
}

/** Loads the code and runs `init`; rejects with the reason when either fails. */
export async function openPluginTarget(
  { code, ...demands }: PluginTargetConfig,
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
      close: () => plugin.close(),
    }
  } catch (error) {
    await plugin.close()
    throw error
  }
}

/**
 * Each change reads the user first: so a user that is there is not created twice, one that is gone is not deleted
 * again, memberships can be kept, and the change can be told. Changes to one user follow one another.
 */
function accountsOf(caller: PluginCaller): Target {
  const queue = new UserQueue()
  const find = (userID: string, attributes: readonly string[], request: TargetRequest) =>
    caller.ask('findUser', [userID, attributes, plainRequest(request)], readOptional(readUser), request)

  async function sync(before: User | undefined, user: User, options: SyncOptions, request: AuditedRequest) {
    const { addOnly, attributes } = options
    const groups = options.keepGroups ? (before?.groups ?? []) : user.groups
    const wanted = { ...user, groups }
    await request.change(
      'syncUser',
      (plain) => [plainUser(wanted, attributes, before), addOnly, attributes, plain],
      () => changesOfSync(before, wanted, options),
    )
  }

  return {
    findUser: find,
    createUser: (user, attributes, request) =>
      queue.run(user.userID, async () => {
        const before = await find(user.userID, attributes, request)
        const audited = caller.auditing(request)
        const options = { addOnly: false, attributes, keepGroups: false }
        if (before !== undefined) return sync(before, user, options, audited)
        await audited.change(
          'createUser',
          (plain) => [plainUser(user, attributes), attributes, plain],
          () => changesOfSync(undefined, user, options),
        )
      }),
    syncUser: (user, options, request) =>
      queue.run(user.userID, async () => {
        const before = await find(user.userID, options.attributes, request)
        const { expectedVersion } = options
        if (expectedVersion !== undefined && before?.version !== expectedVersion) {
          throw new GatewayError('VERSION_MISMATCH', `"${user.userID}" is not of version ${expectedVersion}`)
        }
        await sync(before, user, options, caller.auditing(request))
      }),
    deleteUser: (user, request) =>
      queue.run(user.userID, async () => {
        const before = await find(user.userID, [], request)
        if (before === undefined) return
        await caller.auditing(request).change(
          'deleteUser',
          (plain) => [plainUser(user, user.attributes.names(), before), plain],
          () => changesOfDelete(before),
        )
      }),
  }
}

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
