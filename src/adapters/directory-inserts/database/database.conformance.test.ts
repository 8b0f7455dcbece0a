import { describe, expect, test } from 'vitest'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { Dn } from '#identity/dn.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { insertConformance } from '#sdk/conformance/insert-conformance.ts'
import { openStorage } from '#server/composition/stores.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { createGroup, deleteGroup } from '#testing/databases/directory-writes.ts'
import { trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileInsertTrial } from '#testing/hostile/hostile-insert-trial.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { DatabaseInsert } from './database.ts'

const suffix = Dn.parse('ou=people,o=Tremolo')
const groups = suffix.child('ou', 'groups')
const password = 'correct horse, battery'

onEachDatabase('the embedded directory', (freshUrl) => {
  async function open() {
    const url = await freshUrl()
    const storage = openStorage({ url, clock: systemClock, log: silentLogger })
    const users = storage.userDirectory({ name: 'people' })
    const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }), leastCost)
    const insert = new DatabaseInsert(users, passwords, {
      people: suffix,
      groups,
      userAttribute: 'uid',
      groupAttribute: 'cn',
    })
    return {
      url,
      insert,
      users,
      suffix,
      login: 'uid',
      password,
      person: (login: string) => suffix.child('uid', login),
      group: (name: string) => groups.child('cn', name),
      close: async () => {
        await insert.close()
        await storage.close()
      },
    }
  }

  async function seeded() {
    const fixture = await open()
    const add = (login: string, member: boolean, secret?: string) =>
      fixture.insert.addPerson({
        login,
        attributes: new Map([['mail', [`${login}@example.com`]]]),
        groups: member ? ['admins'] : [],
        password: secret,
      })
    await add('ada', true, password)
    await add('bob', true, 'another password')
    await add('carol', false)
    await createGroup(fixture.users, 'guests')
    return fixture
  }

  describe('as an insert', () => insertConformance(seeded, { test: (name, run) => test(name, run) }))

  test('a login that passes to another user does not come with the password', async () => {
    const { insert, person, close } = await seeded()
    expect(await insert.removePerson('ADA')).toHaveLength(1)
    expect(await insert.removePerson('ada')).toEqual([])
    await insert.addPerson({ login: 'ada', attributes: new Map(), groups: [], password: undefined })
    expect(await insert.bind(person('ada'), password)).toBe(false)
    expect((await insert.listPeople(10)).people.map(({ login, hasPassword }) => `${login} ${hasPassword}`)).toEqual([
      'bob true',
      'carol false',
      'ada false',
    ])
    expect(await insert.setPassword('ada', 'a new password')).toMatchObject([{ attribute: 'userPassword' }])
    expect(await insert.bind(person('ada'), 'a new password')).toBe(true)
    await close()
  })

  test('hashes do not appear among the attributes of users, nor match filters', async () => {
    const { insert, users, close } = await seeded()
    const { entries } = await insert.search({
      base: suffix,
      scope: 'sub',
      filter: { kind: 'and', filters: [] },
      limit: 100,
    })
    expect(JSON.stringify(entries.map(({ attributes }) => attributes.toObject()))).not.toContain('argon2')
    for (const attribute of ['hash', 'userPassword']) {
      expect((await users.searchUsers({ filter: { kind: 'present', attribute }, offset: 0, limit: 10 })).total).toBe(0)
    }
    await close()
  })

  test('a taken login is a conflict, a short password is rejected, and no user is left behind', async () => {
    const { insert, close } = await seeded()
    const add = (login: string, secret: string) =>
      insert.addPerson({ login, attributes: new Map(), groups: [], password: secret })
    await expect(add('Ada', 'long enough')).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(add('dora', 'short')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(insert.setPassword('nobody', 'long enough')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect((await insert.listPeople(10)).people).toHaveLength(3)
    await close()
  })

  test('each hostile value passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    const { insert, users, person, group, url, close } = await open()
    const row = url.startsWith('sqlite:') ? 'database on SQLite' : 'database on PostgreSQL'
    await hostileInsertTrial(row, {
      insert,
      suffix,
      person,
      group,
      attribute: 'mail',
      addGroup: (name) => createGroup(users, name),
      removeGroup: (name) => deleteGroup(users, name),
      addPerson: (login, mail, crew) =>
        insert.addPerson({ login, attributes: new Map([['mail', mail]]), groups: [crew], password: undefined }),
      removePerson: (login) => insert.removePerson(login),
      setPassword: (login, secret) => insert.setPassword(login, secret),
    })
    await close()
  })
})
