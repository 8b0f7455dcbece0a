import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Difference } from '#features/reconciliation/plan/difference.ts'
import { Attributes } from '#identity/attributes.ts'
import { userIdName } from '#identity/mapping/mapped-value.ts'
import type { User } from '#identity/user.ts'
import { asGatewayError } from '#kernel/errors.ts'
import { hasLookups, type LookupTarget } from '#sdk/target/target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import { applicationParams, makeApplication, openTarget } from '#testing/databases/sql-schema.ts'
import {
  addUser,
  comparedSystems,
  compareWhole,
  memoryTarget,
  quietRequest,
} from '#testing/reconciliation/compared-systems.ts'
import { compareOne } from './compare-one.ts'
import type { ComparedSystems } from './systems.ts'

/** What the tables of the SQL target have as well. */
const names = ['mail', 'givenName', 'phone'] as const
const groups = ['group1', 'group2']
const logins = ['ada', 'bob', 'Carl', 'dora', 'eve']
const attributes = fc.record(
  {
    mail: fc.constantFrom('a@x', 'A@x', 'b@x', 'c@x'),
    givenName: fc.constantFrom('Ada', 'Bob'),
    phone: fc.constantFrom('1', '2', '3'),
  },
  { requiredKeys: [] },
)
const users = fc.uniqueArray(
  fc.record({ login: fc.constantFrom(...logins), attributes, groups: fc.subarray(groups) }),
  { selector: ({ login }) => login },
)
const spec = fc.record({
  correlation: fc.subarray(['login', '{ attribute: mail }', '{ id: phone }', '{ source: givenName, target: phone }'], {
    minLength: 1,
  }),
  missing: fc.constantFrom('report', 'create'),
  different: fc.constantFrom('report', 'change'),
  extra: fc.constantFrom('report', 'delete', 'removeMemberships'),
  scope: fc.constantFrom('', 'scope: { filter: (givenName=Ada) }\n', 'scope: { groups: [group1] }\n'),
})

type Given = typeof spec extends fc.Arbitrary<infer T> ? T : never

const yaml = ({ correlation, missing, different, extra, scope }: Given): string => `attributes:
  - { name: mail, source: mail, sourceType: user }
  - { name: givenName, source: givenName, sourceType: user }
groups: [group1, group2]
correlation: [${correlation.join(', ')}]
missing: ${missing}
different: ${different}
extra: ${extra}
${scope}`

/** Writes what a workflow with a provision or delete task would, if the difference is still the planned one. */
async function apply(systems: ComparedSystems, planned: Difference): Promise<void> {
  const { target } = systems
  const present = await compareOne(systems, planned)
  if (JSON.stringify(present?.difference) !== JSON.stringify(planned)) return
  const { action, target: name } = planned
  const wanted = present?.user
  const found = name && (await target.lookupUserByLogin(name.login))
  const created = {
    userID: wanted?.userID ?? '',
    attributes: wanted?.attributes ?? new Attributes(),
    groups: planned.groups.add,
  }
  if (action === 'create') await target.createUser(created, [...names], quietRequest, { mustBeNew: true })
  if (action === 'delete' && found !== undefined) await target.deleteUser(found, quietRequest)
  if (found === undefined || (action !== 'change' && action !== 'removeMemberships')) return
  const gone = new Set(planned.groups.remove)
  const user = {
    ...found,
    attributes: wanted?.attributes ?? found.attributes,
    groups: [...found.groups.filter((one) => !gone.has(one)), ...planned.groups.add],
  }
  const isRenamed = planned.attributes.some((one) => one.name === userIdName)
  await target.syncUser(
    user,
    {
      addOnly: false,
      keepGroups: false,
      attributes: wanted === undefined ? [] : ['mail', 'givenName'],
      ...(isRenamed && wanted !== undefined ? { newUserID: wanted.userID } : {}),
    },
    quietRequest,
  )
}

const plain = ({ userID, attributes: own, groups: joined }: User): string =>
  JSON.stringify([userID, names.map((name) => own.values(name).toSorted()), joined.toSorted()])

const all = async (target: LookupTarget): Promise<readonly User[]> =>
  (await target.searchUsers({ offset: 0, limit: 1000 })).items

async function refill(
  target: LookupTarget,
  given: readonly { login: string; attributes: Partial<Record<string, string>>; groups: readonly string[] }[],
) {
  for (const user of await all(target)) await target.deleteUser(user, quietRequest)
  for (const { login, attributes: own, groups: joined } of given) {
    const values = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, [value ?? '']]))
    await addUser(target, login, values, joined)
  }
}

async function reachesAgreement(target: LookupTarget, runs: number): Promise<void> {
  const source = memoryTarget()
  for (const name of groups) await source.createGroup(name, {}, quietRequest)
  await fc.assert(
    fc.asyncProperty(users, users, spec, async (people, accounts, given) => {
      await refill(source, people)
      await refill(target, accounts)
      const systems = await comparedSystems({ source, target, spec: yaml(given) })
      const outside = (await all(target)).filter((user) => !systems.mapping.account(user).inScope)
      const failed = new Set<string>()
      let left: readonly Difference[] = []
      for (let round = 0; round < 5; round++) {
        left = (await compareWhole(systems)).differences.filter(
          ({ action, key }) => action !== 'report' && !failed.has(key),
        )
        if (left.length === 0) break
        for (const difference of left) {
          try {
            await apply(systems, difference)
          } catch (error) {
            // Another account has the login: the row says so, and people decide.
            expect(asGatewayError(error).code).toBe('CONFLICT')
            failed.add(difference.key)
          }
        }
      }
      expect(left).toEqual([])
      const after = new Set((await all(target)).map(plain))
      for (const user of outside) expect(after).toContain(plain(user))
    }),
    { numRuns: runs, endOnFailure: true },
  )
}

describe('plans that are applied lead to agreement, or name what is left, and touch no account outside of the scope', () => {
  test('in a directory', async () => {
    const target = memoryTarget()
    for (const name of groups) await target.createGroup(name, {}, quietRequest)
    await reachesAgreement(target, 60)
  })
})

onEachEmptyDatabase('the same', (freshUrl) => {
  test('in tables', async () => {
    const url = await freshUrl()
    await makeApplication(url)
    const target = await openTarget(url, applicationParams)
    onTestFinished(async () => target.close?.())
    if (!hasLookups(target)) throw new Error('no look-ups')
    await reachesAgreement(target, 15)
  })
})
