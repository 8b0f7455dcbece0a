import type { CorrelationRule } from '#config/configuration/configuration.ts'
import type { Account, Person } from '#features/reconciliation/plan/compared-entry.ts'
import { decideExtra, decidePerson } from '#features/reconciliation/plan/decide.ts'
import type { AccountName, Difference } from '#features/reconciliation/plan/difference.ts'
import type { User } from '#identity/user.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { ComparisonFile, rowKey } from './comparison-file.ts'
import { loginIndex } from './login-index.ts'
import { withMissingGroups } from './missing-groups.ts'
import { accountsHaving, findAccount, nameOf } from './people-source.ts'
import { type ComparedSystems, isExact, type Keyed, policyOf, type WantedUser } from './systems.ts'

const width = 8
/** People and accounts that may have to do with each other. More are not a matter of one person. */
const mostNeighbors = 200

/** Accounts of which one must be readable. */
const mostTried = 3

/** A person of the source, an account of the target, or both. */
export interface OnePair {
  readonly source?: AccountName | undefined
  readonly target?: AccountName | undefined
}

/** A difference as it is now, with what the same read says about the person. */
export interface ComparedOne {
  readonly difference: Difference
  /** What the workflow gets; absent if nothing is to be done, or for an account of no person. */
  readonly user?: (WantedUser & { readonly cleared: readonly string[] }) | undefined
}

/**
 * The difference of one person, or of an account that no person has, as both systems are now. Undefined if there is none,
 * or if neither exists or is in scope any more. Reads only the people and accounts that correlation can connect with them.
 */
export async function compareOne(systems: ComparedSystems, pair: OnePair): Promise<ComparedOne | undefined> {
  const found = await compareAlone(systems, pair)
  return found && { ...found, difference: await withMissingGroups(systems.target, found.difference) }
}

/** The same without what the target's groups say. */
export async function compareAlone(
  systems: ComparedSystems,
  { source, target }: OnePair,
): Promise<ComparedOne | undefined> {
  const { config, target: accounts } = systems
  const person = source && (await systems.source.find(source))
  const account = target && (await findAccount(accounts, target))
  const doubt = source === undefined && account !== undefined ? await unmappedPeople(systems) : noDoubt
  const near = await neighborsOf(systems, person === undefined ? doubt.people : [person], [account ?? []].flat())
  const file = new ComparisonFile(config.correlation, !accounts.userIdIsLogin)
  try {
    await file.addPeople([...near.people.values()])
    await file.addAccounts([...near.accounts.values()])
    for await (const _ of file.correlate(systems)) systems.signal?.throwIfAborted()
    const policy = policyOf(systems)
    if (source !== undefined) {
      const row = file.people('', mostNeighbors).find(({ key }) => key === near.person)
      const difference = row?.isCompared === true ? decidePerson(row.key, row.person, row.match, policy) : undefined
      if (difference === undefined || difference.action === 'report' || person === undefined) {
        return difference && { difference }
      }
      return { difference, user: await systems.mapping.user(person) }
    }
    const row = file.spares('', mostNeighbors).find(({ key }) => key === near.account)
    const extra =
      row?.isInvolved === false ? decideExtra(row.key, row.account, policy, file.unmapped() + doubt.more) : undefined
    return extra && { difference: extra }
  } finally {
    file.close()
  }
}

/** Whether both systems answer for at least one of some accounts, as they must for any that is compared. */
export async function answers(systems: ComparedSystems): Promise<boolean> {
  const { source, target, signal } = systems
  try {
    await source.count()
    const { items } = await target.searchUsers({ offset: 0, limit: mostTried, attributes: [] })
    const tried = items.map((account) => compareOne(systems, { target: nameOf(account, target) }))
    await (tried.length === 0 ? undefined : Promise.any(tried))
    return true
  } catch {
    signal?.throwIfAborted()
    return false
  }
}

/** More people who could not be mapped are not looked at one by one. */
const mostUnmapped = 20
const noDoubt = { people: [], more: 0 }

/**
 * People who may have any account, since no one knows which login they get: with `people`, their own accounts tell. A login
 * that is copied finds them without being mapped.
 */
async function unmappedPeople(
  systems: ComparedSystems,
): Promise<{ readonly people: readonly User[]; readonly more: number }> {
  if (systems.mapping.loginSource !== undefined) return noDoubt
  const index = await loginIndex(systems)
  const more = index.unmapped()
  if (more > mostUnmapped) return { people: [], more }
  const people = await inParallel(index.unmappedPeople(mostUnmapped), width, (name) => systems.source.find(name))
  return { people: people.filter((one) => one !== undefined), more: 0 }
}

interface Neighbors {
  readonly people: ReadonlyMap<string, Keyed<Person>>
  readonly accounts: ReadonlyMap<string, Keyed<Account>>
  /** The keys of the first that were given. */
  readonly person: string | undefined
  readonly account: string | undefined
}

/** Everyone who can be connected with them, directly or through others. */
export async function neighborsOf(
  systems: ComparedSystems,
  given: readonly User[],
  owned: readonly User[],
): Promise<Neighbors> {
  const { mapping } = systems
  const people = new Map<string, Keyed<Person>>()
  const accounts = new Map<string, Keyed<Account>>()
  const mapped = (found: readonly User[]) => inParallel(found, width, (user) => mapping.person(user))
  const read = (found: readonly User[]) => found.map((user) => mapping.account(user))
  let newPeople = addTo(people, await mapped(given))
  let newAccounts = addTo(accounts, read(owned))
  const [person] = people.keys()
  const [account] = accounts.keys()
  while (newPeople.length + newAccounts.length > 0) {
    if (people.size + accounts.size > mostNeighbors) throw tooMany()
    const inScope = newPeople.filter((one) => one.inScope)
    const foundAccounts = await inParallel(inScope, width, (one) => accountsOf(systems, one))
    const foundPeople = await inParallel(newAccounts, width, (one) => peopleOf(systems, one))
    newAccounts = addTo(accounts, read(foundAccounts.flat()))
    newPeople = addTo(people, await mapped(foundPeople.flat()))
  }
  return { people, accounts, person, account }
}

/** Returns those that are new. */
function addTo<T extends Person | Account>(known: Map<string, Keyed<T>>, found: readonly Keyed<T>[]): Keyed<T>[] {
  return found.filter((one) => {
    const key = rowKey(one.entry.name)
    const isNew = !known.has(key)
    if (isNew) known.set(key, one)
    return isNew
  })
}

function tooMany(): GatewayError {
  const text = `More than ${mostNeighbors} people and accounts may belong together. Make the rules of the correlation narrower.`
  return new GatewayError('UNPROCESSABLE', text, { publicText: text })
}

/** The accounts that a link, a rule or the login connects with a person. */
async function accountsOf(systems: ComparedSystems, { entry, keys }: Keyed<Person>): Promise<User[]> {
  const { config, target } = systems
  const { name, wanted } = entry
  const linked = await systems.links([name.id ?? name.login])
  const asked = [
    ...linked.map(({ target: id }) => async () => {
      const found = id === undefined ? undefined : await findAccount(target, { id, login: id })
      return found === undefined ? [] : [found]
    }),
    ...config.correlation.flatMap((rule, i) =>
      (keys[i] ?? []).map((value) => () => {
        return accountsHaving(target, rule.kind === 'login' ? 'userID' : rule.target, value, isExact(rule))
      }),
    ),
    ...(wanted === undefined ? [] : [() => accountsHaving(target, 'userID', wanted.login)]),
  ]
  return (await inParallel(asked, width, (ask) => ask())).flat()
}

/** The people that a link, a rule or the login connects with an account. */
async function peopleOf(systems: ComparedSystems, { entry, keys }: Keyed<Account>): Promise<User[]> {
  const { config } = systems
  const linked = await systems.linksByTarget([entry.name.id ?? entry.name.login])
  const asked = [
    ...linked.map((link) => () => personNamed(systems, link.source)),
    ...config.correlation.flatMap((rule, i) =>
      (keys[i] ?? []).map((value) => () => peopleHaving(systems, rule, value)),
    ),
    () => peopleHaving(systems, { kind: 'login' }, entry.login),
  ]
  return (await inParallel(asked, width, (ask) => ask())).flat()
}

async function personNamed({ source }: ComparedSystems, name: string): Promise<readonly User[]> {
  const found = await source.find(source.hasIds ? { id: name, login: name } : { login: name })
  return found === undefined ? [] : [found]
}

async function peopleHaving(systems: ComparedSystems, rule: CorrelationRule, value: string): Promise<readonly User[]> {
  const { source, mapping } = systems
  if (rule.kind === 'attribute') return source.having(rule.source, value, isExact(rule))
  if (rule.kind === 'id') return personNamed(systems, value)
  if (mapping.loginSource !== undefined) return source.having(mapping.loginSource, value)
  const names = (await loginIndex(systems)).peopleWithLogin(value)
  return (await inParallel(names, width, (name) => source.find(name))).filter((one) => one !== undefined)
}
