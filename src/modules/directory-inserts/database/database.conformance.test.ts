import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { silentLogger } from '#kernel/logger.ts'
import { DatabaseInsert } from '#modules/directory-inserts/database/database-insert.ts'
import { Passwords } from '#modules/directory-inserts/database/passwords.ts'
import { insertConformance } from '#sdk/conformance/insert-conformance.ts'
import { openStorage } from '#storage/open.ts'
import { onEachDatabase } from '#testing/databases.ts'

const suffix = Dn.parse('ou=people,o=Tremolo')
const groups = suffix.child('ou', 'groups')
const password = 'correct horse, battery'

onEachDatabase('the embedded directory', (freshUrl) => {
  async function open() {
    const storage = openStorage({ url: await freshUrl(), clock: systemClock, log: silentLogger })
    const users = storage.userDirectory({ name: 'people' })
    const passwords = new Passwords(storage.userDirectory({ name: 'people/passwords' }))
    const insert = new DatabaseInsert(users, passwords, {
      people: suffix,
      groups,
      userAttribute: 'uid',
      groupAttribute: 'cn',
    })
    return {
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
    await fixture.users.createGroup('guests', new Map())
    return fixture
  }

  describe('as an insert', () => insertConformance(seeded, { test: (name, run) => test(name, run) }))

  test('a login that somebody else gets does not come with the password', async () => {
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

  test('hashes are not to be found among the attributes of people, nor by filters', async () => {
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

  test('a login that is taken is a conflict, a short password refused, and nobody is left behind', async () => {
    const { insert, close } = await seeded()
    const add = (login: string, secret: string) =>
      insert.addPerson({ login, attributes: new Map(), groups: [], password: secret })
    await expect(add('Ada', 'long enough')).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(add('dora', 'short')).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    await expect(insert.setPassword('nobody', 'long enough')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect((await insert.listPeople(10)).people).toHaveLength(3)
    await close()
  })

  test('10,000 hostile values: what comes back is what went in, and nobody else is found or touched', async () => {
    const { insert, users, person, close } = await seeded()
    const before = JSON.stringify((await users.searchUsers({ offset: 0, limit: 10 })).items)
    const values = fc.sample(hostile, { numRuns: 10_000, seed: 5 })
    for (let start = 0; start < values.length; start += 1000) {
      await Promise.all(values.slice(start, start + 1000).map((value, i) => lookUp(value, start + i)))
    }
    expect(JSON.stringify((await users.searchUsers({ offset: 0, limit: 10 })).items)).toBe(before)
    await close()

    async function lookUp(value: string, i: number): Promise<void> {
      const byName = await insert.search({
        base: person(value),
        scope: 'base',
        filter: present('objectClass'),
        limit: 5,
      })
      expect(byName.entries.map(({ dn }) => dn.rdns[0]?.[0]?.value)).toEqual([])
      const filters = ['uid', 'mail', 'memberOf', 'uniqueMember'].map((attribute) => equal(attribute, value))
      const search = { base: suffix, scope: 'sub', filter: { kind: 'or', filters }, limit: 5 } as const
      if (isStorable(value)) expect((await insert.search(search)).entries).toEqual([])
      else await expect(insert.search(search)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      expect(await insert.isMember(groups.child('cn', value), person(value))).toBe(false)
      if (i % 20 !== 0) return
      const login = `${value} ${i}`
      try {
        await insert.addPerson({ login, attributes: new Map([['odd', [value]]]), groups: [], password: undefined })
      } catch (error) {
        expect(error).toBeInstanceOf(GatewayError)
        expect((error as GatewayError).code).toBe('BAD_REQUEST')
        return
      }
      const stored = await insert.search({
        base: person(login),
        scope: 'base',
        filter: present('objectClass'),
        limit: 5,
      })
      expect(stored.entries.map(({ attributes }) => [attributes.first('uid'), attributes.first('odd')])).toEqual([
        [login, value],
      ])
      const again = Dn.parse(stored.entries[0]?.dn.toString() ?? '')
      expect(
        (await insert.search({ base: again, scope: 'base', filter: present('odd'), limit: 5 })).entries,
      ).toHaveLength(1)
      expect(await insert.removePerson(login)).toHaveLength(1)
    }
  }, 120_000)
})

/** What no database can hold is refused, in values as in filters. */
const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

const equal = (attribute: string, value: string): Filter => ({ kind: 'equal', attribute, value })
const present = (attribute: string): Filter => ({ kind: 'present', attribute })

/** Texts that mean something to filters, names, SQL or terminals, never one of the people there are. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '*',
        '(',
        ')',
        '\\',
        ',',
        '+',
        '"',
        '<',
        '>',
        ';',
        '=',
        '#',
        ' ',
        '\0',
        "'",
        '--',
        '%',
        '_',
        '😀',
      ),
      fc.constantFrom(
        'uid=ada',
        'ada',
        ')(objectClass=*',
        '\\2a',
        'ou=people',
        '__proto__',
        '\ud800',
        '\r\n',
        'cn=admins',
      ),
      fc.string({ maxLength: 5 }),
    ),
    { minLength: 2, maxLength: 6 },
  )
  .map((parts) => parts.join(''))
  .filter((text) => !/^\s*(?:ada|bob|carol)\s*$/i.test(text) && text.trim() !== '')
