import assert from 'node:assert/strict'
import { hostileTexts, stored, syncOptions, type TargetCase, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups } from '#sdk/target/target.ts'

/** Users are created, changed and deleted, and each call can be repeated. */
export const accountCases: readonly TargetCase[] = [
  {
    name: 'a missing user is not found',
    async run(fixture) {
      assert.equal(await stored(fixture, 'nobody'), undefined)
    },
  },
  {
    name: 'create, find, change, delete',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [many, one, other] = attributes
      const created = userOf('ada', { [many]: ['a@x.test', 'b@x.test'], [one]: ['Ada'] }, [groups[0], groups[1]])
      await target.createUser(created, attributes, request)
      assert.deepEqual(await stored(fixture, 'ada'), {
        userID: 'ada',
        values: [['a@x.test', 'b@x.test'], ['Ada'], []],
        groups: [groups[0], groups[1]],
      })
      const changed = userOf('ada', { [many]: ['c@x.test'], [other]: ['1'] }, [groups[1], groups[2]])
      await target.syncUser(changed, syncOptions(attributes), request)
      assert.deepEqual(await stored(fixture, 'ada'), {
        userID: 'ada',
        values: [['c@x.test'], [], ['1']],
        groups: [groups[1], groups[2]],
      })
      await target.deleteUser(changed, request)
      assert.equal(await stored(fixture, 'ada'), undefined)
    },
  },
  {
    name: 'creating an existing user with the same values succeeds; with others it is a conflict, and the user stays',
    async run(fixture) {
      const { target, attributes, groups, request, changes } = fixture
      const [many, one] = attributes
      const ada = userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]])
      await target.createUser(ada, attributes, request)
      changes.length = 0
      await target.createUser(ada, attributes, request)
      const others = [
        userOf('ada', { [many]: ['b@x.test'], [one]: ['Ada'] }, [groups[0]]),
        userOf('ada', { [many]: ['a@x.test'] }, [groups[0]]),
        userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[1]]),
      ]
      for (const other of others) {
        await assert.rejects(target.createUser(other, attributes, request), { code: 'CONFLICT' })
      }
      const expected = { userID: 'ada', values: [['a@x.test'], ['Ada'], []], groups: [groups[0]] }
      assert.deepEqual(await stored(fixture, 'ada'), expected)
      assert.deepEqual(changes, [])
    },
  },
  {
    name: 'a user that must be new is refused if one exists, in any letter case, and nothing changes',
    async run(fixture) {
      const { target, exactLogins, attributes, groups, request, changes } = fixture
      const [many, one] = attributes
      const ada = userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]])
      await target.createUser(ada, attributes, request, { mustBeNew: true })
      const expected = { userID: 'ada', values: [['a@x.test'], ['Ada'], []], groups: [groups[0]] }
      assert.deepEqual(await stored(fixture, 'ada'), expected)
      changes.length = 0
      for (const other of [
        ada,
        userOf('ada', { [many]: ['evil@x.test'] }, [groups[1]]),
        ...(exactLogins ? [] : [userOf('ADA', { [many]: ['evil@x.test'] }, [groups[1]])]),
      ]) {
        await assert.rejects(target.createUser(other, attributes, request, { mustBeNew: true }), { code: 'CONFLICT' })
      }
      assert.deepEqual(await stored(fixture, 'ada'), expected)
      assert.deepEqual(changes, [])
    },
  },
  {
    name: 'of several callers that create a user that must be new, one succeeds and the others are refused',
    async run(fixture) {
      const { target, attributes, request } = fixture
      const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
      const attempts = await Promise.allSettled(
        Array.from({ length: 8 }, () => target.createUser(user, attributes, request, { mustBeNew: true })),
      )
      const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
      assert.deepEqual(refused, Array(7).fill('CONFLICT'))
    },
  },
  {
    name: 'deleting a user twice succeeds, and so does deleting one that never existed',
    async run({ target, attributes, request, ...fixture }) {
      const user = userOf('ada')
      await target.createUser(user, attributes, request)
      await target.deleteUser(user, request)
      await target.deleteUser(user, request)
      await target.deleteUser(userOf('nobody'), request)
      assert.equal(await stored({ target, attributes, request, ...fixture }, 'ada'), undefined)
    },
  },
  {
    name: 'a deleted user can be created again, without its former data',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      await target.createUser(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]), attributes, request)
      await target.deleteUser(userOf('ada'), request)
      await target.createUser(userOf('ada'), attributes, request)
      assert.deepEqual(await stored(fixture, 'ada'), { userID: 'ada', values: [[], [], []], groups: [] })
    },
  },
  {
    name: 'repeating a change has no effect',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      await target.createUser(userOf('ada'), attributes, request)
      const user = userOf('ada', { [attributes[0]]: ['a@x.test', 'b@x.test'] }, [groups[0]])
      await target.syncUser(user, syncOptions(attributes), request)
      const once = await stored(fixture, 'ada')
      await target.syncUser(user, syncOptions(attributes), request)
      assert.deepEqual(await stored(fixture, 'ada'), once)
    },
  },
  {
    name: 'addOnly removes nothing',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [many, one, other] = attributes
      await target.createUser(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]), attributes, request)
      const more = userOf('ada', { [many]: ['a@x.test'], [other]: ['1'] }, [groups[1]])
      await target.syncUser(more, syncOptions(attributes, { addOnly: true }), request)
      assert.deepEqual(await stored(fixture, 'ada'), {
        userID: 'ada',
        values: [['a@x.test'], ['Ada'], ['1']],
        groups: [groups[0], groups[1]],
      })
    },
  },
  {
    name: 'attributes that are not listed stay unchanged',
    async run(fixture) {
      const { target, attributes, request } = fixture
      const [many, one, other] = attributes
      await target.createUser(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }), attributes, request)
      const change = userOf('ada', { [many]: ['z@x.test'], [one]: ['Zoe'], [other]: ['9'] })
      await target.syncUser(change, syncOptions([one]), request)
      assert.deepEqual((await stored(fixture, 'ada'))?.values, [['a@x.test'], ['Zoe'], []])
      await target.createUser(userOf('bob', { [many]: ['b@x.test'], [one]: ['Bob'] }), [one], request)
      assert.deepEqual((await stored(fixture, 'bob'))?.values, [[], ['Bob'], []])
    },
  },
  {
    name: 'keepGroups keeps memberships, even if the user has other groups',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      await target.createUser(userOf('ada', {}, [groups[0], groups[1]]), attributes, request)
      const change = userOf('ada', { [attributes[1]]: ['Ada'] }, [groups[2]])
      await target.syncUser(change, syncOptions(attributes, { keepGroups: true }), request)
      const after = await stored(fixture, 'ada')
      assert.deepEqual(after?.groups, [groups[0], groups[1]])
      assert.deepEqual(after?.values[1], ['Ada'])
    },
  },
  {
    name: 'changing one user does not change another',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      await target.createUser(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]), attributes, request)
      await target.createUser(userOf('bob', { [attributes[0]]: ['b@x.test'] }, [groups[0]]), attributes, request)
      const ada = await stored(fixture, 'ada')
      await target.syncUser(userOf('bob'), syncOptions(attributes), request)
      await target.deleteUser(userOf('bob'), request)
      assert.deepEqual(await stored(fixture, 'ada'), ada)
    },
  },
  ...hostileTexts.map(
    (text) =>
      ({
        name: `hostile text is only text: ${JSON.stringify(text)}`,
        async run(fixture) {
          const { target, attributes, groups, request } = fixture
          const user = userOf(text, { [attributes[0]]: [text], [attributes[1]]: ['x'] }, [groups[0]])
          await target.createUser(userOf('bystander', { [attributes[1]]: ['y'] }), attributes, request)
          await target.createUser(user, attributes, request)
          const expected = { userID: text, values: [[text], ['x'], []], groups: [groups[0]] }
          assert.deepEqual(await stored(fixture, text), expected)
          await target.syncUser(userOf(text, { [attributes[1]]: [text] }), syncOptions(attributes), request)
          assert.deepEqual(await stored(fixture, text), { userID: text, values: [[], [text], []], groups: [] })
          await target.deleteUser(userOf(text), request)
          assert.equal(await stored(fixture, text), undefined)
          assert.deepEqual((await stored(fixture, 'bystander'))?.values, [[], ['y'], []])
        },
      }) satisfies TargetCase,
  ),
  {
    name: 'concurrent changes are all made, and do not mix',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [, one, other] = attributes
      await target.createUser(userOf('ada'), attributes, request)
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          target.syncUser(
            userOf('ada', { [one]: [`v${i}`], [other]: [`v${i}`] }),
            syncOptions([one, other], { keepGroups: true }),
            request,
          ),
        ),
      )
      const mixed = await stored(fixture, 'ada')
      assert.deepEqual(mixed?.values[1], mixed?.values[2])
      await Promise.all(
        groups.map((group) => target.syncUser(userOf('ada', {}, [group]), syncOptions([], { addOnly: true }), request)),
      )
      assert.deepEqual((await stored(fixture, 'ada'))?.groups, [...groups].sort())
    },
  },
  {
    name: 'a user that is created concurrently exists once',
    async run(fixture) {
      const { target, attributes, request } = fixture
      const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
      const attempts = await Promise.allSettled(
        Array.from({ length: 8 }, () => target.createUser(user, attributes, request)),
      )
      for (const attempt of attempts) {
        if (attempt.status === 'rejected') assert.equal(attempt.reason?.code, 'CONFLICT')
      }
      assert.ok(attempts.some(({ status }) => status === 'fulfilled'))
      assert.deepEqual(await stored(fixture, 'ada'), { userID: 'ada', values: [['a@x.test'], [], []], groups: [] })
    },
  },
  {
    name: 'of several callers that create one user with different values, one succeeds and the others get an error',
    async run(fixture) {
      const { target, attributes, request } = fixture
      const attempts = await Promise.allSettled(
        Array.from({ length: 8 }, (_, i) =>
          target.createUser(userOf('ada', { [attributes[0]]: [`v${i}`] }), attributes, request),
        ),
      )
      const winner = attempts.findIndex(({ status }) => status === 'fulfilled')
      const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
      assert.deepEqual(refused, Array(7).fill('CONFLICT'))
      assert.deepEqual((await stored(fixture, 'ada'))?.values[0], [`v${winner}`])
    },
  },
  {
    name: 'an attribute that the target reports as supported is stored, and any other is rejected',
    async run(fixture) {
      const { target, attributes, request } = fixture
      const users = (await target.storable?.())?.users ?? 'any'
      if (users === 'any') return
      for (const name of attributes) assert.ok(users.has(name.toLowerCase()), `${name} is not among ${[...users]}`)
      const other = 'noSuchAttributeAnywhere'
      assert.ok(!users.has(other.toLowerCase()))
      await assert.rejects(target.createUser(userOf('ada', { [other]: ['x'] }), [other], request))
      assert.equal(await stored(fixture, 'ada'), undefined)
    },
  },
]

/** For targets that treat logins which differ only in letter case as one, like the rest of Gatehouse. */
export const spellingCases: readonly TargetCase[] = [
  {
    name: 'a login in another letter case is the same user: found, changed and deleted, and never a second one',
    async run(fixture) {
      const { target, attributes, groups, request } = fixture
      const [many, one] = attributes
      await target.createUser(userOf('Ada', { [many]: ['a@x.test'] }, [groups[0]]), attributes, request)
      const { userID } = (await stored(fixture, 'Ada')) ?? { userID: '' }
      for (const login of ['ADA', 'ada', 'aDa']) assert.equal((await stored(fixture, login))?.userID, userID, login)
      const second = userOf('ADA', { [many]: ['b@x.test'] }, [groups[1]])
      await assert.rejects(target.createUser(second, attributes, request), { code: 'CONFLICT' })
      const changed = userOf('aDA', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[1]])
      await target.syncUser(changed, syncOptions(attributes), request)
      const expected = { userID, values: [['a@x.test'], ['Ada'], []], groups: [groups[1]] }
      for (const login of ['Ada', 'ADA']) assert.deepEqual(await stored(fixture, login), expected)
      if (hasLookups(target)) {
        assert.equal((await target.lookupUserByLogin('aDA'))?.userID, userID)
        const filter = { kind: 'equal', attribute: 'userID', value: 'ADA' } as const
        const { items } = await target.searchUsers({ filter, offset: 0, limit: 5 })
        assert.deepEqual(
          items.map((user) => user.userID),
          [userID],
        )
      }
      await target.deleteUser(userOf('ADA'), request)
      assert.equal(await stored(fixture, 'Ada'), undefined)
    },
  },
]
