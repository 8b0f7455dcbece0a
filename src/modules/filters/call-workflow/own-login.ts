import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import type { Subject } from '#identity/subject.ts'
import { sameLogin } from '#sdk/workflow-user.ts'

const everywhere = new Dn([])

/** A login as the directory knows it. */
export type FoundLogin =
  | {
      readonly kind: 'entry'
      readonly entry: DirectoryEntry /** As the directory spells it. */
      readonly login: string
    }
  | { readonly kind: 'none' }
  | { readonly kind: 'several' }

export async function findLogin(login: string, directory: Pick<Directory, 'search'>): Promise<FoundLogin> {
  const filter = { kind: 'equal', attribute: 'uid', value: login } as const
  const [entry, another] = await directory.search({ base: everywhere, scope: 'sub', filter, limit: 2 })
  if (entry === undefined) return { kind: 'none' }
  if (another !== undefined) return { kind: 'several' }
  return { kind: 'entry', entry, login: entry.attributes.first('uid') ?? login }
}

/**
 * Whether the login is the caller's own. Where the directory has an entry of that login, it must be the caller's: an
 * outside issuer may call anyone by any login. Where it has none, the login is the caller's if it is the name that the
 * caller was authenticated by.
 */
export function isOwnLogin(found: FoundLogin, login: string, { identity, uid }: Subject): boolean {
  if (found.kind === 'entry') return found.entry.identity === identity
  return found.kind === 'none' && sameLogin(login, uid)
}
