import assert from 'node:assert/strict'
import { accountCases, spellingCases } from '#sdk/conformance/account-cases.ts'
import { groupCases } from '#sdk/conformance/group-cases.ts'
import { lookupCases } from '#sdk/conformance/lookup-cases.ts'
import { nestingCases } from '#sdk/conformance/nesting-cases.ts'
import { pageCases } from '#sdk/conformance/page-cases.ts'
import {
  stored,
  syncOptions,
  type TargetCase,
  type TargetFixture,
  type TargetNames,
  targetFixture,
  userOf,
} from '#sdk/conformance/target-fixture.ts'
import { hasLookups, hasPasswords, type Target, type TargetChange } from '#sdk/target/target.ts'

export interface TargetConformanceOptions extends Partial<TargetNames> {
  /** The test runner's own: `test` of node:test or of Vitest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** The target has lookups; true if absent. */
  readonly lookups?: boolean
  /** `ada` and `ADA` are two users in the system of the target; false if absent. */
  readonly exactLogins?: boolean
  /** A user is found only by the exact login, although no two logins differ only in letter case. */
  readonly exactLookups?: boolean
}

export interface OpenedTarget {
  readonly target: Target
  close(): Promise<void>
}

/**
 * What every target must do. Each case opens its own target, which must be empty: no users, and no members in the
 * groups.
 */
export function targetConformance(
  name: string,
  open: () => Promise<OpenedTarget>,
  options: TargetConformanceOptions,
): void {
  const {
    test,
    lookups = true,
    exactLogins = false,
    exactLookups = exactLogins,
    attributes = ['mail', 'givenName', 'phone'],
    groups = ['group1', 'group2', 'group3'],
  } = options
  const cases = [
    ...accountCases,
    ...(exactLookups ? [] : spellingCases),
    ...versionCases,
    ...groupCases,
    ...nestingCases,
    ...auditCases,
    ...(lookups ? [...lookupCases, ...pageCases] : []),
  ]
  for (const { name: title, run } of cases) {
    test(`${name}: ${title}`, async () => {
      const { target, close } = await open()
      try {
        await run(targetFixture(target, { attributes, groups }, exactLogins))
      } finally {
        await close()
      }
    })
  }
  test(`${name}: look-ups are ${lookups ? '' : 'not '}there`, async () => {
    const { target, close } = await open()
    try {
      assert.equal(hasLookups(target), lookups)
    } finally {
      await close()
    }
  })
}

/** Exactly the changes are reported. */
const auditCases: readonly TargetCase[] = [
  {
    name: 'audit: creating reports the entry, its attributes and its groups',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [many, one] = attributes
      await target.createUser(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]), attributes, request)
      assertTold(fixture, { subject: 'entry', action: 'add' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: many, value: 'a@x.test' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: one, value: 'Ada' })
      assertTold(fixture, { subject: 'group', action: 'add', value: groups[0] })
    },
  },
  {
    name: 'audit: a change reports added, replaced and removed values',
    async run(fixture) {
      const { target, attributes, groups, request, changes } = fixture
      const [many, one, other] = attributes
      const before = userOf('ada', { [many]: ['a@x.test', 'b@x.test'], [one]: ['Ada'] }, [groups[0], groups[1]])
      await target.createUser(before, attributes, request)
      changes.length = 0
      const after = userOf('ada', { [many]: ['b@x.test'], [one]: ['Zoe'], [other]: ['1'] }, [groups[1], groups[2]])
      await target.syncUser(after, syncOptions(attributes), request)
      for (const attribute of attributes) assertTold(fixture, { subject: 'attribute', attribute })
      assertTold(fixture, { attribute: one, value: 'Zoe' })
      assertTold(fixture, { subject: 'attribute', action: 'add', attribute: other, value: '1' })
      assertTold(fixture, { subject: 'group', action: 'add', value: groups[2] })
      assertTold(fixture, { subject: 'group', action: 'delete', value: groups[0] })
      const untouched = changes.filter(({ subject, value }) => subject === 'group' && value === groups[1])
      assert.deepEqual(untouched, [])
    },
  },
  {
    name: 'audit: a call without changes reports nothing',
    async run({ target, attributes, groups, request, changes }) {
      const user = userOf('ada', { [attributes[0]]: ['a@x.test', 'b@x.test'] }, [groups[0]])
      await target.createUser(user, attributes, request)
      changes.length = 0
      await target.syncUser(user, syncOptions(attributes), request)
      await target.deleteUser(userOf('nobody'), request)
      assert.deepEqual(changes, [])
    },
  },
  {
    name: 'audit: deleting reports the entry, once',
    async run(fixture) {
      const { target, attributes, request, changes } = fixture
      await target.createUser(userOf('ada'), attributes, request)
      changes.length = 0
      await target.deleteUser(userOf('ada'), request)
      await target.deleteUser(userOf('ada'), request)
      const entries = changes.filter(({ subject, action }) => subject === 'entry' && action === 'delete')
      assert.equal(entries.length, 1)
    },
  },
  {
    name: 'audit: a password is never reported',
    async run({ target, attributes, request, changes }) {
      if (!hasPasswords(target)) return
      await target.createUser(userOf('ada'), attributes, request)
      changes.length = 0
      await target.setUserPassword(userOf('ada'), 'correct horse', request)
      assert.equal(changes.length, 1)
      assert.ok(!JSON.stringify(changes).includes('correct horse'))
    },
  },
]

function assertTold({ changes }: TargetFixture, wanted: Partial<TargetChange>): void {
  const told = changes.some((change) =>
    Object.entries(wanted).every(([field, value]) => change[field as keyof TargetChange] === value),
  )
  assert.ok(told, `no audit entry like ${JSON.stringify(wanted)} in ${JSON.stringify(changes)}`)
}

/** New logins, for targets that can rename users, and changes bound to a version, for targets that have versions. */
const versionCases: readonly TargetCase[] = [
  {
    name: 'a renamed user keeps its data, and gets other changes with the new login',
    async run(fixture) {
      const { target, attributes, groups, request, changes } = fixture
      if (target.renamesUsers !== true) return
      const [many, one] = attributes
      await target.createUser(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]), attributes, request)
      changes.length = 0
      const options = syncOptions([one], { keepGroups: true, newUserID: 'adele' })
      await target.syncUser(userOf('ada', { [one]: ['Adele'] }), options, request)
      assert.equal(await stored(fixture, 'ada'), undefined)
      assert.deepEqual(await stored(fixture, 'adele'), {
        userID: 'adele',
        values: [['a@x.test'], ['Adele'], []],
        groups: [groups[0]],
      })
      const renamed = changes.filter(({ subject, action }) => subject === 'entry' && action === 'replace')
      assert.deepEqual(renamed, [{ subject: 'entry', action: 'replace', attribute: 'userID', value: 'adele' }])
      assert.equal(changes.length, 2)
    },
  },
  {
    name: 'a new login alone changes nothing else',
    async run(fixture) {
      const { target, attributes, groups, request, changes } = fixture
      if (target.renamesUsers !== true) return
      await target.createUser(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]), attributes, request)
      changes.length = 0
      await target.syncUser(userOf('ada'), syncOptions([], { keepGroups: true, newUserID: 'adele' }), request)
      assert.deepEqual(await stored(fixture, 'adele'), {
        userID: 'adele',
        values: [['a@x.test'], [], []],
        groups: [groups[0]],
      })
      assert.equal(changes.length, 1)
      await target.syncUser(userOf('adele'), syncOptions([], { keepGroups: true, newUserID: 'adele' }), request)
      assert.equal(changes.length, 1)
    },
  },
  {
    name: 'a login that is taken is a conflict, and nothing changes',
    async run(fixture) {
      const { target, attributes, request } = fixture
      if (target.renamesUsers !== true) return
      await target.createUser(userOf('ada', { [attributes[1]]: ['Ada'] }), attributes, request)
      await target.createUser(userOf('bob', { [attributes[1]]: ['Bob'] }), attributes, request)
      const options = syncOptions(attributes, { newUserID: 'bob' })
      const change = target.syncUser(userOf('ada', { [attributes[1]]: ['x'] }), options, request)
      await assert.rejects(change, { code: 'CONFLICT' })
      assert.deepEqual((await stored(fixture, 'ada'))?.values[1], ['Ada'])
      assert.deepEqual((await stored(fixture, 'bob'))?.values[1], ['Bob'])
    },
  },
  {
    name: 'every change gives a new version, and a call without changes does not',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      if (target.keepsVersions !== true) return
      await target.createUser(userOf('ada'), attributes, request)
      const seen = [await versionOf(fixture)]
      const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
      await target.syncUser(user, syncOptions(attributes, { keepGroups: true }), request)
      seen.push(await versionOf(fixture))
      await target.syncUser(user, syncOptions(attributes, { keepGroups: true }), request)
      assert.equal(await versionOf(fixture), seen[1])
      await target.syncUser(userOf('ada', {}, [groups[0]]), syncOptions([]), request)
      seen.push(await versionOf(fixture))
      assert.equal(new Set(seen).size, 3)
    },
  },
  {
    name: 'of many changes that expect one version, one succeeds',
    async run(fixture) {
      const { target, attributes, request } = fixture
      if (target.keepsVersions !== true) return
      await target.createUser(userOf('ada'), attributes, request)
      const expectedVersion = await versionOf(fixture)
      const attempts = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          target.syncUser(
            userOf('ada', { [attributes[1]]: [`v${i}`] }),
            syncOptions(attributes, { expectedVersion }),
            request,
          ),
        ),
      )
      const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
      assert.deepEqual(refused, Array(19).fill('VERSION_MISMATCH'))
      const winner = attempts.findIndex(({ status }) => status === 'fulfilled')
      assert.deepEqual((await stored(fixture, 'ada'))?.values[1], [`v${winner}`])
    },
  },
  {
    name: 'deleting can be bound to a version',
    async run(fixture) {
      const { target, attributes, request } = fixture
      if (target.keepsVersions !== true) return
      await target.createUser(userOf('ada'), attributes, request)
      const expectedVersion = await versionOf(fixture)
      await target.syncUser(userOf('ada', { [attributes[1]]: ['x'] }), syncOptions(attributes), request)
      const stale = target.deleteUser(userOf('ada'), request, { expectedVersion })
      await assert.rejects(stale, { code: 'VERSION_MISMATCH' })
      assert.notEqual(await stored(fixture, 'ada'), undefined)
      await target.deleteUser(userOf('ada'), request, { expectedVersion: await versionOf(fixture) })
      assert.equal(await stored(fixture, 'ada'), undefined)
    },
  },
]

async function versionOf({ target, attributes, request }: TargetFixture): Promise<string> {
  const found = await target.findUser('ada', attributes, request)
  assert.ok(found?.version !== undefined, 'a user without a version')
  return found.version
}
