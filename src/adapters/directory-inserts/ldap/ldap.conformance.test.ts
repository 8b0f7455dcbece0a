import { Attribute, Change } from 'ldapts'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import { insertConformance } from '#sdk/conformance/insert-conformance.ts'
import { addEntry, asAdmin } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { fakeParams, fakeParseContext, issueTexts, noIssues, type ParamValues } from '#testing/modules/fake-parse.ts'
import ldap from './ldap.ts'

const suffix = Dn.parse('ou=staff,o=Tremolo')
const anything: Filter = { kind: 'present', attribute: 'objectClass' }

describe.skipIf(inject('slapd') === '')('the LDAP insert on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await startSlapd()
    const person = { objectClass: ['inetOrgPerson'], sn: ['x'] }
    for (const [uid, title] of [
      ['ada', 'Countess'],
      ['bob', 'Builder'],
      ['a,b\\', '*)(uid=*'],
    ] as const) {
      const dn = Dn.parse(slapd.peopleDn).child('uid', uid).toString()
      const manager = uid === 'bob' ? { manager: [`uid=ada,${slapd.peopleDn}`] } : {}
      await addEntry(slapd, dn, {
        ...person,
        ...manager,
        cn: [uid],
        uid: [uid],
        title: [title],
        userPassword: [`password of ${uid}`],
      })
    }
    await addEntry(slapd, `cn=crew,${slapd.groupsDn}`, {
      objectClass: ['groupOfNames'],
      cn: ['crew'],
      member: [`uid=ada,${slapd.peopleDn}`, 'UID=bob, ou=People,dc=example,dc=test', 'cn=stranger,dc=elsewhere'],
    })
    await addEntry(slapd, `cn=posix,${slapd.groupsDn}`, {
      objectClass: ['posixGroup'],
      cn: ['posix'],
      gidNumber: ['1'],
      memberUid: ['ada', 'nobody'],
    })
  })
  afterAll(() => slapd.stop())

  async function open(more: ParamValues = {}) {
    const issues = noIssues()
    const given: ParamValues = {
      url: slapd.url,
      adminDN: slapd.adminDn,
      adminPasswd: slapd.adminPassword,
      searchBase: slapd.baseDn,
      ...more,
    }
    const prepared = ldap.prepare(fakeParams(given, ['adminPasswd']), issues, fakeParseContext())
    expect(issueTexts(issues.list)).toEqual([])
    const insert = await prepared.create({ ...fakeModuleHost(), name: 'staff', suffix })
    onTestFinished(() => insert.close?.())
    const names = async (
      filter: Filter | string,
      base = 'ou=staff,o=Tremolo',
      scope: 'base' | 'one' | 'sub' = 'sub',
    ) => {
      const parsed = typeof filter === 'string' ? parseFilter(filter) : filter
      const page = await insert.search({ base: Dn.parse(base), scope, filter: parsed, limit: 100 })
      return page.entries.map(({ dn }) => dn.toString())
    }
    return { insert, names }
  }

  test('entries are below the suffix, in all scopes', async () => {
    const { names } = await open()
    expect(await names('(uid=ADA)')).toEqual(['uid=ada,ou=people,ou=staff,o=Tremolo'])
    expect(await names(anything, 'ou=staff,o=Tremolo', 'base')).toEqual(['ou=staff,o=Tremolo'])
    expect((await names(anything, 'ou=staff,o=Tremolo', 'one')).sort()).toEqual([
      'ou=groups,ou=staff,o=Tremolo',
      'ou=people,ou=staff,o=Tremolo',
    ])
    expect(await names(anything, 'ou=nowhere,ou=staff,o=Tremolo')).toEqual([])
    expect(await names(anything, 'dc=example,dc=test')).toEqual([])
  })

  test('names in attributes are translated to the virtual tree and back', async () => {
    const { insert, names } = await open()
    const [entry] = (await insert.search({ base: suffix, scope: 'sub', filter: parseFilter('(uid=bob)'), limit: 1 }))
      .entries
    expect(entry?.attributes.values('manager')).toEqual(['uid=ada,ou=people,ou=staff,o=Tremolo'])
    expect(entry?.attributes.values('memberOf')).toEqual(['cn=crew,ou=groups,ou=staff,o=Tremolo'])
    expect(entry?.attributes.has('userPassword')).toBe(false)
    expect(await names('(manager=uid=Ada, ou=people,ou=staff,o=tremolo)')).toEqual([
      'uid=bob,ou=people,ou=staff,o=Tremolo',
    ])
    expect(await names('(manager=uid=ada,ou=people,dc=example,dc=test)')).toEqual([])
  })

  test('only the names of listed attributes are those of the virtual tree; filters take the others as the server has them', async () => {
    const { insert, names } = await open({ dnAttribs: ['Manager'] })
    const bob = 'uid=bob,ou=people,ou=staff,o=Tremolo'
    const [entry] = (await insert.search({ base: Dn.parse(bob), scope: 'base', filter: anything, limit: 1 })).entries
    expect(entry?.attributes.values('memberOf')).toEqual([`cn=crew,${slapd.groupsDn}`])
    expect(entry?.attributes.values('manager')).toEqual(['uid=ada,ou=people,ou=staff,o=Tremolo'])
    const crew = `memberOf=CN=Crew, ou=groups,${slapd.baseDn}`
    for (const filter of [
      `(&(uid=bob)(${crew}))`,
      `(|(${crew})(uid=nobody))`,
      '(manager=uid=ada,ou=people,ou=staff,o=Tremolo)',
    ])
      expect(await names(filter, bob), filter).toEqual([bob])
    for (const filter of [
      '(memberOf=cn=crew,ou=groups,ou=staff,o=Tremolo)',
      `(!(${crew}))`,
      `(manager=uid=ada,${slapd.peopleDn})`,
    ])
      expect(await names(filter, bob), filter).toEqual([])
    const everyone = await insert.members(Dn.parse('cn=crew,ou=groups,ou=staff,o=Tremolo'), 10)
    expect(everyone.map(({ key }) => key)).toContain(Dn.parse(bob).key)

    const plain = await open({ dnAttribs: ['none'] })
    expect(await plain.names(`(manager=uid=ada,${slapd.peopleDn})`)).toEqual([bob])
  })

  test('the identity of an entry and its lock are shown as well', async () => {
    const dn = `uid=locked,${slapd.peopleDn}`
    await addEntry(slapd, dn, { objectClass: ['inetOrgPerson'], uid: ['locked'], cn: ['l'], sn: ['l'] })
    onTestFinished(() => asAdmin(slapd, (client) => client.del(dn)))
    const lock = new Attribute({ type: 'pwdAccountLockedTime', values: ['000001010000Z'] })
    await asAdmin(slapd, (client) => client.modify(dn, [new Change({ operation: 'add', modification: lock })]))
    const { insert } = await open()
    const base = Dn.parse('uid=locked,ou=people,ou=staff,o=Tremolo')
    const [entry] = (await insert.search({ base, scope: 'base', filter: anything, limit: 1 })).entries
    expect(entry?.attributes.first('pwdAccountLockedTime')).toBe('000001010000Z')
    expect(entry?.attributes.first('entryUUID')).toMatch(/^[\da-f-]{36}$/)
  })

  test('filters are exact, hostile values included', async () => {
    const { names } = await open()
    const hostile = 'uid=a\\,b\\\\,ou=people,ou=staff,o=Tremolo'
    expect(await names({ kind: 'equal', attribute: 'title', value: '*)(uid=*' })).toEqual([hostile])
    expect(await names({ kind: 'equal', attribute: 'title', value: '*' })).toEqual([])
    expect(await names({ kind: 'equal', attribute: 'uid', value: 'a,b\\' })).toEqual([hostile])
    expect(await names({ kind: 'equal', attribute: 'no such attribute)(uid=*', value: 'x' })).toEqual([])
    expect(await names('(&(uid=*)(!(title=Builder)))')).toHaveLength(2)
    expect(await names('(title>=c)')).toEqual(['uid=ada,ou=people,ou=staff,o=Tremolo'])
    expect(await names({ kind: 'equal', attribute: 'title', value: 'COUNTESS', caseExact: true })).toEqual([])
    expect(await names(anything, hostile, 'base')).toEqual([hostile])
  })

  test('members: by name, of strangers too, and by login', async () => {
    const { insert } = await open()
    const crew = Dn.parse('cn=crew,ou=groups,ou=staff,o=Tremolo')
    const posix = Dn.parse('cn=posix,ou=groups,ou=staff,o=Tremolo')
    const person = (uid: string) => Dn.parse('ou=people,ou=staff,o=Tremolo').child('uid', uid)
    const members = (await insert.members(crew, 10)).map((dn) => dn.key).sort()
    expect(members).toEqual([Dn.parse('cn=stranger,dc=elsewhere').key, person('ada').key, person('bob').key].sort())
    expect(await insert.members(crew, 2)).toHaveLength(2)
    expect((await insert.members(posix, 10)).map((dn) => dn.key)).toEqual([person('ada').key])
    const asked = [
      insert.isMember(crew, person('BOB')),
      insert.isMember(crew, person('a,b\\')),
      insert.isMember(crew, Dn.parse('cn=stranger,dc=elsewhere')),
      insert.isMember(posix, person('ada')),
      insert.isMember(posix, Dn.parse('uid=ada,o=elsewhere')),
      insert.isMember(Dn.parse('cn=none,ou=groups,ou=staff,o=Tremolo'), person('ada')),
    ]
    expect(await Promise.all(asked)).toEqual([true, false, true, true, false, false])
  })

  test('passwords are checked by the server', async () => {
    const { insert } = await open()
    const dn = (uid: string) => Dn.parse('ou=people,ou=staff,o=Tremolo').child('uid', uid)
    const checks: [string, string][] = [
      ['ada', 'password of ada'],
      ['a,b\\', 'password of a,b\\'],
      ['ada', 'x'],
      ['ada', ''],
      ['nobody', 'x'],
    ]
    const answers = await Promise.all(checks.map(([uid, password]) => insert.bind?.(dn(uid), password)))
    expect(answers).toEqual([true, true, false, false, false])
  })

  test('pages follow one another without gap or overlap, for short answers and long ones', async () => {
    const { insert } = await open()
    const more = Array.from({ length: 230 }, (_, i) => `m${i}`)
    await Promise.all(
      more.map((uid) => addEntry(slapd, `uid=${uid},${slapd.peopleDn}`, { objectClass: ['account'], uid: [uid] })),
    )
    for (const [filter, size] of [
      ['(objectClass=inetOrgPerson)', 3],
      ['(uid=*)', 233],
    ] as const) {
      const found: string[] = []
      let after: string | undefined
      do {
        const search = { base: suffix, scope: 'sub', filter: parseFilter(filter), limit: size < 10 ? 2 : 100 } as const
        const page = await insert.search({ ...search, count: true, ...(after === undefined ? {} : { after }) })
        expect(page.total).toBe(size)
        found.push(...page.entries.map(({ attributes }) => attributes.first('uid') ?? ''))
        after = page.next
      } while (after !== undefined && found.length <= size)
      expect(new Set(found).size).toBe(size)
      expect(found).toHaveLength(size)
    }
    const strange = insert.search({ base: suffix, scope: 'sub', filter: anything, limit: 1, after: 'nonsense' })
    await expect(strange).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  })

  test('an unreachable server never looks like an empty one', async () => {
    const { insert } = await open({ url: 'ldap://127.0.0.1:1' })
    const dn = Dn.parse('uid=ada,ou=people,ou=staff,o=Tremolo')
    const asked = [
      () => insert.search({ base: suffix, scope: 'sub', filter: anything, limit: 1 }),
      () => insert.isMember(dn, dn),
      () => insert.members(dn, 1),
      () => insert.bind?.(dn, 'x'),
    ]
    for (const ask of asked) {
      await expect(ask()).rejects.toMatchObject({
        code: 'TARGET_UNREACHABLE',
        message: expect.stringContaining('directory insert "staff"'),
      })
    }
  })

  // Last, since it adds entries that the other tests would see.
  describe('with the users of the suite', () => {
    const branch = 'ou=conformance,dc=example,dc=test'
    beforeAll(async () => {
      for (const dn of [branch, `ou=people,${branch}`, `ou=groups,${branch}`]) {
        await addEntry(slapd, dn, { objectClass: ['organizationalUnit'] })
      }
      const dnOf = (uid: string) => `uid=${uid},ou=people,${branch}`
      for (const uid of ['ada', 'bob', 'carol']) {
        await addEntry(slapd, dnOf(uid), {
          objectClass: ['inetOrgPerson'],
          uid: [uid],
          cn: [uid],
          sn: [uid],
          mail: [`${uid}@example.com`],
          userPassword: [`password of ${uid}`],
        })
      }
      for (const [cn, member] of [
        ['admins', [dnOf('ada'), dnOf('bob')]],
        ['guests', ['cn=nobody']],
      ] as const) {
        await addEntry(slapd, `cn=${cn},ou=groups,${branch}`, {
          objectClass: ['groupOfNames'],
          cn: [cn],
          member: [...member],
        })
      }
    })

    insertConformance(
      async () => ({
        insert: (await open({ searchBase: branch })).insert,
        suffix,
        person: (login) => suffix.child('ou', 'people').child('uid', login),
        group: (name) => suffix.child('ou', 'groups').child('cn', name),
        login: 'uid',
        password: 'password of ada',
      }),
      { test },
    )
  })
})
