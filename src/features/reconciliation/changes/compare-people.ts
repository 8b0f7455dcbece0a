import type { AccountName, ComparisonPart, Difference } from '#features/reconciliation/plan/difference.ts'
import { compareOne } from '#features/reconciliation/read/compare-one.ts'
import { rowKey } from '#features/reconciliation/read/comparison-file.ts'
import { accountsHaving, findAccount, nameOf } from '#features/reconciliation/read/people-source.ts'
import { type ComparedSystems, isExact } from '#features/reconciliation/read/systems.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError, type GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { shownReason } from '#kernel/secret-values.ts'
import { isPassing } from '#workflows/runs/retry-policy.ts'

const width = 8

/** People per part: what was compared stays when a system stops answering. */
const partSize = 20

/** How many people were compared, and the rows that were found. */
interface Place {
  readonly next: number
  readonly keys: readonly string[]
}

/**
 * Compares the people of these logins as they are now, and continues behind `resumeAt`. Of someone who left the source or its
 * scope, the accounts are compared that a rule or the login still finds; others are found when everyone is compared.
 */
export async function* comparePeople(
  systems: ComparedSystems,
  logins: readonly string[],
  resumeAt: string | undefined,
): AsyncGenerator<ComparisonPart> {
  const start: Place = resumeAt === undefined ? { next: 0, keys: [] } : JSON.parse(resumeAt)
  const known = new Set(start.keys)
  for (let { next } = start; next < logins.length; ) {
    const part = logins.slice(next, next + partSize)
    next += part.length
    const found = await compareEach(systems, part)
    systems.signal?.throwIfAborted()
    const differences: Difference[] = []
    for (const one of found.flatMap((each) => each.differences)) {
      if (known.has(one.key)) continue
      known.add(one.key)
      differences.push(one)
    }
    const source = found.filter(({ isThere }) => isThere).length
    const agree = found.filter((each) => each.differences.length === 0).length
    const place: Place = { next, keys: [...known] }
    yield { differences, counts: { source, target: 0, agree }, resumeAt: JSON.stringify(place) }
  }
}

interface Compared {
  readonly isThere: boolean
  readonly differences: readonly Difference[]
}

/** What fails for one person alone, and will again, is a row. Throws what concerns everyone, or may pass. */
async function compareEach(systems: ComparedSystems, logins: readonly string[]): Promise<readonly Compared[]> {
  const errors: GatewayError[] = []
  const found = await inParallel(logins, width, async (login): Promise<Compared> => {
    try {
      return await comparePerson(systems, login)
    } catch (thrown) {
      const error = asGatewayError(thrown)
      if (isPassing(error.code)) throw error
      errors.push(error)
      systems.log.warn('a changed person could not be compared', { login, err: error })
      return { isThere: false, differences: [unknownPerson(login, error)] }
    }
  })
  const failure = errors.find((error) => !error.isRefusal)
  if (failure !== undefined && errors.length === logins.length) throw failure
  return found
}

const unknownPerson = (login: string, error: GatewayError): Difference => ({
  key: `person ${rowKey({ login })}`,
  kind: 'unknown',
  action: 'report',
  source: { login },
  attributes: [],
  groups: { add: [], remove: [] },
  reason: `This person could not be compared: ${shownReason(error)}`,
})

async function comparePerson(systems: ComparedSystems, login: string): Promise<Compared> {
  const { source, target } = systems
  const person = await source.find({ login })
  if (person !== undefined) {
    const name: AccountName =
      source.hasIds && person.id !== undefined ? { id: person.id, login: person.userID } : { login }
    const own = await compareOne(systems, { source: name })
    if (own !== undefined) return { isThere: true, differences: [own.difference] }
  }
  const accounts = await accountsNear(systems, login, person)
  const found = await inParallel([...accounts.values()], width, (account) =>
    compareOne(systems, { target: nameOf(account, target) }),
  )
  return { isThere: person !== undefined, differences: found.flatMap((one) => one?.difference ?? []) }
}

/** The accounts that a person in scope would have had, as far as the login and the person still show. */
async function accountsNear(
  { config, source, target, mapping, links }: ComparedSystems,
  login: string,
  person: User | undefined,
): Promise<ReadonlyMap<string, User>> {
  const logins = [login, ...(person === undefined ? [] : [(await mapping.user(person)).userID])]
  const linked = await links([(source.hasIds ? person?.id : undefined) ?? person?.userID ?? login])
  const ids = linked.flatMap(({ target: id }) => id ?? [])
  const values = person === undefined ? [] : config.correlation.flatMap((rule) => valuesOf(rule, person))
  const found = await Promise.all([
    ...[...new Set(logins)].map((one) => accountsHaving(target, 'userID', one)),
    ...ids.map(async (id) => [await findAccount(target, { id, login: id })].filter((one) => one !== undefined)),
    ...values.map(({ attribute, value, caseExact }) => accountsHaving(target, attribute, value, caseExact)),
  ])
  return new Map(found.flat().map((account) => [account.id ?? account.userID, account]))
}

function valuesOf(rule: ComparedSystems['config']['correlation'][number], person: User) {
  if (rule.kind === 'login') return []
  const values = rule.kind === 'id' ? [person.id ?? person.userID] : person.attributes.values(rule.source)
  return values
    .filter((value) => value.trim() !== '')
    .map((value) => ({ attribute: rule.target, value, caseExact: isExact(rule) }))
}
