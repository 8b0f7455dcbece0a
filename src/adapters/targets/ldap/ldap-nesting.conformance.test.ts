import { Attribute, Change } from 'ldapts'
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { nestsGroups } from '#sdk/target/target.ts'
import { addEntry, asAdmin, newBranch, openLdap, quietRequest as request } from '#testing/ldap/ldap-target.ts'
import { type Slapd, sharedSlapd } from '#testing/ldap/slapd.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import type { LdapTarget } from './ldap-target.ts'

describe.skipIf(inject('slapd') === '')('nested groups on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await sharedSlapd()
  })

  async function open(branch: string, more: ParamValues = {}): Promise<LdapTarget> {
    const target = await openLdap(slapd, branch, { groupObjectClass: ['groupOfNames'], ...more })
    onTestFinished(() => void target.close?.())
    return target
  }

  const attributeOf = (dn: string, name: string) =>
    asAdmin(slapd, async (client) => {
      const { searchEntries } = await client.search(dn, { scope: 'base' })
      return [searchEntries[0]?.[name] ?? []].flat().map(String)
    })

  async function groupsIn(target: LdapTarget, ...names: string[]) {
    for (const name of names) await target.createGroup(name, {}, request)
    const found = await Promise.all(names.map((name) => target.lookupGroupByName(name)))
    return found.map((group) => ({ id: group?.id ?? '', name: group?.name ?? '' }))
  }

  const nest = (target: LdapTarget, name: string, ...add: readonly (undefined | { id: string; name: string })[]) =>
    target.changeMemberGroups?.(name, { add: add.flatMap((one) => one ?? []), remove: [] }, request)

  test('groups and users with the same name are distinguished by class', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch, {
      objectClass: ['applicationProcess', 'extensibleObject'],
      dnPattern: `cn=\${cn},${branch}`,
      userIDAttribute: 'cn',
    })
    await addEntry(slapd, `cn=device,${branch}`, { objectClass: ['device'], cn: ['device'] })
    const [, eng] = await groupsIn(target, 'all', 'eng')
    await target.createUser(userOf('ada', { description: ['Ada L.'] }, ['all']), ['description'], request)
    await nest(target, 'all', eng)
    await asAdmin(slapd, async (client) => {
      const values = [`cn=device,${branch}`, 'cn=stranger,dc=example,dc=test', `cn=gone,${branch}`]
      const modification = new Attribute({ type: 'member', values })
      await client.modify(`cn=all,${branch}`, new Change({ operation: 'add', modification }))
    })
    const display = { users: 'description', groups: 'description' }
    await target.updateGroup('eng', { attributes: { description: ['Engineering'] } }, request)
    expect(await target.lookupGroupByName('all', { members: true, display })).toMatchObject({
      members: ['ada'],
      memberIds: [(await target.lookupUserByLogin('ada'))?.id],
      memberDisplays: ['Ada L.'],
      memberGroups: [{ ...eng, display: 'Engineering' }],
    })
  })

  test('a renamed group stays a member, under its new name', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch)
    const [, eng] = await groupsIn(target, 'all', 'eng')
    await nest(target, 'all', eng)
    await target.updateGroup('eng', { newName: 'engineering' }, request)
    expect((await target.lookupGroupByName('all'))?.memberGroups).toEqual([{ ...eng, name: 'engineering' }])
  })

  test('the placeholder replaces the last member that leaves, and the next member replaces it', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch)
    const [, eng, ops] = await groupsIn(target, 'all', 'eng', 'ops')
    await nest(target, 'all', eng, ops)
    await asAdmin(slapd, async (client) => {
      const modification = new Attribute({ type: 'member', values: ['cn=nobody'] })
      await client.modify(`cn=all,${branch}`, new Change({ operation: 'delete', modification }))
    })
    const remove = [eng, ops].flatMap((one) => one ?? [])
    await target.changeMemberGroups?.('all', { add: [], remove }, request)
    expect(await attributeOf(`cn=all,${branch}`, 'member')).toEqual(['cn=nobody'])
    await nest(target, 'all', eng)
    await target.changeMemberGroups?.('all', { add: [], remove }, request)
    expect(await attributeOf(`cn=all,${branch}`, 'member')).toEqual(['cn=nobody'])
  })

  test('two gateways that close a cycle together leave none', async () => {
    const branch = await newBranch(slapd)
    const [one, two] = await Promise.all([open(branch), open(branch)])
    for (let i = 0; i < 10; i++) {
      const [a, b, c, d] = await groupsIn(one, `a${i}`, `b${i}`, `c${i}`, `d${i}`)
      await nest(one, `a${i}`, b)
      await nest(one, `c${i}`, d)
      const outcomes = await Promise.allSettled([nest(one, `b${i}`, c), nest(two, `d${i}`, a)])
      const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
      expect(refused.length).toBeGreaterThan(0)
      expect(new Set(refused)).toEqual(new Set(['CONFLICT']))
      const held = await Promise.all([`b${i}`, `d${i}`].map((name) => one.lookupGroupByName(name)))
      expect(held.flatMap((group) => group?.memberGroups ?? [])).toHaveLength(2 - refused.length)
    }
  })

  test('a cycle of groups that others wrote is still readable', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch)
    for (const [name, member] of [
      ['a', 'b'],
      ['b', 'a'],
    ]) {
      await addEntry(slapd, `cn=${name},${branch}`, {
        objectClass: ['groupOfNames'],
        cn: [name ?? ''],
        member: [`cn=${member},${branch}`],
      })
    }
    const a = await target.lookupGroupByName('a')
    const b = await target.lookupGroupByName('b')
    expect(a?.memberGroups).toEqual([{ id: b?.id, name: 'b' }])
    const above = await target.containingGroups?.([a?.id ?? ''])
    expect(above?.get(a?.id ?? '')).toEqual([{ id: b?.id, name: 'b', direct: true }])
  })

  test('a new group is not in groups that contained one with its name, and repeating a delete cleans up', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch)
    const member = [`cn=eng,${branch}`, `cn=ops,${branch}`]
    await addEntry(slapd, `cn=admins,${branch}`, { objectClass: ['groupOfNames'], cn: ['admins'], member })
    const [eng] = await groupsIn(target, 'eng')
    expect(await target.containingGroups?.([eng?.id ?? ''])).toEqual(new Map([[eng?.id, []]]))
    await target.deleteGroup('ops', request)
    expect(await attributeOf(`cn=admins,${branch}`, 'member')).toEqual(['cn=nobody'])
  })

  test('a schema without room for a group is reported', async () => {
    const branch = await newBranch(slapd)
    const target = await open(branch)
    const [, eng] = await groupsIn(target, 'all', 'eng')
    // It lists names, and the class of the group does not allow it.
    const other = await open(branch, { memberAttribute: 'roleOccupant' })
    await expect(nest(other, 'all', eng)).rejects.toMatchObject({
      code: 'BAD_REQUEST',
      keyword: 'invalidValue',
      publicText: 'The directory does not take a group as a member of the group "all".',
    })
  })

  test('groups of logins do not nest, and ids are unique if the server assigns them', async () => {
    const branch = await newBranch(slapd)
    const logins = { groupObjectClass: ['device', 'extensibleObject'], memberAttribute: 'memberUid' }
    expect(nestsGroups(await open(branch, logins))).toBe(false)
    expect(nestsGroups(await open(branch))).toBe(true)
    expect((await open(branch)).idsAreUnique).toBe(true)
    expect((await open(branch, { idAttribute: 'none' })).idsAreUnique).toBe(false)
    expect((await open(branch, { idAttribute: 'employeeNumber' })).idsAreUnique).toBe(false)
  })
})
