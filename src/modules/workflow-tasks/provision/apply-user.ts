import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { auditedCall } from '#sdk/audited-call.ts'
import type { Target, TargetRequest } from '#sdk/target.ts'
import type { TargetUser } from '#sdk/target-user.ts'
import { wantedGroups } from '#sdk/workflow-user.ts'
import { newUserChanges, userChanges } from './user-changes.ts'

export interface ApplyOptions {
  /** The attributes that may be touched; those among them that the user does not have are cleared, unless addOnly. */
  readonly attributes: readonly string[]
  readonly addOnly: boolean
}

/** How often the target is read again because someone else changed the user meanwhile. */
const maxAttempts = 3

/**
 * Reads, compares, and writes only what differs, so that doing it again does nothing. A user that appeared or went
 * between reading and writing is read again; a conflict with another user is thrown.
 */
export async function applyUser(
  target: Target,
  user: TargetUser,
  options: ApplyOptions,
  request: TargetRequest,
): Promise<void> {
  const { userID } = user
  const attributes = user.attributes.pick(options.attributes)
  let conflict: unknown
  for (let attempt = 1; ; attempt++) {
    const found = await target.findUser(userID, options.attributes, request)
    if (found === undefined && conflict !== undefined) throw conflict
    const groups = wantedGroups(user, found?.groups ?? [])
    try {
      if (found === undefined) await create(target, { userID, attributes, groups: groups ?? [] }, options, request)
      else await sync(target, found, { userID, attributes, groups: groups ?? found.groups }, user, options, request)
      return
    } catch (error) {
      if (attempt >= maxAttempts || !isLostRace(error, found)) throw error
      conflict = found === undefined ? error : undefined
    }
  }
}

function create(target: Target, user: User, options: ApplyOptions, request: TargetRequest): Promise<void> {
  return auditedCall(
    request,
    () => newUserChanges(user),
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
  const changes = userChanges(found, wanted, options)
  if (changes.length === 0) return
  const fromPresent = keepGroups && groupChanges !== undefined
  await auditedCall(
    request,
    () => changes,
    (audited) =>
      target.syncUser(
        wanted,
        {
          addOnly: options.addOnly,
          attributes: options.attributes,
          keepGroups: keepGroups && !fromPresent,
          // The memberships were computed from those read, so they hold only while nobody else writes.
          ...(fromPresent && found.version !== undefined ? { expectedVersion: found.version } : {}),
        },
        audited,
      ),
  )
}

function isLostRace(error: unknown, found: User | undefined): boolean {
  if (!(error instanceof GatewayError)) return false
  if (found === undefined) return error.code === 'CONFLICT'
  return error.code === 'NOT_FOUND' || error.code === 'VERSION_MISMATCH'
}
