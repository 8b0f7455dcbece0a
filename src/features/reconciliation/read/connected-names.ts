import { neighborsOf } from './compare-one.ts'
import { findAccount } from './people-source.ts'
import type { ComparedSystems } from './systems.ts'

/** People of the source and accounts of the target, each by id or login. */
interface DecidedNames {
  readonly people: readonly string[]
  readonly accounts: readonly string[]
}

/**
 * The ids and logins of everyone whom a decision about them concerns, as both systems are now: all who have one of the
 * names, and all whom links, rules and logins connect with them.
 */
export async function connectedNames(systems: ComparedSystems, decided: DecidedNames): Promise<readonly string[]> {
  const { source, target } = systems
  const links = [...(await systems.links(decided.people)), ...(await systems.linksByTarget(decided.accounts))]
  const people = new Set([...decided.people, ...links.map((link) => link.source)])
  const accounts = new Set([...decided.accounts, ...links.flatMap((link) => link.target ?? [])])
  const foundPeople = [...people].flatMap((name) => [
    ...(source.hasIds ? [source.find({ id: name, login: name })] : []),
    source.find({ login: name }),
  ])
  const foundAccounts = [...accounts].flatMap((name) => [
    ...(target.userIdIsLogin ? [] : [findAccount(target, { id: name, login: name })]),
    findAccount(target, { login: name }),
  ])
  const near = await neighborsOf(
    systems,
    (await Promise.all(foundPeople)).filter((one) => one !== undefined),
    (await Promise.all(foundAccounts)).filter((one) => one !== undefined),
  )
  const names = [
    ...Array.from(near.people.values(), ({ entry }) => [entry.name.id, entry.name.login, entry.wanted?.login]),
    ...Array.from(near.accounts.values(), ({ entry }) => [entry.name.id, entry.name.login]),
  ]
  return [...people, ...accounts, ...names.flat().filter((name) => name !== undefined)]
}
