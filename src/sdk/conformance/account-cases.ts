import assert from 'node:assert/strict'
import { loginProblem } from '#identity/login-name.ts'
import { GatewayError } from '#kernel/errors.ts'
import { hostileTexts, type TargetCases, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups } from '#sdk/target/target.ts'

/** Users are created, changed and deleted, and each call can be repeated. */
export const accountCases: TargetCases = {
  'a missing user is not found': async ({ stored }) => {
    assert.equal(await stored('nobody'), undefined)
  },
  'create, find, change, delete': async ({ attributes, groups, create, sync, remove, stored }) => {
    const [many, one, other] = attributes
    const created = userOf('ada', { [many]: ['a@x.test', 'b@x.test'], [one]: ['Ada'] }, [groups[0], groups[1]])
    await create(created)
    assert.deepEqual(await stored('ada'), {
      userID: 'ada',
      values: [['a@x.test', 'b@x.test'], ['Ada'], []],
      groups: [groups[0], groups[1]],
    })
    const changed = userOf('ada', { [many]: ['c@x.test'], [other]: ['1'] }, [groups[1], groups[2]])
    await sync(changed)
    assert.deepEqual(await stored('ada'), {
      userID: 'ada',
      values: [['c@x.test'], [], ['1']],
      groups: [groups[1], groups[2]],
    })
    await remove(changed)
    assert.equal(await stored('ada'), undefined)
  },
  'creating an existing user with the same values succeeds; with others it is a conflict, and the user stays': async (
    fixture,
  ) => {
    const { attributes, groups, changes, create, stored } = fixture
    const [many, one] = attributes
    const ada = userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]])
    await create(ada)
    changes.length = 0
    await create(ada)
    const others = [
      userOf('ada', { [many]: ['b@x.test'], [one]: ['Ada'] }, [groups[0]]),
      userOf('ada', { [many]: ['a@x.test'] }, [groups[0]]),
      userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[1]]),
    ]
    for (const other of others) {
      await assert.rejects(create(other), { code: 'CONFLICT' })
    }
    const expected = { userID: 'ada', values: [['a@x.test'], ['Ada'], []], groups: [groups[0]] }
    assert.deepEqual(await stored('ada'), expected)
    assert.deepEqual(changes, [])
  },
  'a user that must be new is refused if one exists, in any letter case, and nothing changes': async (fixture) => {
    const { exactLogins, attributes, groups, changes, create, stored } = fixture
    const [many, one] = attributes
    const ada = userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]])
    await create(ada, { mustBeNew: true })
    const expected = { userID: 'ada', values: [['a@x.test'], ['Ada'], []], groups: [groups[0]] }
    assert.deepEqual(await stored('ada'), expected)
    changes.length = 0
    for (const other of [
      ada,
      userOf('ada', { [many]: ['evil@x.test'] }, [groups[1]]),
      ...(exactLogins ? [] : [userOf('ADA', { [many]: ['evil@x.test'] }, [groups[1]])]),
    ]) {
      await assert.rejects(create(other, { mustBeNew: true }), { code: 'CONFLICT' })
    }
    assert.deepEqual(await stored('ada'), expected)
    assert.deepEqual(changes, [])
  },
  'of several callers that create a user that must be new, one succeeds and the others are refused': async (
    fixture,
  ) => {
    const { attributes, create } = fixture
    const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => create(user, { mustBeNew: true })))
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
    assert.deepEqual(refused, Array(7).fill('CONFLICT'))
  },
  'deleting a user twice succeeds, and so does deleting one that never existed': async ({ create, remove, stored }) => {
    const user = userOf('ada')
    await create(user)
    await remove(user)
    await remove(user)
    await remove(userOf('nobody'))
    assert.equal(await stored('ada'), undefined)
  },
  'a deleted user can be created again, without its former data': async (fixture) => {
    const { attributes, groups, create, remove, stored } = fixture
    await create(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]))
    await remove(userOf('ada'))
    await create(userOf('ada'))
    assert.deepEqual(await stored('ada'), { userID: 'ada', values: [[], [], []], groups: [] })
  },
  'repeating a change has no effect': async ({ attributes, groups, create, sync, stored }) => {
    await create(userOf('ada'))
    const user = userOf('ada', { [attributes[0]]: ['a@x.test', 'b@x.test'] }, [groups[0]])
    await sync(user)
    const once = await stored('ada')
    await sync(user)
    assert.deepEqual(await stored('ada'), once)
  },
  'addOnly removes nothing': async ({ attributes, groups, create, sync, stored }) => {
    const [many, one, other] = attributes
    await create(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[0]]))
    const more = userOf('ada', { [many]: ['a@x.test'], [other]: ['1'] }, [groups[1]])
    await sync(more, { addOnly: true })
    assert.deepEqual(await stored('ada'), {
      userID: 'ada',
      values: [['a@x.test'], ['Ada'], ['1']],
      groups: [groups[0], groups[1]],
    })
  },
  'attributes that are not listed stay unchanged': async ({ target, attributes, request, create, sync, stored }) => {
    const [many, one, other] = attributes
    await create(userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] }))
    const change = userOf('ada', { [many]: ['z@x.test'], [one]: ['Zoe'], [other]: ['9'] })
    await sync(change, { attributes: [one] })
    assert.deepEqual((await stored('ada'))?.values, [['a@x.test'], ['Zoe'], []])
    await target.createUser(userOf('bob', { [many]: ['b@x.test'], [one]: ['Bob'] }), [one], request)
    assert.deepEqual((await stored('bob'))?.values, [[], ['Bob'], []])
  },
  'keepGroups keeps memberships, even if the user has other groups': async (fixture) => {
    const { attributes, groups, create, sync, stored } = fixture
    await create(userOf('ada', {}, [groups[0], groups[1]]))
    const change = userOf('ada', { [attributes[1]]: ['Ada'] }, [groups[2]])
    await sync(change, { keepGroups: true })
    const after = await stored('ada')
    assert.deepEqual(after?.groups, [groups[0], groups[1]])
    assert.deepEqual(after?.values[1], ['Ada'])
  },
  'changing one user does not change another': async ({ attributes, groups, create, sync, remove, stored }) => {
    await create(userOf('ada', { [attributes[0]]: ['a@x.test'] }, [groups[0]]))
    await create(userOf('bob', { [attributes[0]]: ['b@x.test'] }, [groups[0]]))
    const ada = await stored('ada')
    await sync(userOf('bob'))
    await remove(userOf('bob'))
    assert.deepEqual(await stored('ada'), ada)
  },
  ...Object.fromEntries(
    hostileTexts.map((text) => [`hostile text is only text: ${JSON.stringify(text)}`, hostileCase(text)]),
  ),
  'concurrent changes are all made, and do not mix': async ({ attributes, groups, create, sync, stored }) => {
    const [, one, other] = attributes
    await create(userOf('ada'))
    await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        sync(userOf('ada', { [one]: [`v${i}`], [other]: [`v${i}`] }), { attributes: [one, other], keepGroups: true }),
      ),
    )
    const mixed = await stored('ada')
    assert.deepEqual(mixed?.values[1], mixed?.values[2])
    await Promise.all(groups.map((group) => sync(userOf('ada', {}, [group]), { attributes: [], addOnly: true })))
    assert.deepEqual((await stored('ada'))?.groups, [...groups].sort())
  },
  'a user that is created concurrently exists once': async ({ attributes, create, stored }) => {
    const user = userOf('ada', { [attributes[0]]: ['a@x.test'] })
    const attempts = await Promise.allSettled(Array.from({ length: 8 }, () => create(user)))
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') assert.equal(attempt.reason?.code, 'CONFLICT')
    }
    assert.ok(attempts.some(({ status }) => status === 'fulfilled'))
    assert.deepEqual(await stored('ada'), { userID: 'ada', values: [['a@x.test'], [], []], groups: [] })
  },
  'of several callers that create one user with different values, one succeeds and the others get an error': async (
    fixture,
  ) => {
    const { attributes, create, stored } = fixture
    const attempts = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) => create(userOf('ada', { [attributes[0]]: [`v${i}`] }))),
    )
    const winner = attempts.findIndex(({ status }) => status === 'fulfilled')
    const refused = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason?.code] : []))
    assert.deepEqual(refused, Array(7).fill('CONFLICT'))
    assert.deepEqual((await stored('ada'))?.values[0], [`v${winner}`])
  },
  'an attribute that the target reports as supported is stored, and any other is rejected': async (fixture) => {
    const { target, attributes, request, create, stored } = fixture
    const users = (await target.storable?.())?.users ?? 'any'
    if (users === 'any') return
    for (const name of attributes) assert.ok(users.has(name.toLowerCase()), `${name} is not among ${[...users]}`)
    const other = 'noSuchAttributeAnywhere'
    assert.ok(!users.has(other.toLowerCase()))
    const odd = userOf('ada', { [other]: ['x'] })
    await assert.rejects(target.createUser(odd, [other], request))
    assert.equal(await stored('ada'), undefined)
    if (target.requirePlaces === undefined) return
    const [many, one] = attributes
    const fitting = userOf('ada', { [many]: ['a@x.test'], [one]: ['Ada'] })
    for (const isNew of [true, false]) {
      const named = { code: 'BAD_REQUEST', attribute: other, publicText: new RegExp(other) }
      await assert.rejects(target.requirePlaces(odd, { attributes: [other], isNew }), named)
      await target.requirePlaces(fitting, { attributes: [many, one], isNew })
      if (isNew) await create(fitting)
    }
  },
}

function hostileCase(text: string): TargetCases[string] {
  return async ({ attributes, groups, create, sync, remove, stored }) => {
    const user = userOf(text, { [attributes[0]]: [text], [attributes[1]]: ['x'] }, [groups[0]])
    await create(userOf('bystander', { [attributes[1]]: ['y'] }))
    // A gateway behind the target refuses logins that look like others, and then stores nothing.
    const refusal = await create(user).catch((error: unknown) => error)
    if (refusal !== undefined) {
      if (loginProblem(text) === undefined || !(refusal instanceof GatewayError)) throw refusal
      assert.equal(refusal.code, 'BAD_REQUEST')
      return assert.equal(await stored(text), undefined)
    }
    assert.deepEqual(await stored(text), { userID: text, values: [[text], ['x'], []], groups: [groups[0]] })
    await sync(userOf(text, { [attributes[1]]: [text] }))
    assert.deepEqual(await stored(text), { userID: text, values: [[], [text], []], groups: [] })
    await remove(userOf(text))
    assert.equal(await stored(text), undefined)
    assert.deepEqual((await stored('bystander'))?.values, [[], ['y'], []])
  }
}

/** For targets that treat logins which differ only in letter case as one, like the rest of Gatehouse. */
export const spellingCases: TargetCases = {
  'a login in another letter case is the same user: found, changed and deleted, and never a second one': async (
    fixture,
  ) => {
    const { target, attributes, groups, create, sync, remove, stored } = fixture
    const [many, one] = attributes
    await create(userOf('Ada', { [many]: ['a@x.test'] }, [groups[0]]))
    const { userID } = (await stored('Ada')) ?? { userID: '' }
    for (const login of ['ADA', 'ada', 'aDa']) assert.equal((await stored(login))?.userID, userID, login)
    const second = userOf('ADA', { [many]: ['b@x.test'] }, [groups[1]])
    await assert.rejects(create(second), { code: 'CONFLICT' })
    const changed = userOf('aDA', { [many]: ['a@x.test'], [one]: ['Ada'] }, [groups[1]])
    await sync(changed)
    const expected = { userID, values: [['a@x.test'], ['Ada'], []], groups: [groups[1]] }
    for (const login of ['Ada', 'ADA']) assert.deepEqual(await stored(login), expected)
    if (hasLookups(target)) {
      assert.equal((await target.lookupUserByLogin('aDA'))?.userID, userID)
      const filter = { kind: 'equal', attribute: 'userID', value: 'ADA' } as const
      const { items } = await target.searchUsers({ filter, offset: 0, limit: 5 })
      assert.deepEqual(
        items.map((user) => user.userID),
        [userID],
      )
    }
    await remove(userOf('ADA'))
    assert.equal(await stored('Ada'), undefined)
  },
}
