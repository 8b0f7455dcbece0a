import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { addEntry, asAdmin, newBranch, openLdap, quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'

describe.skipIf(inject('slapd') === '')('names and memberships on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await sharedSlapd()
  })

  async function open(more: ParamValues = {}) {
    const branch = await newBranch(slapd)
    const texts = Object.entries(more).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replace('SEARCHBASE', branch) : value,
    ])
    const target = await openLdap(slapd, branch, Object.fromEntries(texts))
    onTestFinished(() => void target.close?.())
    return { target, branch }
  }

  const attributeOf = (dn: string, name: string) =>
    asAdmin(slapd, async (client) => {
      const { searchEntries } = await client.search(dn, { scope: 'base' })
      return [searchEntries[0]?.[name] ?? []].flat().map(String)
    })

  test('a user below the place of new users stays there, and groups contain its name', async () => {
    const { target, branch } = await open({ groupObjectClass: ['groupOfNames'] })
    await addEntry(slapd, `ou=sales,${branch}`, { objectClass: ['organizationalUnit'], ou: ['sales'] })
    await addEntry(slapd, `uid=ada,ou=sales,${branch}`, { objectClass: ['account', 'extensibleObject'], uid: ['ada'] })
    await target.createGroup('crew', {}, request)
    await target.syncUser(userOf('ada', {}, ['crew']), syncOptions([]), request)
    const options = syncOptions(['description'], { keepGroups: true, newUserID: 'eve' })
    await target.syncUser(userOf('ada', { description: ['new'] }), options, request)
    expect(await attributeOf(`uid=eve,ou=sales,${branch}`, 'description')).toEqual(['new'])
    const held = await attributeOf(`cn=crew,${branch}`, 'member')
    expect(held.filter((name) => name !== 'cn=nobody')).toEqual([`uid=eve,ou=sales,${branch}`])
  })

  test('a group below the place of new groups stays there', async () => {
    const { target, branch } = await open({ groupObjectClass: ['groupOfNames'] })
    await addEntry(slapd, `ou=teams,${branch}`, { objectClass: ['organizationalUnit'], ou: ['teams'] })
    await addEntry(slapd, `cn=crew,ou=teams,${branch}`, {
      objectClass: ['groupOfNames'],
      cn: ['crew'],
      member: [`uid=ada,${branch}`],
    })
    await target.updateGroup('crew', { newName: 'team', attributes: { description: ['new'] } }, request)
    expect(await attributeOf(`cn=team,ou=teams,${branch}`, 'description')).toEqual(['new'])
  })

  test('groups of logins contain the new login, whatever names entries have: no one inherits the old one', async () => {
    const { target, branch } = await open({
      groupObjectClass: ['device', 'extensibleObject'],
      memberAttribute: 'memberUid',
      dnPattern: 'cn=person ${uid},SEARCHBASE',
    })
    await target.createGroup('admins', {}, request)
    await target.createUser(userOf('ada', {}, ['admins']), [], request)
    await target.syncUser(userOf('ada'), syncOptions([], { keepGroups: true, newUserID: 'eve' }), request)
    expect(await attributeOf(`cn=admins,${branch}`, 'memberUid')).toEqual(['eve'])
    expect((await target.findUser('eve', [], request))?.groups).toEqual(['admins'])
  })

  test('a new user inherits no membership of a former user with the same name', async () => {
    for (const memberOf of ['false', 'true']) {
      const { target, branch } = await open({ groupObjectClass: ['groupOfNames'], memberOf })
      for (const name of ['admins', 'crew']) {
        await addEntry(slapd, `cn=${name},${branch}`, {
          objectClass: ['groupOfNames'],
          cn: [name],
          member: [`uid=ada,${branch}`],
        })
      }
      await target.createUser(userOf('ada', {}, ['crew']), [], request)
      expect((await target.lookupGroupByName('admins'))?.members).toEqual([])
      expect((await target.findUser('ada', [], request))?.groups).toEqual(['crew'])
    }
  })

  test('two entries with one login, or two groups with one name, are never confused', async () => {
    const { target, branch } = await open({ groupObjectClass: ['groupOfNames'] })
    for (const place of ['left', 'right']) {
      const parent = `ou=${place},${branch}`
      await addEntry(slapd, parent, { objectClass: ['organizationalUnit'], ou: [place] })
      await addEntry(slapd, `uid=ada,${parent}`, { objectClass: ['account', 'extensibleObject'], uid: ['ada'] })
      const member = [`uid=bob,${parent}`]
      await addEntry(slapd, `cn=crew,${parent}`, { objectClass: ['groupOfNames'], cn: ['crew'], member })
    }
    const several = { code: 'TARGET_FAILED', message: expect.stringContaining('several') }
    await expect(target.deleteUser(userOf('ada'), request)).rejects.toMatchObject(several)
    await expect(target.lookupUserByLogin('ADA')).rejects.toMatchObject(several)
    await expect(target.deleteGroup('crew', request)).rejects.toMatchObject(several)
    for (const place of ['left', 'right']) {
      expect(await attributeOf(`uid=ada,ou=${place},${branch}`, 'uid')).toEqual(['ada'])
      expect(await attributeOf(`cn=crew,ou=${place},${branch}`, 'cn')).toEqual(['crew'])
    }
  })

  test('of two gateways that create one login under two names, at most one succeeds', async () => {
    const branch = await newBranch(slapd)
    const gateways = await Promise.all([1, 2].map(() => openLdap(slapd, branch, { dnPattern: `cn=\${cn},${branch}` })))
    onTestFinished(() => gateways.forEach((target) => void target.close?.()))
    for (let i = 0; i < 10; i++) {
      const made = await Promise.allSettled(
        gateways.map((target, n) => target.createUser(userOf(`ada${i}`, { cn: [`${i} ${n}`] }), ['cn'], request)),
      )
      const done = made.filter(({ status }) => status === 'fulfilled').length
      expect(done).toBeLessThan(2)
      expect(made.map((one) => (one.status === 'rejected' ? one.reason.code : 'CONFLICT'))).toEqual([
        'CONFLICT',
        'CONFLICT',
      ])
      const found = await gateways[0]?.searchUsers({
        offset: 0,
        limit: 10,
        filter: { kind: 'equal', attribute: 'userID', value: `ada${i}` },
      })
      expect(found?.items).toHaveLength(done)
    }
  })
})
