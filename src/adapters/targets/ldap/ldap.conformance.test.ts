import { Attribute, Change } from 'ldapts'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { LdapServer } from '#protocols/ldap/ldap-server.ts'
import { targetConformance } from '#sdk/conformance/target-conformance.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { addEntry, asAdmin, newBranch, openLdap, quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/ldap/slapd.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'

const names = ['description', 'givenName', 'title'] as const

describe.skipIf(inject('slapd') === '')('the LDAP target on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await startSlapd({
      tls: true,
      settings: [
        `limits dn.exact="cn=reader,dc=example,dc=test" size=5 size.pr=5 size.prtotal=5`,
        'access to * by dn.exact="cn=writer,dc=example,dc=test" write by * read',
      ],
    })
    for (const name of ['reader', 'writer']) {
      await addEntry(slapd, `cn=${name},${slapd.baseDn}`, {
        objectClass: ['applicationProcess', 'simpleSecurityObject'],
        userPassword: [`password of ${name}`],
      })
    }
  })
  afterAll(() => slapd.stop())

  async function open(more: ParamValues = {}) {
    const branch = await newBranch(slapd)
    const target = await openLdap(slapd, branch, more)
    onTestFinished(() => void target.close?.())
    return { target, branch }
  }

  const layouts: Record<string, ParamValues> = {
    uniqueMember: {},
    'member and versions': { versionAttribute: 'entryCSN', groupObjectClass: ['groupOfNames'] },
    memberOf: { groupObjectClass: ['groupOfNames'], memberOf: 'true' },
    'logins for identifiers': { idAttribute: 'none' },
    'identifiers that are bytes': { binaryAttributes: ['entryUUID'] },
    'other names for attributes': {
      versionAttribute: 'entryCSN',
      'attribute.description': 'title',
      'attribute.title': 'description',
      'attribute.givenName': 'street',
      'groupAttribute.description': 'businessCategory',
    },
    memberUid: { groupObjectClass: ['device', 'extensibleObject'], memberAttribute: 'memberUid' },
    'names other than the login': { dnPattern: 'cn=person ${uid},SEARCHBASE', groupDnPattern: 'ou=${name},SEARCHBASE' },
  }
  for (const [layout, params] of Object.entries(layouts)) {
    const opened = async () => {
      const branch = await newBranch(slapd)
      const given = Object.entries(params).map(([name, value]) => [name, String(value).replace('SEARCHBASE', branch)])
      const texts = Object.fromEntries(given.filter(([name]) => typeof params[String(name)] === 'string'))
      const target = await openLdap(slapd, branch, { ...params, ...texts })
      for (const name of ['group1', 'group2', 'group3']) await target.createGroup(name, {}, request)
      return { target, close: async () => target.close?.() }
    }
    targetConformance(`LDAP with ${layout}`, opened, {
      // memberUid is ASCII by its syntax: see below.
      test: (name, run) => (layout === 'memberUid' && /hostile text.*日本語/.test(name) ? undefined : test(name, run)),
      attributes: names,
    })
  }

  test('a login that its groups cannot store is rejected by name, and no part of it stays', async () => {
    const { target } = await open({ groupObjectClass: ['device', 'extensibleObject'], memberAttribute: 'memberUid' })
    await target.createGroup('crew', {}, request)
    const creation = target.createUser(userOf('日本語', {}, ['crew']), names, request)
    await expect(creation).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: expect.stringContaining('memberUid'),
    })
    expect(await target.findUser('日本語', [], request)).toBeUndefined()
  })

  test('a missing group is reported before any change', async () => {
    const { target } = await open()
    const creation = target.createUser(userOf('ada', {}, ['nowhere']), names, request)
    await expect(creation).rejects.toMatchObject({
      code: 'TARGET_FAILED',
      message: expect.stringContaining('"nowhere"'),
    })
    expect(await target.findUser('ada', [], request)).toBeUndefined()
  })

  test('a creation that broke off before the memberships is continued', async () => {
    const { target, branch } = await open()
    for (const name of ['one', 'two']) await target.createGroup(name, {}, request)
    await addEntry(slapd, `uid=ada,${branch}`, {
      objectClass: ['account', 'extensibleObject'],
      uid: ['ada'],
      title: ['Dr'],
    })
    const changes: TargetChange[] = []
    const telling = { ...request, audit: (change: TargetChange) => void changes.push(change) }
    await target.createUser(userOf('ada', { title: ['Dr'] }, ['one', 'two']), names, telling)
    expect((await target.findUser('ada', [], request))?.groups.toSorted()).toEqual(['one', 'two'])
    expect(changes.map(({ subject, action, value }) => `${subject} ${action} ${value}`)).toEqual([
      'group add one',
      'group add two',
    ])
  })

  test('attributes have our names here and the server’s names there, in every message', async () => {
    const { target, branch } = await open({
      'attribute.name.familyName': 'sn',
      'attribute.urn:example:User:floor': 'roomNumber',
      'groupAttribute.externalId': 'businessCategory',
      emptyTexts: 'leaveOut',
    })
    const own = ['name.familyName', 'urn:example:User:floor', 'title']
    const changes: TargetChange[] = []
    const telling = { ...request, audit: (change: TargetChange) => void changes.push(change) }
    const given = { 'name.familyName': ['Lovelace', ''], 'urn:example:User:floor': ['3'], title: [''] }
    await target.createUser(userOf('ada', given), own, telling)
    const found = await asAdmin(slapd, (client) => client.search(branch, { filter: '(uid=ada)' }))
    expect(found.searchEntries).toMatchObject([{ sn: 'Lovelace', roomNumber: '3' }])
    expect(found.searchEntries[0]).not.toHaveProperty('title')
    expect(changes.map(({ attribute }) => attribute)).toEqual(['userID', ...own.slice(0, 2)])
    const filter = { kind: 'equal', attribute: 'NAME.familyname', value: 'lovelace' } as const
    const sort = { attribute: 'urn:example:User:floor', descending: false, caseExact: false } as const
    const page = await target.searchUsers({ filter, sort, offset: 0, limit: 5, attributes: ['name.familyName'] })
    expect(page.items.map(({ attributes }) => attributes.toObject())).toEqual([{ 'name.familyName': ['Lovelace'] }])
    const cleared = { ...syncOptions(own), attributes: own }
    await target.syncUser(userOf('ada', { 'urn:example:User:floor': [''] }), cleared, request)
    expect((await target.lookupUserByLogin('ada'))?.attributes.names()).toEqual(['uid'])
    await target.createGroup('crew', { externalId: ['7'] }, request)
    expect((await target.lookupGroupByName('crew'))?.attributes?.toObject()).toMatchObject({ externalId: ['7'] })
    await target.updateGroup('crew', { attributes: { externalId: [''] } }, request)
    expect((await target.lookupGroupByName('crew'))?.attributes?.has('externalId')).toBe(false)
  })

  test('a long answer: pages without gap or overlap, with the latest writes, and without users who no longer match', async () => {
    const { target, branch } = await open()
    const logins = Array.from({ length: 230 }, (_, i) => `m${String(i).padStart(3, '0')}`)
    await asAdmin(slapd, async (client) => {
      for (const uid of logins) {
        const objectClass = ['account', 'extensibleObject']
        await client.add(`uid=${uid},${branch}`, { objectClass, uid, title: 'sailor' })
      }
    })
    const filter = { kind: 'equal', attribute: 'title', value: 'SAILOR' } as const
    const page = async (offset: number, limit: number) => {
      const found = await target.searchUsers({ filter, offset, limit })
      return { total: found.total, logins: found.items.map(({ userID }) => userID) }
    }
    expect(await page(0, 100)).toEqual({ total: 230, logins: logins.slice(0, 100) })
    expect(await page(200, 100)).toEqual({ total: 230, logins: logins.slice(200) })
    await target.createUser(userOf('m0000', { title: ['sailor'] }), names, request)
    expect(await page(0, 3)).toEqual({ total: 231, logins: ['m000', 'm0000', 'm001'] })
    await asAdmin(slapd, async (client) => {
      await client.del(`uid=m000,${branch}`)
      const modification = new Attribute({ type: 'title', values: ['captain'] })
      await client.modify(`uid=m001,${branch}`, new Change({ operation: 'replace', modification }))
    })
    expect((await page(0, 4)).logins).toEqual(['m0000', 'm002'])
    await target.deleteUser(userOf('m0000'), request)
    expect(await page(0, 2)).toEqual({ total: 228, logins: ['m002', 'm003'] })
  })

  test('an empty text is rejected by name, unless configured to be left out', async () => {
    const { target } = await open()
    const creation = target.createUser(userOf('ada', { title: [''] }), names, request)
    await expect(creation).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText: expect.stringContaining('title') })
  })

  test('a required attribute gets its default, and keeps it when the value is removed', async () => {
    const { target, branch } = await open({
      objectClass: ['inetOrgPerson'],
      'default.sn': '${uid}',
      'default.cn': '${givenName} (${uid})',
    })
    await target.createUser(userOf('ada', { givenName: ['Ada'] }), ['givenName', 'sn'], request)
    const cn = await asAdmin(slapd, (client) =>
      client.search(branch, { filter: '(uid=ada)', attributes: ['cn', 'sn'] }),
    )
    expect(cn.searchEntries[0]).toMatchObject({ cn: 'Ada (ada)', sn: 'ada' })
    await target.createUser(userOf('ada', { givenName: ['Ada'] }), ['givenName', 'sn'], request)
    await target.syncUser(userOf('ada', { sn: ['Lovelace'] }), syncOptions(['sn']), request)
    await target.syncUser(userOf('ada'), syncOptions(['sn']), request)
    expect((await target.findUser('ada', ['sn'], request))?.attributes.values('sn')).toEqual(['ada'])
  })

  test('an attribute that the class does not allow is rejected by name, and nothing changes', async () => {
    const { target } = await open({ objectClass: ['account'] })
    await target.createUser(userOf('ada', { description: ['x'] }), ['description'], request)
    const change = target.syncUser(
      userOf('ada', { description: ['y'], givenName: ['Ada'] }),
      syncOptions(['description', 'givenName']),
      request,
    )
    await expect(change).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      publicText: expect.stringContaining('givenName'),
    })
    expect((await target.findUser('ada', ['description'], request))?.attributes.first('description')).toBe('x')
    const unknown = target.createUser(userOf('bob', { noSuchThing: ['1'] }), ['noSuchThing'], request)
    await expect(unknown).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      message: expect.stringContaining('noSuchThing'),
    })
  })

  const strange: Record<string, string> = {
    'a NUL': 'a\0b',
    'a byte order mark': '\ufeffx',
    'white space': '  a  b\t ',
    '64 KB': 'x'.repeat(65_536),
    emoji: '👩‍👩‍👧‍👦 🏳️‍🌈',
    'a DN': 'uid=a\\,b+cn="x";#<>',
  }
  for (const [what, value] of Object.entries(strange)) {
    test(`${what} comes back unchanged`, async () => {
      const { target } = await open()
      await target.createUser(userOf('ada', { description: [value] }), ['description'], request)
      expect((await target.findUser('ada', ['description'], request))?.attributes.values('description')).toEqual([
        value,
      ])
    })
  }

  test('a value that cannot be stored is rejected by name', async () => {
    const { target } = await open()
    const cases: [Record<string, string[]>, string][] = [
      [{ title: ['a\ud800b'] }, 'title'],
      [{ description: ['same', 'SAME'] }, 'description'],
      [{ jpegPhoto: ['not base64!'] }, 'jpegPhoto'],
      [{ mail: ['日本語'] }, 'mail'],
      [{ 'a b': ['x'] }, 'a b'],
    ]
    for (const [attributes, name] of cases) {
      const creation = target.createUser(userOf('ada', attributes), Object.keys(attributes), request)
      await expect(creation).rejects.toMatchObject({ code: 'BAD_REQUEST', message: expect.stringContaining(name) })
    }
    for (const login of ['', 'a\ud800']) {
      await expect(target.createUser(userOf(login), [], request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    }
    const long = target.createUser(userOf(','.repeat(600)), [], request)
    await expect(long).rejects.toMatchObject({ code: 'BAD_REQUEST' })
    expect((await target.searchUsers({ offset: 0, limit: 10 })).total).toBe(0)
  })

  test('bytes are base64 here, and are found by it', async () => {
    const { target } = await open()
    const photo = Buffer.from([0xff, 0xd8, 0, 1, 2, 0x2a, 0x28, 0x29]).toString('base64')
    await target.createUser(userOf('ada', { jpegPhoto: [photo] }), ['jpegPhoto'], request)
    expect((await target.lookupUserByLogin('ada'))?.attributes.values('jpegPhoto')).toEqual([photo])
  })

  test('logins that the server considers equal are one, and white space still counts in a lookup', async () => {
    const { target } = await open()
    await target.createUser(userOf('ada  king'), [], request)
    expect(await target.lookupUserByLogin('ada king')).toBeUndefined()
    expect((await target.lookupUserByLogin('ADA  king'))?.userID).toBe('ada  king')
    await expect(target.createUser(userOf('ada king'), [], request)).rejects.toMatchObject({ code: 'CONFLICT' })
  })

  test('a new login may have any characters, and memberships follow', async () => {
    for (const layout of [layouts['uniqueMember'], layouts['memberOf'], layouts['memberUid']]) {
      const { target } = await open(layout)
      await target.createGroup('crew', {}, request)
      await target.createUser(userOf('a\\', {}, ['crew']), [], request)
      for (const [from, to] of [
        ['a\\', 'b,c\\'],
        ['b,c\\', '#d+ '],
        ['#d+ ', 'E'],
        ['E', 'e'],
      ] as const) {
        await target.syncUser(userOf(from), syncOptions([], { keepGroups: true, newUserID: to }), request)
        expect((await target.findUser(to, [], request))?.groups).toEqual(['crew'])
      }
      expect((await target.lookupGroupByName('crew'))?.members).toEqual(['e'])
    }
  })

  test('a group stays when its last member leaves', async () => {
    const { target, branch } = await open({ groupObjectClass: ['groupOfNames'] })
    await addEntry(slapd, `cn=found,${branch}`, {
      objectClass: ['groupOfNames'],
      cn: ['found'],
      member: [`uid=ada,${branch}`],
    })
    await target.createUser(userOf('ada', {}, ['found']), [], request)
    await target.deleteUser(userOf('ada'), request)
    expect(await target.lookupGroupByName('found')).toMatchObject({ name: 'found', members: [] })
    await target.createUser(userOf('bob', {}, ['found']), [], request)
    expect(await target.lookupGroupByName('found')).toMatchObject({ members: ['bob'] })
  })

  test('passwords: set by RFC 3062, stored by the server, never read', async () => {
    const { target, branch } = await open()
    await target.createUser(userOf('ada'), [], request)
    await target.setUserPassword(userOf('ada'), 'correct horse', request)
    const server = new LdapServer(serverOptions(slapd.url))
    onTestFinished(() => server.close())
    const dn = `uid=ada,${branch}`
    const checks = ['correct horse', 'wrong', ''].map((password) => server.checkPassword(dn, password))
    expect(await Promise.all(checks)).toEqual([true, false, false])
    expect(await server.checkPassword(`uid=nobody,${branch}`, 'x')).toBe(false)
    expect((await target.lookupUserByLogin('ada'))?.attributes.has('userPassword')).toBe(false)
    expect((await target.findUser('ada', ['userPassword'], request))?.attributes.size).toBe(0)
    await expect(target.setUserPassword(userOf('nobody'), 'x', request)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('a password that the policy rejects is a bad request that does not repeat it', async () => {
    // The administrator is above OpenLDAP's policies; others are not.
    const writer = { adminDN: `cn=writer,${slapd.baseDn}`, adminPasswd: 'password of writer' }
    const { target, branch } = await open(writer)
    await addEntry(slapd, `cn=policy,${branch}`, {
      objectClass: ['applicationProcess', 'pwdPolicy'],
      pwdAttribute: ['userPassword'],
      pwdMinLength: ['12'],
      pwdCheckQuality: ['2'],
    })
    await addEntry(slapd, `uid=ada,${branch}`, {
      objectClass: ['account', 'simpleSecurityObject'],
      uid: ['ada'],
      userPassword: ['long enough for it'],
      pwdPolicySubentry: [`cn=policy,${branch}`],
    })
    const error = await target.setUserPassword(userOf('ada'), 'tiny secret', request).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'BAD_REQUEST' })
    expect(`${error.message} ${error.publicText}`).not.toContain('tiny secret')
    await target.setUserPassword(userOf('ada'), 'a secret that is long enough', request)
  })

  test('TLS: by LDAPS and StartTLS with the right authority, and rejected with another', async () => {
    const branch = await newBranch(slapd)
    const { unrelatedCertificate } = await import('#testing/gateway/test-certificates.ts')
    for (const way of [{ url: slapd.ldapsUrl }, { url: slapd.url, startTls: 'true' }]) {
      const target = await openLdap(slapd, branch, { ...way, certificate: slapd.ca })
      await target.createUser(userOf(`by ${way.url}`), [], request)
      expect((await target.lookupUserByLogin(`by ${way.url}`))?.userID).toBe(`by ${way.url}`)
      target.close?.()
      for (const certificate of [unrelatedCertificate, '']) {
        const wary = await openLdap(slapd, branch, { ...way, certificate })
        await expect(wary.lookupUserByLogin('nobody')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
        wary.close?.()
      }
    }
  })

  test('a rejected bind is not retried, and its password is not shown', async () => {
    const { target } = await open({ adminPasswd: 'wrong and secret' })
    for (let i = 0; i < 2; i++) {
      const error = await Promise.resolve(target.lookupUserByLogin('ada')).catch((thrown) => thrown)
      expect(error).toMatchObject({ code: 'TARGET_FAILED', message: expect.stringContaining('target "people"') })
      expect(error.message).not.toContain('secret')
    }
  })

  test('a read-only server is reported', async () => {
    const reader = { adminDN: `cn=reader,${slapd.baseDn}`, adminPasswd: 'password of reader' }
    const { target } = await open(reader)
    await expect(target.createUser(userOf('ada'), [], request)).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect(await target.lookupUserByLogin('ada')).toBeUndefined()
  })

  test("the server's own limit is a failure, never a truncated answer", async () => {
    const { target, branch } = await open()
    for (let i = 0; i < 8; i++) await target.createUser(userOf(`u${i}`, { title: ['x'] }), ['title'], request)
    const limited = await openLdap(slapd, branch, {
      adminDN: `cn=reader,${slapd.baseDn}`,
      adminPasswd: 'password of reader',
      pageSize: '2',
    })
    onTestFinished(() => void limited.close?.())
    await expect(limited.searchUsers({ offset: 0, limit: 3 })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    expect((await limited.lookupUserByLogin('u3'))?.userID).toBe('u3')
    const few = await openLdap(slapd, branch, { maxEntries: '5' })
    onTestFinished(() => void few.close?.())
    const all = await few.searchUsers({ offset: 0, limit: 3 })
    expect(all.total).toBe(8)
  })

  test('more entries than one page, and more than are read whole, all come back in order', async () => {
    const branch = await newBranch(slapd)
    const logins = Array.from({ length: 450 }, (_, i) => `user${String(i).padStart(4, '0')}`)
    await asAdmin(slapd, (client) =>
      Promise.all(
        logins.map((uid) =>
          client.add(`uid=${uid},${branch}`, {
            objectClass: ['account', 'extensibleObject'],
            uid: [uid],
            title: ['x'],
          }),
        ),
      ),
    )
    const target = await openLdap(slapd, branch, { pageSize: '100' })
    onTestFinished(() => void target.close?.())
    const page = async (offset: number) => (await target.searchUsers({ offset, limit: 100 })).items
    const pages = await Promise.all([0, 100, 200, 300, 400].map(page))
    expect(pages.flat().map(({ userID }) => userID)).toEqual(logins)
    expect(pages[4]?.[0]?.attributes.values('title')).toEqual(['x'])
    const bounded = await openLdap(slapd, branch, { maxEntries: '300' })
    onTestFinished(() => void bounded.close?.())
    await expect(bounded.searchUsers({ offset: 0, limit: 1 })).rejects.toMatchObject({ keyword: 'tooMany' })
  })

  test('referrals are skipped or rejected, and never followed', async () => {
    const { target, branch } = await open()
    await target.createUser(userOf('ada'), [], request)
    await asAdmin(slapd, async (client) => {
      const { Control } = await import('ldapts')
      const manage = new Control('2.16.840.1.113730.3.4.2')
      const entry = { objectClass: ['referral', 'extensibleObject'], ref: ['ldap://192.0.2.1/dc=elsewhere'] }
      await client.add(`dc=elsewhere,${branch}`, entry, manage)
    })
    expect((await target.searchUsers({ offset: 0, limit: 10 })).total).toBe(1)
    const strict = await openLdap(slapd, branch, { referrals: 'refuse' })
    onTestFinished(() => void strict.close?.())
    await expect(strict.searchUsers({ offset: 0, limit: 10 })).rejects.toMatchObject({ code: 'TARGET_FAILED' })
    const inside = await openLdap(slapd, `dc=elsewhere,${branch}`)
    onTestFinished(() => void inside.close?.())
    await expect(inside.lookupUserByLogin('ada')).rejects.toMatchObject({
      code: 'TARGET_FAILED',
      message: expect.stringContaining('referrals are not followed'),
    })
  })

  test('nested groups and unknown entries are not members', async () => {
    const { target, branch } = await open({ groupObjectClass: ['groupOfNames'] })
    await target.createUser(userOf('ada'), [], request)
    await addEntry(slapd, `cn=mixed,${branch}`, {
      objectClass: ['groupOfNames'],
      cn: ['mixed'],
      member: [`uid=ada,${branch}`, `cn=other,${branch}`, 'uid=stranger,dc=elsewhere', 'cn=nobody'],
    })
    expect((await target.lookupGroupByName('mixed'))?.members).toEqual(['ada'])
  })

  test('members of a group that was renamed meanwhile are not changed', async () => {
    const { target } = await open()
    await target.createGroup('crew', {}, request)
    await target.createUser(userOf('ada'), [], request)
    const { id = '' } = (await target.findGroup('crew')) ?? {}
    await target.updateGroup('crew', { newName: 'team' }, request)
    const expectedGroup = { name: 'crew', id }
    const join = target.syncUser(userOf('ada', {}, ['crew']), syncOptions([], { expectedGroup }), request)
    await expect(join).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
    const attributes = new Attributes()
    await target.syncUser(
      { userID: 'ada', attributes, groups: ['team'] },
      syncOptions([], { expectedGroup: { name: 'team', id } }),
      request,
    )
    expect((await target.findUser('ada', [], request))?.groups).toEqual(['team'])
  })

  function serverOptions(url: string) {
    return {
      name: 'test',
      url,
      startTls: false,
      ca: undefined,
      credentials: undefined,
      timeoutMillis: 5000,
      maxConnections: 5,
      idleMillis: 60_000,
      pageSize: 500,
      referrals: 'ignore',
    } as const
  }
})
