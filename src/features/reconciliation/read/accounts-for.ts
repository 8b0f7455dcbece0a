import type { AccountName } from '#features/reconciliation/plan/difference.ts'
import type { User } from '#identity/user.ts'
import { accountsHaving, findAccount } from './people-source.ts'
import { type ComparedSystems, isExact, ruleName } from './systems.ts'

interface FoundAccounts {
  /** None, the account of the person, or several that the rule can't decide between. */
  readonly accounts: readonly User[]
  /** What found them, such as `link` or `mail`; `link` with none if a decision says so. Absent if only the login is the same. */
  readonly rule?: string | undefined
  /** The login, or the linked id, that was looked for. */
  readonly login: string
}

/**
 * The accounts that the target has for a person now: the linked one, otherwise those of the first rule that finds any. A
 * person who is not in scope, or not in the source, has the one with the same login.
 */
export async function accountsFor(systems: ComparedSystems, name: AccountName): Promise<FoundAccounts> {
  const { config, mapping, source, target } = systems
  const { kind } = config.source
  // Ids of the directory are not those of another source.
  const person = await source.find(kind === 'directory' ? name : { login: name.login })
  if (person === undefined) return { accounts: await accountsHaving(target, 'userID', name.login), login: name.login }
  const { entry, keys } = await mapping.person(person)
  const login = entry.wanted?.login ?? person.userID
  const [link] = await systems.links([entry.name.id ?? entry.name.login])
  if (link !== undefined) {
    const { target: id } = link
    if (id === undefined) return { accounts: [], rule: 'link', login }
    const found = await findAccount(target, { id, login: id })
    return found === undefined ? { accounts: [], login: id } : { accounts: [found], rule: 'link', login: id }
  }
  for (const [i, rule] of config.correlation.entries()) {
    const attribute = rule.kind === 'login' ? 'userID' : rule.target
    const values = keys[i] ?? []
    const found = await Promise.all(values.map((value) => accountsHaving(target, attribute, value, isExact(rule))))
    const accounts = new Map(found.flat().map((account) => [account.id ?? account.userID, account]))
    if (accounts.size > 0) return { accounts: [...accounts.values()], rule: ruleName(rule), login }
  }
  return { accounts: await accountsHaving(target, 'userID', login), login }
}
