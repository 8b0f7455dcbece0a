import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { UserRef } from '#identity/identity.ts'
import { loginProblem } from '#identity/login-name.ts'
import { anonymousLogin } from '#sdk/contract/anonymous-login.ts'
import { sameLogin } from '#sdk/workflow/workflow-user.ts'

const everywhere = new Dn([])

/** A login as the directory knows it. */
export type FoundLogin =
  | {
      readonly kind: 'entry'
      readonly entry: DirectoryEntry
      /** As the directory spells it. */
      readonly login: string
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'several' }

/** Looks for the login in the attribute, and in `uid` if no entry has it there. */
export async function findLogin(
  login: string,
  directory: Pick<Directory, 'search'>,
  attribute = 'uid',
): Promise<FoundLogin> {
  for (const name of sameLogin(attribute, 'uid') ? ['uid'] : [attribute, 'uid']) {
    const filter = { kind: 'equal', attribute: name, value: login } as const
    const search = { base: everywhere, scope: 'sub', filter, limit: 2, everyTree: true } as const
    const [entry, another] = await directory.search(search)
    if (another !== undefined) return { kind: 'several' }
    if (entry !== undefined) return { kind: 'entry', entry, login: entry.attributes.first(name) ?? login }
  }
  return { kind: 'none' }
}

/**
 * Whether the login is the caller's own. If the directory has an entry with that login, it must be the caller's: an
 * outside issuer may give any login to anyone. If it has none, the login is the caller's if it is the name that the
 * caller was authenticated by.
 */
export function isOwnLogin(found: FoundLogin, login: string, caller: Pick<UserRef, 'identity' | 'login'>): boolean {
  if (found.kind === 'entry') return found.entry.identity === caller.identity
  return found.kind === 'none' && sameLogin(login, caller.login)
}

/** Whether the caller's login is their own, and not that of another directory user. */
export const hasOwnLogin = async (
  caller: Pick<UserRef, 'identity' | 'login'>,
  directory: Pick<Directory, 'search'>,
  attribute?: string,
): Promise<boolean> => isOwnLogin(await findLogin(caller.login, directory, attribute), caller.login, caller)

/** The error for callers whose login belongs to another user. */
export const anothersLoginText =
  'Your login belongs to another user here. Sign in another way, or ask an administrator to link your account.'

/** The login of callers who did not log in: a user with it would pass for the requester of all their requests. */
export const isAnonymousLogin = (login: string): boolean => login.toLowerCase() === anonymousLogin

/** Shown as it is compared: no invisible characters, no spaces at its ends. */
export const isPlainText = (text: string): boolean => text.trim() === text && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)

/** Whether a new user may have the login. */
export const isLoginName = (login: string): boolean => loginProblem(login) === undefined && !isAnonymousLogin(login)
