import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import type { Account, Person } from '#features/reconciliation/plan/compared-entry.ts'
import type { AccountLink } from '#features/reconciliation/plan/difference.ts'
import { ComparisonFile } from './comparison-file.ts'
import type { Keyed } from './systems.ts'

const rule = (name: string) => ({ kind: 'attribute', source: name, target: name }) as const
const person = (id: string, ...keys: string[][]): Keyed<Person> => ({
  entry: { name: { id, login: id }, wanted: { login: `login-${id}`, attributes: {}, groups: [] } },
  inScope: true,
  keys,
})
const account = (id: string, ...keys: string[][]): Keyed<Account> => ({
  entry: { name: { id, login: id }, login: id, attributes: {}, groups: [], status: {} },
  inScope: true,
  keys,
})

/** What each person gets: `id by rule`, `?` if that is ambiguous, or nothing. */
async function connect(
  people: readonly Keyed<Person>[],
  accounts: readonly Keyed<Account>[],
  links: readonly AccountLink[],
): Promise<Record<string, string>> {
  const file = new ComparisonFile([rule('first'), rule('externalId')], true)
  onTestFinished(() => file.close())
  await file.addPeople(people)
  await file.addAccounts(accounts)
  const stored = {
    links: async (ids: readonly string[]) => links.filter(({ source }) => ids.includes(source)),
    linksByTarget: async (ids: readonly string[]) => links.filter(({ target = '' }) => ids.includes(target)),
  }
  for await (const _ of file.correlate(stored)) void 0
  return Object.fromEntries(
    file
      .people('', 100)
      .map(({ key, match }) => [
        key,
        match.kind === 'account'
          ? `${match.account.login} by ${match.rule}`
          : match.kind === 'ambiguous'
            ? `? by ${match.rule}`
            : '',
      ]),
  )
}

/** The rules as the reference describes them, without a database. */
function expected(
  people: readonly Keyed<Person>[],
  accounts: readonly Keyed<Account>[],
  links: readonly AccountLink[],
): Record<string, string> {
  const found: Record<string, string> = Object.fromEntries(people.map(({ entry }) => [entry.name.id ?? '', '']))
  const decided = new Set<string>()
  const taken = new Set<string>()
  const blocked = new Set<string>()
  const linkOf = (id: string) => links.find(({ source }) => source === id)
  const known = new Set(accounts.map(({ entry }) => entry.login))
  const ids = new Set(people.map(({ entry }) => entry.name.id))
  for (const { entry } of people) {
    const link = linkOf(entry.name.id ?? '')
    if (link !== undefined && link.target === undefined) decided.add(entry.name.id ?? '')
  }
  const linkedInScope = new Set(links.flatMap(({ source, target }) => (ids.has(source) ? [target] : [])))
  for (const { target } of links) {
    if (target !== undefined && known.has(target) && !linkedInScope.has(target)) taken.add(target)
  }
  for (const [i, rule] of ['link', 'first', 'externalId'].entries()) {
    const meets = (one: Keyed<Person>, other: Keyed<Account>): boolean =>
      i === 0
        ? linkOf(one.entry.name.id ?? '')?.target === other.entry.login
        : (one.keys[i - 1] ?? []).some((key) =>
            other.keys[i - 1]?.some((own) => (i === 2 ? own === key : own.toLowerCase() === key.toLowerCase())),
          )
    const open = people.filter(({ entry }) => !decided.has(entry.name.id ?? ''))
    const free = accounts.filter(({ entry }) => !taken.has(entry.login))
    const blockedBefore = new Set(blocked)
    for (const one of open) {
      const candidates = free.filter((other) => meets(one, other))
      const [only] = candidates
      if (only === undefined) continue
      decided.add(one.entry.name.id ?? '')
      const rivals = open.filter((other) => meets(other, only))
      if (candidates.length === 1 && rivals.length === 1 && !blockedBefore.has(only.entry.login)) {
        found[one.entry.name.id ?? ''] = `${only.entry.login} by ${rule}`
        taken.add(only.entry.login)
      } else {
        found[one.entry.name.id ?? ''] = `? by ${rule}`
        for (const { entry } of candidates) blocked.add(entry.login)
      }
    }
  }
  return found
}

test('an account that is ambiguous by one rule is not given away by the next', async () => {
  const people = [person('a', ['x'], []), person('b', ['X'], []), person('c', [], ['y'])]
  expect(await connect(people, [account('1', ['x'], ['y'])], [])).toEqual({
    a: '? by first',
    b: '? by first',
    c: '? by externalId',
  })
})

test('links and rules connect exactly whom they should', async () => {
  const ids = ['a', 'b', 'c', 'd', 'e']
  const key = fc.array(fc.constantFrom('x', 'X', 'y', 'z'), { maxLength: 2 })
  const some = <T>(make: (id: string, ...keys: string[][]) => T) =>
    fc
      .uniqueArray(fc.tuple(fc.constantFrom(...ids), key, key), { selector: ([id]) => id })
      .map((list) => list.map(([id, ...keys]) => make(id, ...keys)))
  const links = fc.uniqueArray(
    fc.record({
      source: fc.constantFrom(...ids, 'other'),
      target: fc.option(fc.constantFrom(...ids, 'gone'), { nil: undefined }),
    }),
    { selector: ({ source }) => source, maxLength: 3 },
  )
  await fc.assert(
    fc.asyncProperty(some(person), some(account), links, async (people, accounts, given) => {
      expect(await connect(people, accounts, given)).toEqual(expected(people, accounts, given))
    }),
    { numRuns: 150 },
  )
})

test('long, odd and equal ids stay apart, and a repeated user counts once', async () => {
  const file = new ComparisonFile([rule('first')], true)
  onTestFinished(() => file.close())
  const long = 'x'.repeat(10_000)
  const odd = [long, `${long}y`, '\0', 'a\0', '\ud800', 'A', 'a']
  expect(await file.addPeople([...odd, ...odd].map((id) => person(id, [id])))).toBe(odd.length)
  expect(file.people('', 100)).toHaveLength(odd.length)
  await expect(
    file.addPeople([{ ...person('a'), entry: { name: { id: 'a', login: 'other' }, wanted: undefined } }]),
  ).rejects.toThrow('"a" and "other" have the id "a"')
})
