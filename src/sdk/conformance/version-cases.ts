import assert from 'node:assert/strict'
import { stored, syncOptions, type TargetCase, type TargetFixture, userOf } from '#sdk/conformance/target-fixture.ts'

/** New logins, for targets that can give one, and changes that are bound to a version, for those that keep them. */
export const versionCases: readonly TargetCase[] = [
  {
    name: 'a user takes a new login along with all it has, and other changes with it',
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
    name: 'a login that is taken is a conflict, and nothing is changed',
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
    name: 'every change is a new version, and what changes nothing is none',
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
    name: 'of many changes that expect one version, one is made',
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
    name: 'deleting is bound to a version as well',
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
