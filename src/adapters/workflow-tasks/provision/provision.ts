import { auditedCall } from '#adapters/workflow-tasks/shared/audited-call.ts'
import { checkVersion, type TargetUser, targetUser } from '#adapters/workflow-tasks/shared/target-user.ts'
import { expiryFields, readTaskExpiry, type TaskExpiry } from '#adapters/workflow-tasks/shared/task-expiry.ts'
import { defineTask } from '#adapters/workflow-tasks/shared/task-fields.ts'
import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { NamedGroup } from '#identity/group.ts'
import type { Identity } from '#identity/identity.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError, GatewayError } from '#kernel/errors.ts'
import type { When } from '#kernel/time.ts'
import type { Mapping } from '#sdk/mapper/mapping.ts'
import { flag, list, text } from '#sdk/module/parameter-types.ts'
import { type Expiry, expiryTime } from '#sdk/target/expiry.ts'
import { hasPasswords, type Target, type TargetRequest } from '#sdk/target/target.ts'
import { lastsLonger } from '#sdk/workflow/grant.ts'
import type { GrantAccess } from '#sdk/workflow/grants.ts'
import { onTarget } from '#sdk/workflow/preview.ts'
import type { RunHead } from '#sdk/workflow/run-head.ts'
import { anyVersion, noVersion } from '#sdk/workflow/workflow.ts'
import {
  type GrantedAccess,
  next,
  type StepEffects,
  type TaskHost,
  type WorkflowTask,
  type WorkflowUser,
} from '#sdk/workflow/workflow-task.ts'
import { limitGroups, sameLogin, takeVersion, wantedGroups } from '#sdk/workflow/workflow-user.ts'

const fields = {
  target: text({ about: 'The target that the user is written to.', required: true, reference: 'target' }),
  sync: flag({
    about: '`true` makes the target equal to the user, removing what the user does not have; `false` only adds.',
    required: true,
    fallback: true,
  }),
  setPassword: flag({
    about:
      "Also sets the user's password, if the caller gave one; `false` when absent. The user's [other sessions end](../../guides/passwords.md#passwords-that-a-workflow-sets).",
  }),
  onlyPassedInAttributes: flag({
    about: 'Writes only attributes that the user has, so that none is cleared; `false` when absent.',
  }),
  attributes: list({
    about:
      'The attributes that may be written; when empty, all that the user has and all that the request took from it.',
  }),
  groups: list({
    about:
      'The groups whose memberships may be written; others stay as they are. Every group when absent, none with an empty list.',
    fallback: undefined,
  }),
  ...expiryFields,
}

interface Config {
  readonly target: string
  readonly sync: boolean
  readonly setPassword: boolean
  readonly onlyPassedInAttributes: boolean
  readonly attributes: readonly string[]
  /** Undefined: every group. */
  readonly groups: readonly string[] | undefined
  readonly expiry: TaskExpiry
}

export default defineTask({
  taskType: 'provision',
  fields,
  prepare: (given, places) => {
    const config: Config = { ...given, expiry: readTaskExpiry(given, places) }
    const attributes = config.attributes.map((attribute, index) => ({
      attribute,
      path: [...places.pathOf('attributes'), index],
    }))
    return {
      flow: {
        reads: config.expiry.reads,
        produces: [],
        dropsOthers: false,
        opaque: false,
        writes: true,
        provisions: {
          target: config.target,
          attributes: attributes.length === 0 ? undefined : attributes,
          groups: config.groups,
          ...(config.setPassword ? { password: true } : {}),
        },
      },
      create: async (host) => provisionTask(config, host),
    }
  },
})

function provisionTask(config: Config, host: Pick<TaskHost, 'targets' | 'clock' | 'grants'>): WorkflowTask {
  const { targets, clock, grants } = host
  const mapping = targets.mapping?.(config.target)
  const own = targets.get(config.target)
  return onTarget(config.target, own, async (target, context) => {
    const { forTarget } = context
    const user = config.groups === undefined ? context.user : limitGroups(context.user, config.groups)
    // Before the target is called: access that cannot expire must not begin.
    const ends = accessEnds(config.expiry.of(context), user, clock())
    const request = forTarget(config.target)
    const mapped = await targetUser(user, mapping)
    await requireLaterEnd(ends, { target: config.target, login: mapped.userID }, context.run, grants)
    const listed = config.attributes.length === 0 ? ownNames(mapped) : config.attributes
    const attributes = config.onlyPassedInAttributes ? listed.filter((name) => mapped.attributes.has(name)) : listed
    const newUserID = await newLogin(user, mapped, mapping)
    const logins = newUserID === undefined ? [mapped.userID] : [mapped.userID, newUserID]
    const read = takeVersion(user, config.target, logins)
    const login = await applyUser(
      target,
      mapped,
      {
        attributes,
        addOnly: !config.sync,
        expectedVersion: read?.version,
        expectedGroup: read?.group,
        newUserID,
      },
      request,
    )
    grantForTime(ends, config.target, login, context.effects)
    if (config.setPassword)
      await setPassword(target, config.target, {
        owners: async () => (target === own ? ((await targets.ownersOf?.(config.target, login)) ?? []) : []),
        user: context.user,
        login,
        request,
        effects: context.effects,
      })
    return next
  })
}

interface AccessEnd extends Pick<GrantedAccess, 'kind' | 'expires'> {
  /** The group, if it is about one. */
  readonly group?: string
}

/** The access that expires automatically. Throws BAD_REQUEST for a time that has passed. */
function accessEnds(account: Expiry | undefined, user: WorkflowUser, now: Date): AccessEnd[] {
  const timeOf = (expiry: Expiry): When => {
    const time = expiryTime(expiry, now)
    if (time !== undefined) return time
    throw new GatewayError('BAD_REQUEST', 'the requested expiry date has passed or is too far away', {
      publicText: 'Access can only be given until a time in the next 100 years.',
    })
  }
  const given = user.keepGroups ? (user.groupChanges?.add ?? []) : user.groups
  const isGiven = (name: string): boolean => given.some((group) => group.toLowerCase() === name.toLowerCase())
  const timed = (user.timedGroups ?? []).filter(({ name }) => isGiven(name))
  return [
    ...(account === undefined ? [] : [{ kind: 'user' as const, expires: timeOf(account) }]),
    ...timed.map(({ name, expiry }) => ({ kind: 'group' as const, group: name, expires: timeOf(expiry) })),
  ]
}

/**
 * Refuses an expiry date that the requester chose if the same workflow has given all of the access for longer, since
 * nothing would change. Other dates may be earlier: the later one counts.
 */
async function requireLaterEnd(
  ends: readonly AccessEnd[],
  { target, login }: { readonly target: string; readonly login: string },
  { workflow, accessEnds: chosen }: RunHead,
  grants: GrantAccess,
): Promise<void> {
  if (chosen === undefined || ends.length === 0) return
  if (!ends.every(({ expires }) => 'at' in expires && expires.at.getTime() === chosen.getTime())) return
  const present = await grants.through(workflow, login)
  const longer = ends.map(({ kind, group = login }) =>
    present.find(
      (grant) =>
        grant.target === target && grant.kind === kind && sameLogin(grant.name, group) && grant.expires > chosen,
    ),
  )
  const [first] = longer
  if (first !== undefined && !longer.includes(undefined)) throw lastsLonger(first, chosen)
}

function grantForTime(ends: readonly AccessEnd[], target: string, subject: string, effects: StepEffects): void {
  for (const { kind, group = subject, expires } of ends) effects.grant({ target, subject, kind, name: group, expires })
}

/** The new login at the target; undefined if it does not change there. */
async function newLogin(
  user: WorkflowUser,
  present: TargetUser,
  mapping: Mapping | undefined,
): Promise<string | undefined> {
  const { newUserID } = user
  if (newUserID === undefined) return undefined
  const renamed = mapping === undefined ? newUserID : (await targetUser({ ...user, userID: newUserID }, mapping)).userID
  return renamed === present.userID ? undefined : renamed
}

/** All attributes of the user, and those that the request removed. */
function ownNames({ attributes, cleared = [] }: TargetUser): string[] {
  const gone = cleared.filter((name) => !attributes.has(name) && name !== userIdName)
  return [...attributes.names(), ...gone]
}

interface PasswordWrite {
  /** The account's owners. A preview has none. */
  owners(): Promise<readonly Identity[]>
  readonly user: WorkflowUser
  /** The login at the target. */
  readonly login: string
  readonly request: TargetRequest
  readonly effects: StepEffects
}

/** Sets the password once at each target. Ends the sessions of the account's owner. */
async function setPassword(target: Target, name: string, write: PasswordWrite): Promise<void> {
  const { user, login, request, effects } = write
  const { password, passwordTargets = [] } = user
  if (password === undefined || passwordTargets.includes(name)) return
  if (!hasPasswords(target)) throw new GatewayError('NOT_SUPPORTED', `target "${name}" cannot store passwords`)
  user.passwordTargets = [...passwordTargets, name]
  // Before the password is set: if the directory doesn't answer, the step fails with nothing set, and is tried again.
  const owners = await write.owners()
  const holder = { userID: login, attributes: user.attributes, groups: user.groups }
  const change = { subject: 'attribute', action: 'replace', attribute: 'password' } as const
  const begun = await effects.beginPassword({ target: name, logins: [...new Set([login, user.userID])], owners })
  try {
    await auditedCall(
      request,
      () => [change],
      (audited) => target.setUserPassword(holder, password, audited),
    )
  } catch (thrown) {
    const { isRefusal, code } = asGatewayError(thrown)
    if (isRefusal || code === 'TARGET_FAILED') await begun.refused()
    throw thrown
  }
  begun.written()
}

interface ApplyOptions {
  /** The attributes that may change; those that the user does not have are cleared, unless addOnly. */
  readonly attributes: readonly string[]
  readonly addOnly: boolean
  /** The version that the caller read to compute the change; the change is valid for that version only. */
  readonly expectedVersion: string | undefined
  /** The group that the user joins or leaves, as it was read. */
  readonly expectedGroup: NamedGroup | undefined
  /** The new login of the user. */
  readonly newUserID: string | undefined
}

/** How often the target is read again because another writer changed the user meanwhile. */
const maxAttempts = 3

/**
 * Reads, compares, and writes only the differences, so that repeating it does nothing; returns the resulting login. A
 * user that was changed or deleted between reading and writing is read again, unless the change is bound to a version.
 * A concurrently created user is a conflict: one user must never pass for another.
 */
async function applyUser(
  target: Target,
  user: TargetUser,
  given: ApplyOptions,
  request: TargetRequest,
): Promise<string> {
  // Such a target has no version to compare: only whether the user exists.
  const options = given.expectedVersion === anyVersion ? { ...given, expectedVersion: undefined } : given
  const { newUserID, expectedVersion, expectedGroup } = options
  const attributes = user.attributes.pick(options.attributes)
  const isBound = target.keepsVersions === true && expectedVersion !== undefined && newUserID === undefined
  if (isBound && expectedVersion === noVersion) {
    // The caller has just looked, and the create itself detects whether that is still true.
    await create(target, { userID: user.userID, attributes, groups: wantedGroups(user, []) ?? [] }, options, request)
    return user.userID
  }
  if (isBound && target.auditsWithin === true) {
    // Such a target compares the user, the version and the group when it writes, and audits what it changes, so nothing
    // is read before.
    const keepGroups = user.keepGroups && wantedGroups(user, []) === undefined
    if (keepGroups || (!user.keepGroups && expectedGroup !== undefined)) {
      const wanted = { userID: user.userID, attributes, groups: keepGroups ? [] : user.groups }
      try {
        await write(target, wanted, { ...options, keepGroups }, request)
        return user.userID
      } catch (error) {
        if (!isLostRace(error, options)) throw error
      }
    }
  }
  for (let attempt = 1; ; attempt++) {
    const { found, userID } = await find(target, user.userID, options, request)
    checkVersion(found, given.expectedVersion)
    const groups = wantedGroups(user, found?.groups ?? [])
    if (found === undefined) {
      await create(target, { userID, attributes, groups: groups ?? [] }, options, request)
      return userID
    }
    try {
      await sync(target, found, { userID, attributes, groups: groups ?? found.groups }, user, options, request)
      return newUserID ?? userID
    } catch (error) {
      if (attempt >= maxAttempts || !isLostRace(error, options)) throw error
    }
  }
}

/** By the present login, or by the new one, which an earlier attempt may have set. */
async function find(
  target: Target,
  userID: string,
  { attributes, newUserID = userID }: ApplyOptions,
  request: TargetRequest,
): Promise<{ readonly found: User | undefined; readonly userID: string }> {
  const found = await target.findUser(userID, attributes, request)
  if (found !== undefined) return { found, userID }
  const renamed = sameLogin(userID, newUserID) ? undefined : await target.findUser(newUserID, attributes, request)
  return { found: renamed, userID: newUserID }
}

function create(target: Target, user: User, options: ApplyOptions, request: TargetRequest): Promise<void> {
  return auditedCall(
    request,
    () => userChanges(undefined, user, { attributes: user.attributes.names() }),
    (audited) => target.createUser(user, options.attributes, audited),
  )
}

async function sync(
  target: Target,
  found: User,
  wanted: User,
  { keepGroups, groupChanges }: TargetUser,
  options: ApplyOptions,
  request: TargetRequest,
): Promise<void> {
  const { addOnly, attributes, expectedGroup } = options
  const newUserID = options.newUserID === found.userID ? undefined : options.newUserID
  const renaming = newUserID === undefined ? [] : [entryChange('entry', 'replace', 'userID', newUserID)]
  const changes = [...renaming, ...userChanges(found, wanted, { attributes, addOnly, ordered: true, foldGroups: true })]
  // A user who is not in a group under its old name may be in it under its new one, which only the target knows.
  if (changes.length === 0 && expectedGroup === undefined) return
  if (newUserID !== undefined && target.renamesUsers !== true) {
    throw new GatewayError('NOT_SUPPORTED', `"${found.userID}" cannot have another login in its target`)
  }
  const fromPresent = keepGroups && groupChanges !== undefined
  // Memberships that were computed from this read are valid only while no one else writes.
  const expectedVersion = options.expectedVersion ?? (fromPresent ? found.version : undefined)
  await auditedCall(
    request,
    () => changes,
    (audited) =>
      write(
        target,
        wanted,
        { ...options, expectedVersion, newUserID, keepGroups: keepGroups && !fromPresent },
        audited,
      ),
  )
}

function write(
  target: Target,
  user: User,
  {
    addOnly,
    attributes,
    keepGroups,
    expectedVersion,
    expectedGroup,
    newUserID,
  }: ApplyOptions & { keepGroups: boolean },
  request: TargetRequest,
): Promise<void> {
  const bound = {
    ...(expectedVersion === undefined ? {} : { expectedVersion }),
    ...(expectedGroup === undefined ? {} : { expectedGroup }),
    ...(newUserID === undefined ? {} : { newUserID }),
  }
  return target.syncUser(user, { addOnly, attributes, keepGroups, ...bound }, request)
}

/** Whether to read the user and try again. A change that is bound to a version does so only after NOT_FOUND. */
function isLostRace(error: unknown, { expectedVersion }: ApplyOptions): boolean {
  if (!(error instanceof GatewayError)) return false
  return error.code === 'NOT_FOUND' || (error.code === 'VERSION_MISMATCH' && expectedVersion === undefined)
}
