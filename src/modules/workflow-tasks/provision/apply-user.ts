import { entryChange, userChanges } from '#identity/entry-changes.ts'
import type { User } from '#identity/user.ts'
import type { NamedGroup } from '#identity/user-directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import { checkVersion, type TargetUser } from '#modules/shared/tasks/target-user.ts'
import type { Target, TargetRequest } from '#sdk/target/target.ts'
import { noVersion } from '#sdk/workflow/workflow.ts'
import { sameLogin, wantedGroups } from '#sdk/workflow/workflow-user.ts'

export interface ApplyOptions {
  /** The attributes that may be touched; those among them that the user does not have are cleared, unless addOnly. */
  readonly attributes: readonly string[]
  readonly addOnly: boolean
  /** What the user was read at by whoever computed the change; it holds for that version only. */
  readonly expectedVersion: string | undefined
  /** The group that the user joins or leaves, as it was read. */
  readonly expectedGroup: NamedGroup | undefined
  /** The login the user is to have from now on. */
  readonly newUserID: string | undefined
}

/** How often the target is read again because someone else changed the user meanwhile. */
const maxAttempts = 3

/**
 * Reads, compares, and writes only what differs, so that doing it again does nothing; gives the login that the user then
 * has. A user that was changed or went between reading and writing is read again, unless the change holds for one version
 * only. A user that someone else made meanwhile is a conflict: nobody's user is taken for another's.
 */
export async function applyUser(
  target: Target,
  user: TargetUser,
  options: ApplyOptions,
  request: TargetRequest,
): Promise<string> {
  const { newUserID } = options
  const attributes = user.attributes.pick(options.attributes)
  if (target.keepsVersions === true && options.expectedVersion === noVersion && newUserID === undefined) {
    // Whoever computed the change has just looked, and creating finds out by itself whether that still holds.
    await create(target, { userID: user.userID, attributes, groups: wantedGroups(user, []) ?? [] }, options, request)
    return user.userID
  }
  for (let attempt = 1; ; attempt++) {
    const { found, userID } = await find(target, user.userID, options, request)
    checkVersion(found, options.expectedVersion)
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

/** By the present login, or by the new one, which an attempt before this one may have given. */
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
  // Whoever is not in a group by its old name may be in it by its new one, which only the target can tell.
  if (changes.length === 0 && expectedGroup === undefined) return
  if (newUserID !== undefined && target.renamesUsers !== true) {
    throw new GatewayError('NOT_SUPPORTED', `"${found.userID}" cannot have another login in its target`)
  }
  const fromPresent = keepGroups && groupChanges !== undefined
  // Memberships that were computed from those just read hold only while nobody else writes.
  const expectedVersion = options.expectedVersion ?? (fromPresent ? found.version : undefined)
  await auditedCall(
    request,
    () => changes,
    (audited) =>
      target.syncUser(
        wanted,
        {
          addOnly,
          attributes,
          keepGroups: keepGroups && !fromPresent,
          ...(expectedVersion === undefined ? {} : { expectedVersion }),
          ...(expectedGroup === undefined ? {} : { expectedGroup }),
          ...(newUserID === undefined ? {} : { newUserID }),
        },
        audited,
      ),
  )
}

/** Of a change that is bound to a version, only that the user went can be asked again, and is then told as it is. */
function isLostRace(error: unknown, { expectedVersion }: ApplyOptions): boolean {
  if (!(error instanceof GatewayError)) return false
  return error.code === 'NOT_FOUND' || (error.code === 'VERSION_MISMATCH' && expectedVersion === undefined)
}
