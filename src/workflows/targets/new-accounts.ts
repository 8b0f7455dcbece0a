import type { SyncOptions } from '#identity/account-store.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { accountExists, accountNamed, loginSpellings } from '#sdk/target/new-account.ts'
import {
  type AccountOrigin,
  hasLookups,
  hasPasswords,
  type PasswordTarget,
  type Target,
  type TargetRequest,
} from '#sdk/target/target.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

type AccountWrites = Pick<Target, 'createUser' | 'syncUser' | 'deleteUser'> &
  Partial<Pick<PasswordTarget, 'setUserPassword'>>

/**
 * The writes of the target, guarded for runs that may only create accounts: no task can change an account that the run did
 * not create, and the run gets ACCOUNT_EXISTS. For other runs they are the target's own.
 */
export function guardedWrites(target: Target): AccountWrites {
  const { createUser, syncUser, deleteUser } = target
  const writes: AccountWrites = {
    async createUser(user, attributes, request, options) {
      const origin = request.newAccount
      if (origin === undefined) return await createUser(user, attributes, request, options)
      const { userID } = user
      const earlier = origin.own(userID) === undefined ? await origin.earlierAttempt(userID) : 'yes'
      if (earlier === 'no') await requireAbsent(target, user, attributes, request, origin)
      try {
        await createUser(user, attributes, request, { mustBeNew: earlier !== 'maybe' })
      } catch (error) {
        if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
        throw accountExists(accountNamed(userID), origin.created, error)
      }
      origin.noteCreated(userID, (await target.findUser(userID, [], request))?.id)
    },
    async syncUser(user, options, request) {
      const origin = request.newAccount
      if (origin !== undefined) await requireOwn(target, user, request, origin, options)
      await syncUser(user, options, request)
    },
    async deleteUser(user, request, options) {
      const origin = request.newAccount
      if (origin !== undefined) await requireOwn(target, user, request, origin)
      await deleteUser(user, request, options)
      origin?.noteDeleted(user.userID)
    },
  }
  if (!hasPasswords(target)) return writes
  const { setUserPassword } = target
  return {
    ...writes,
    async setUserPassword(user, password, request) {
      const origin = request.newAccount
      if (origin !== undefined) await requireOwn(target, user, request, origin)
      await setUserPassword(user, password, request)
    },
  }
}

/** No account has the login, as written or in common equivalent forms, or a unique value. */
async function requireAbsent(
  target: Target,
  user: User,
  attributes: readonly string[],
  request: TargetRequest,
  { created, unique }: AccountOrigin,
): Promise<void> {
  const { userID } = user
  for (const login of loginSpellings(userID)) {
    const found = await target.findUser(login, [], request)
    if (found !== undefined) throw accountExists(accountNamed(found.userID), created)
  }
  if (!hasLookups(target)) return
  for (const { value } of unique.filter((one) => !sameLogin(one.value, userID))) {
    for (const attribute of attributes) {
      if (!user.attributes.values(attribute).some((held) => sameLogin(held, value))) continue
      const filter = { kind: 'equal', attribute, value } as const
      const page = await target
        .searchUsers({ filter, offset: 0, limit: 1, attributes: [attribute] })
        .catch((err: unknown) => {
          // The directory was searched before; a target that can't search by this attribute is skipped.
          if (!(err instanceof GatewayError) || isPassing(err)) throw err
          request.log.warn('a target cannot be searched for a unique value', { attribute, err })
          return { items: [] }
        })
      if (page.items.length > 0) throw accountExists(`with this ${attribute}`, created)
    }
  }
}

const isPassing = ({ code }: GatewayError): boolean => code === 'TARGET_UNREACHABLE' || code === 'TARGET_TIMEOUT'

/** The run created the account, according to the target and the audit. */
async function requireOwn(
  target: Target,
  user: User,
  request: TargetRequest,
  origin: AccountOrigin,
  sync?: SyncOptions,
): Promise<void> {
  const { userID } = user
  const own = origin.own(userID)
  const earlier = own === undefined ? await origin.earlierAttempt(userID) : 'yes'
  if (earlier === 'yes' && own?.id === undefined) return
  const found = await target.findUser(userID, sync?.attributes ?? [], request)
  // The account does not exist: the target reports that.
  if (found === undefined) return
  if (earlier === 'yes' && (found.id === undefined || found.id === own?.id)) return
  if (earlier === 'maybe' && (sync === undefined || isAsAsked(found, user, sync))) return
  throw accountExists(accountNamed(found.userID), origin.created)
}

/** As an interrupted attempt may have left it: with these values, and at most missing memberships. */
function isAsAsked(found: User, wanted: User, { attributes }: SyncOptions): boolean {
  const folded = (values: readonly string[]): string =>
    JSON.stringify(values.map((value) => value.normalize('NFC').trim().toLowerCase()).toSorted())
  const isSame = (name: string): boolean =>
    folded(found.attributes.values(name)) === folded(wanted.attributes.values(name))
  return attributes.every(isSame) && found.groups.every((name) => wanted.groups.some((group) => sameLogin(group, name)))
}
