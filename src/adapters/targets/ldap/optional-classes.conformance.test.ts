import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { addEntry, asAdmin, newBranch, openLdap, quietRequest } from '#testing/ldap/ldap-target.ts'
import { sharedSlapd } from '#testing/ldap/slapd.ts'

describe.skipIf(inject('slapd') === '')('optional classes of an LDAP server', () => {
  async function open() {
    const slapd = await sharedSlapd()
    const branch = await newBranch(slapd)
    const target = await openLdap(slapd, branch, {
      objectClass: ['account'],
      optionalObjectClass: ['labeledURIObject', 'unknownToTheServer'],
      optionalGroupObjectClass: ['labeledURIObject', 'unknownToTheServer'],
    })
    onTestFinished(async () => target.close?.())
    const classesOf = (name: string) =>
      asAdmin(slapd, async (client) => {
        const filter = `(|(uid=${name})(cn=${name}))`
        const { searchEntries } = await client.search(branch, { filter, attributes: ['objectClass'] })
        return [searchEntries[0]?.['objectClass'] ?? []].flat()
      })
    return { slapd, branch, target, classesOf }
  }
  const uri = { labeledURI: ['https://example.com/ann'] }

  test('new users get those that the server knows, and their attributes can be stored', async () => {
    const { target, classesOf } = await open()
    const storable = await target.storable?.()
    expect(storable?.users).toContain('labeleduri')
    expect(storable?.users).not.toContain('title')
    await target.createUser(userOf('ann', uri), ['labeledURI'], quietRequest)
    expect(await classesOf('ann')).toEqual(['account', 'labeledURIObject'])
  })

  test('a user from before gets one with the first value that needs it', async () => {
    const { slapd, branch, target, classesOf } = await open()
    await addEntry(slapd, `uid=bob,${branch}`, { objectClass: ['account'], uid: ['bob'] })
    const sync = (attributes: Record<string, string[]>, names: string[]) =>
      target.syncUser(userOf('bob', attributes), { addOnly: false, attributes: names, keepGroups: true }, quietRequest)
    await sync({ description: ['x'] }, ['description', 'labeledURI'])
    expect(await classesOf('bob')).toEqual(['account'])
    await sync(uri, ['labeledURI'])
    expect(await classesOf('bob')).toEqual(['account', 'labeledURIObject'])
    expect((await target.lookupUserByLogin('bob'))?.attributes.values('labeledURI')).toEqual(uri.labeledURI)
  })

  test('so do groups, new ones and those from before', async () => {
    const { slapd, branch, target, classesOf } = await open()
    expect((await target.storable?.())?.groups).toContain('labeleduri')
    await target.createGroup('new', uri, quietRequest)
    const placeholder = { objectClass: ['groupOfUniqueNames'], uniqueMember: ['cn=nobody'] }
    await addEntry(slapd, `cn=old,${branch}`, { ...placeholder, cn: ['old'] })
    await target.updateGroup('old', { attributes: { description: ['x'] } }, quietRequest)
    expect(await classesOf('old')).toEqual(['groupOfUniqueNames'])
    await target.updateGroup('old', { attributes: uri }, quietRequest)
    for (const name of ['new', 'old']) {
      expect([name, await classesOf(name)]).toEqual([name, ['groupOfUniqueNames', 'labeledURIObject']])
      expect((await target.lookupGroupByName(name))?.attributes?.values('labeledURI')).toEqual(uri.labeledURI)
    }
  })
})
