import type { PersonNames } from '#features/portal/contract/person-names.ts'
import type { Directory, DirectoryEntry } from '#identity/directory.ts'
import { Dn } from '#identity/dn.ts'
import { type Identity, isLoginOnly } from '#identity/identity.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Logger } from '#kernel/logger.ts'
import { isAnonymousLogin } from '#sdk/login/own-login.ts'
import type { Approval, ApprovalItem } from '#workflows/record/approval.ts'
import type { Run } from '#workflows/record/run.ts'

/** A user of an answer. Without an identity, the user who has the login now is meant. */
export interface NamedUser {
  readonly login: string
  readonly identity?: Identity | undefined
}

export type LookUpNames = (users: readonly NamedUser[]) => Promise<PersonNames>

interface NameSource {
  readonly directory: Pick<Directory, 'search'>
  readonly loginAttribute: string
  readonly nameAttribute: string
  readonly log: Logger
}

const everywhere = Dn.parse('')
/** Logins per search. */
const chunk = 100
/** The most logins of an answer that are looked up; others are shown as logins. */
const maxNamed = 1_000
/** An answer waits no longer for names. */
const maxMillis = 2_000

/**
 * Looks up display names, with a few searches for any number of users. A user who is not in the directory has none, nor
 * has a login that belongs to another user by now. No name is worth a failure: without the directory there are none.
 */
export const nameLookup =
  (source: NameSource): LookUpNames =>
  async (users) => {
    const wanted = Map.groupBy(
      users.filter(({ login }) => login !== '' && !isAnonymousLogin(login)),
      ({ login }) => login.toLowerCase(),
    )
    if (wanted.size === 0) return {}
    let timer: NodeJS.Timeout | undefined
    try {
      const found = await Promise.race([
        entriesByLogin([...wanted.keys()].slice(0, maxNamed), source),
        new Promise<never>((_, reject) => {
          timer = setTimeout(
            () => reject(new GatewayError('TARGET_TIMEOUT', 'the directory did not answer in time')),
            maxMillis,
          )
        }),
      ])
      const names: [string, string][] = []
      for (const [key, same] of wanted) {
        const [one, ...others] = new Set(same.map((user) => entryFor(user, found.get(key) ?? [])))
        const name = others.length > 0 ? undefined : one?.attributes.first(source.nameAttribute)
        if (name !== undefined && name.trim() !== '')
          names.push(...same.map(({ login }) => [login, name] as [string, string]))
      }
      return Object.fromEntries(names)
    } catch (err) {
      source.log.warn('display names could not be looked up, so logins are shown', { err })
      return {}
    } finally {
      clearTimeout(timer)
    }
  }

async function entriesByLogin(
  logins: readonly string[],
  { directory, loginAttribute, nameAttribute }: NameSource,
): Promise<ReadonlyMap<string, readonly DirectoryEntry[]>> {
  const found = new Map<string, DirectoryEntry[]>()
  for (let done = 0; done < logins.length; done += chunk) {
    const filters = logins
      .slice(done, done + chunk)
      .map((value) => ({ kind: 'equal', attribute: loginAttribute, value }) as const)
    const entries = await directory.search({
      base: everywhere,
      scope: 'sub',
      filter: { kind: 'or', filters },
      limit: 2 * chunk,
      attributes: [loginAttribute, nameAttribute],
    })
    for (const entry of entries) {
      for (const login of entry.attributes.values(loginAttribute)) {
        const key = login.toLowerCase()
        found.set(key, [...(found.get(key) ?? []), entry])
      }
    }
  }
  return found
}

/** Undefined if no entry, or more than one, can be the user's. */
function entryFor({ identity }: NamedUser, entries: readonly DirectoryEntry[]): DirectoryEntry | undefined {
  if (identity !== undefined && !isLoginOnly(identity)) return entries.find((entry) => entry.identity === identity)
  return entries.length === 1 ? entries[0] : undefined
}

/** Requester, caller, subject and the user who cancelled it. A subject without an identity may be a new user. */
export const usersOfRun = ({ head: { requester, caller, subject, who }, cancel }: Run): readonly NamedUser[] => [
  { login: requester, identity: who.requester },
  ...(caller === undefined ? [] : [{ login: caller, identity: who.caller }]),
  ...(who.subject === undefined ? [] : [{ login: subject, identity: who.subject }]),
  ...(cancel === undefined ? [] : [{ login: cancel.by }]),
]

/** Requester, caller and subject. The subject of a registration is a new user, even if another one has the login. */
export const usersOfItem = (item: ApprovalItem): readonly NamedUser[] => [
  { login: item.run.requester, identity: item.run.who.requester },
  ...(item.run.caller === undefined ? [] : [{ login: item.run.caller, identity: item.run.who.caller }]),
  ...(item.newAccount === true ? [] : [{ login: item.run.subject, identity: item.run.who.subject }]),
]

/** The approvers, and who decided. */
export const approversOf = ({
  approvers,
  decision,
}: Pick<Approval, 'approvers' | 'decision'>): readonly NamedUser[] => [
  ...approvers,
  ...(decision?.by === undefined ? [] : [decision.by]),
  ...(decision?.onBehalfOf === undefined ? [] : [{ login: decision.onBehalfOf }]),
]
