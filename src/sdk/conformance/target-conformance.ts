import assert from 'node:assert/strict'
import { accountCases, spellingCases } from '#sdk/conformance/account-cases.ts'
import { groupCases } from '#sdk/conformance/group-cases.ts'
import { lookupCases } from '#sdk/conformance/lookup-cases.ts'
import { nestingCases } from '#sdk/conformance/nesting-cases.ts'
import { pageCases } from '#sdk/conformance/page-cases.ts'
import {
  type TargetCases,
  type TargetFixture,
  type TargetNames,
  targetFixture,
  userOf,
} from '#sdk/conformance/target-fixture.ts'
import { hasLookups, hasPasswords, type Target } from '#sdk/target/target.ts'

/** How to run the cases, and what the target can do. */
export interface TargetConformanceOptions extends Partial<TargetNames> {
  /** The test runner's own: `test` of node:test or of Vitest. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** The target has lookups; true if absent. */
  readonly lookups?: boolean
  /** `ada` and `ADA` are two users in the system of the target; false if absent. */
  readonly exactLogins?: boolean
  /** A user is found only by the exact login, although no two logins differ only in letter case. */
  readonly exactLookups?: boolean
  /** The beginnings of the titles of cases that the system of the target can't do. */
  readonly except?: readonly string[]
}

interface OpenedTarget {
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
    except = [],
  } = options
  const cases = {
    ...accountCases,
    ...(exactLookups ? {} : spellingCases),
    ...versionCases,
    ...groupCases,
    ...nestingCases,
    ...auditCases,
    ...(lookups ? { ...lookupCases, ...pageCases } : {}),
  }
  const withTarget = async (run: (target: Target) => unknown): Promise<void> => {
    const { target, close } = await open()
    try {
      await run(target)
    } finally {
      await close()
    }
  }
  for (const start of except) {
    assert.ok(
      Object.keys(cases).some((title) => title.startsWith(start)),
      `no case starts with "${start}"`,
    )
  }
  for (const [title, run] of Object.entries(cases)) {
    if (except.some((start) => title.startsWith(start))) continue
    test(`${name}: ${title}`, () =>
      withTarget((target) => run(targetFixture(target, { attributes, groups }, exactLogins))))
  }
  test(`${name}: look-ups are ${lookups ? '' : 'not '}there`, () =>
    withTarget((target) => assert.equal(hasLookups(target), lookups)))
}

/** Exactly the changes are reported. */
const auditCases: TargetCases = {
  'audit: creating reports the entry, its attributes and its groups': async (fixture) => {
    const { attributes, groups, create, assertReported } = fixture
    const [many, one] = attributes
    await create(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]))
    assertReported({ subject: 'entry', action: 'add' })
    assertReported({ subject: 'attribute', action: 'add', attribute: many, value: 'a@x.test' })
    assertReported({ subject: 'attribute', action: 'add', attribute: one, value: 'Ada' })
    assertReported({ subject: 'group', action: 'add', value: groups[0] })
  },
  'audit: a change reports added, replaced and removed values': async (fixture) => {
    const { attributes, groups, changes, create, sync, assertReported } = fixture
    const [many, one, other] = attributes
    const before = userOf('ada', { [many]: ['a@x.test', 'b@x.test'], [one]: ['Ada'] }, [groups[0], groups[1]])
    await create(before)
    changes.length = 0
    const after = userOf('ada', { [many]: ['b@x.test'], [one]: ['Zoe'], [other]: ['1'] }, [groups[1], groups[2]])
    await sync(after)
    for (const attribute of attributes) assertReported({ subject: 'attribute', attribute })
    assertReported({ attribute: one, value: 'Zoe' })
    assertReported({ subject: 'attribute', action: 'add', attribute: other, value: '1' })
    assertReported({ subject: 'group', action: 'add', value: groups[2] })
    assertReported({ subject: 'group', action: 'delete', value: groups[0] })
    const untouched = changes.filter(({ subject, value }) => subject === 'group' && value === groups[1])
    assert.deepEqual(untouched, [])
  },
  'audit: a call without changes reports nothing': async ({ attributes, groups, changes, create, sync, remove }) => {
    const user = userOf('ada', { [attributes[0]]: ['a@x.test', 'b@x.test'] }, [groups[0]])
    await create(user)
    changes.length = 0
    await sync(user)
    await remove(userOf('nobody'))
    assert.deepEqual(changes, [])
  },
  'audit: deleting reports the entry, once': async ({ changes, create, remove }) => {
    await create(userOf('ada'))
    changes.length = 0
    await remove(userOf('ada'))
    await remove(userOf('ada'))
    const entries = changes.filter(({ subject, action }) => subject === 'entry' && action === 'delete')
    assert.equal(entries.length, 1)
  },
  'audit: a password is never reported': async ({ target, request, changes, create }) => {
    if (!hasPasswords(target)) return
    await create(userOf('ada'))
    changes.length = 0
    await target.setUserPassword(userOf('ada'), 'correct horse', request)
    assert.equal(changes.length, 1)
    assert.ok(!JSON.stringify(changes).includes('correct horse'))
  },
}

/** New logins, for targets that can rename users, and changes bound to a version, for targets that have versions. */
const versionCases: TargetCases = {
  'a renamed user keeps its data, and gets other changes with the new login': async (fixture) => {
    const { target, attributes, groups, changes, create, sync, stored } = fixture
    if (target.renamesUsers !== true) return
    const [many, one] = attributes
    await create(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]))
    changes.length = 0
    const options = { attributes: [one], keepGroups: true, newUserID: 'adele' }
    await sync(userOf('ada', { [one]: ['Adele'] }), options)
    assert.equal(await stored('ada'), undefined)
    assert.deepEqual(await stored('adele'), {
      userID: 'adele',
      values: [['a@x.test'], ['Adele'], []],
      groups: [groups[0]],
    })
    const renamed = changes.filter(({ subject, action }) => subject === 'entry' && action === 'replace')
    assert.deepEqual(renamed, [{ subject: 'entry', action: 'replace', attribute: 'userID', value: 'adele' }])
    assert.equal(changes.length, 2)
  },
  'a new login alone changes nothing else': async ({ target, attributes, groups, changes, create, sync, stored }) => {
    if (target.renamesUsers !== true) return
    await create(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]))
    changes.length = 0
    await sync(userOf('ada'), { attributes: [], keepGroups: true, newUserID: 'adele' })
    assert.deepEqual(await stored('adele'), {
      userID: 'adele',
      values: [['a@x.test'], [], []],
      groups: [groups[0]],
    })
    assert.equal(changes.length, 1)
    await sync(userOf('adele'), { attributes: [], keepGroups: true, newUserID: 'adele' })
    assert.equal(changes.length, 1)
  },
  'a login that is taken is a conflict, and nothing changes': async (fixture) => {
    const { target, attributes, create, sync, stored } = fixture
    if (target.renamesUsers !== true) return
    await create(userOf('ada', { [attributes[1]]: ['Ada'] }))
    await create(userOf('bob', { [attributes[1]]: ['Bob'] }))
    const change = sync(userOf('ada', { [attributes[1]]: ['x'] }), { newUserID: 'bob' })
    await assert.rejects(change, { code: 'CONFLICT' })
    assert.deepEqual((await stored('ada'))?.values[1], ['Ada'])
    assert.deepEqual((await stored('bob'))?.values[1], ['Bob'])
  },
  'every change gives a new version, and a call without changes does not': async (fixture) => {
    const { target, attributes, groups, create, sync } = fixture
    if (target.keepsVersions !== true) return
    await create(userOf('ada'))
    const seen = [await versionOf(fixture)]
    const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
    await sync(user, { keepGroups: true })
    seen.push(await versionOf(fixture))
    await sync(user, { keepGroups: true })
    assert.equal(await versionOf(fixture), seen[1])
    await sync(userOf('ada', {}, [groups[0]]), { attributes: [] })
    seen.push(await versionOf(fixture))
    assert.equal(new Set(seen).size, 3)
  },
  'of many changes that expect one version, one succeeds': async (fixture) => {
    const { target, attributes, create, sync, stored } = fixture
    if (target.keepsVersions !== true) return
    await create(userOf('ada'))
    const expectedVersion = await versionOf(fixture)
    const attempts = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => sync(userOf('ada', { [attributes[1]]: [`v${i}`] }), { expectedVersion })),
    )
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
    assert.deepEqual(refused, Array(19).fill('VERSION_MISMATCH'))
    const winner = attempts.findIndex(({ status }) => status === 'fulfilled')
    assert.deepEqual((await stored('ada'))?.values[1], [`v${winner}`])
  },
  'deleting can be bound to a version': async (fixture) => {
    const { target, attributes, create, sync, remove, stored } = fixture
    if (target.keepsVersions !== true) return
    await create(userOf('ada'))
    const expectedVersion = await versionOf(fixture)
    await sync(userOf('ada', { [attributes[1]]: ['x'] }))
    const stale = remove(userOf('ada'), { expectedVersion })
    await assert.rejects(stale, { code: 'VERSION_MISMATCH' })
    assert.notEqual(await stored('ada'), undefined)
    await remove(userOf('ada'), { expectedVersion: await versionOf(fixture) })
    assert.equal(await stored('ada'), undefined)
  },
}

async function versionOf({ target, attributes, request }: TargetFixture): Promise<string> {
  const found = await target.findUser('ada', attributes, request)
  assert.ok(found?.version !== undefined, 'a user without a version')
  return found.version
}
