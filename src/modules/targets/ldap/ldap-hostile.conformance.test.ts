import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { syncOptions, userOf } from '#sdk/conformance/target-fixture.ts'
import { asAdmin, newBranch, openLdap, quietRequest as request } from '#testing/ldap-target.ts'
import { type Slapd, startSlapd } from '#testing/slapd.ts'

const count = 10_000
/** A login, two values of an attribute that are replaced by two others. */
const valuesPerUser = 5
const batch = 200

/** A small generator with a seed (mulberry32), so that a failure can be had again. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const pieces = [
  ...'*()\\,+"<>;=#&|!~:/%_[]{}$@\'`^?. \t\n\r\0',
  ...[
    '\\2a',
    '\\00',
    ')(uid=*',
    '*)(|(objectClass=*',
    '),(',
    ',dc=example,dc=test',
    '+cn=x',
    '${uid}',
    '${x}',
    '\\',
    '  ',
  ],
  ...['é', 'ß', 'İ', '日本', '🎉', '\ufeff', '\u200b', '\u0301', '\u202e', 'a', 'B', '0', 'uid', 'null', '__proto__'],
]

describe.skipIf(inject('slapd') === '')('hostile values on OpenLDAP', () => {
  let slapd: Slapd
  beforeAll(async () => {
    slapd = await startSlapd()
  })
  afterAll(() => slapd.stop())

  test(`${count} of them: what comes back is what went in, and nothing else is touched`, async () => {
    const branch = await newBranch(slapd)
    const target = await openLdap(slapd, branch, { versionAttribute: 'entryCSN' })
    onTestFinished(() => void target.close?.())
    const random = randomFrom(20_260)
    const hostile = () => Array.from({ length: 1 + random(8) }, () => pieces[random(pieces.length)]).join('')
    for (const name of ['crew', 'bystanders']) await target.createGroup(name, {}, request)
    const bystander = userOf('bystander', { description: ['stays'] }, ['bystanders'])
    await target.createUser(bystander, ['description'], request)
    const everything = async () => {
      const found = await asAdmin(slapd, (client) => client.search(branch, { attributes: ['*', 'entryCSN'] }))
      return found.searchEntries.filter(({ dn }) => !String(dn).startsWith('cn=crew,'))
    }
    const before = await everything()

    for (let done = 0; done < count / valuesPerUser; done += batch) {
      // The number keeps values apart that the server takes for the same; it stands in front, behind or within.
      const users = Array.from({ length: batch }, (_, i) => {
        const number = String(done + i)
        const numbered = (end: string) =>
          [`${number}${end}${hostile()}`, `${hostile()}${number}${end}`, `${hostile()}${number}${end}${hostile()}`][
            i % 3
          ] ?? ''
        return { login: numbered(''), before: [numbered('a'), numbered('b')], after: [numbered('c'), numbered('d')] }
      })
      await inParallel(users, 24, async ({ login, before, after }) => {
        await target.createUser(userOf(login, { description: before }, ['crew']), ['description'], request)
        const created = await target.findUser(login, ['description'], request)
        expect(created).toMatchObject({ userID: login, groups: ['crew'] })
        expect(created?.attributes.values('description')).toEqual(before)
        await target.syncUser(userOf(login, { description: after }), syncOptions(['description']), request)
        for (const [i, value] of after.entries()) {
          const filter: Filter =
            i === 0
              ? { kind: 'equal', attribute: 'description', value }
              : { kind: 'substring', attribute: 'description', any: [value] }
          const { items } = await target.searchUsers({ filter, offset: 0, limit: 10 })
          expect(items.map(({ userID, groups }) => [userID, groups])).toEqual([[login, []]])
        }
        expect((await target.lookupUserByLogin(login))?.attributes.values('description')).toEqual(after)
      })
      expect((await target.lookupGroupByName('crew'))?.members).toEqual([])
      await inParallel(users, 24, async ({ login }) => {
        await target.deleteUser(userOf(login), request)
        expect(await target.lookupUserByLogin(login)).toBeUndefined()
      })
    }
    expect(await everything()).toEqual(before)
  }, 120_000)

  test('group names as well', async () => {
    const target = await openLdap(slapd, await newBranch(slapd), { groupObjectClass: ['groupOfNames'] })
    onTestFinished(() => void target.close?.())
    const random = randomFrom(7)
    await target.createUser(userOf('ada'), [], request)
    for (let i = 0; i < 200; i++) {
      const text = Array.from({ length: 1 + random(6) }, () => pieces[random(pieces.length)]).join('')
      const name = i % 2 === 0 ? `${i}${text}` : `${text}${i}`
      await target.createGroup(name, { description: [`${text}${i}`] }, request)
      await target.syncUser(userOf('ada', {}, [name]), syncOptions([]), request)
      const found = await target.lookupGroupByName(name)
      expect([found?.name, found?.description, found?.members]).toEqual([name, `${text}${i}`, ['ada']])
      expect((await target.lookupUserByLogin('ada'))?.groups).toEqual([name])
      const filter: Filter = { kind: 'equal', attribute: 'name', value: name }
      expect((await target.searchGroups({ filter, offset: 0, limit: 10 })).items.map((group) => group.name)).toEqual([
        name,
      ])
      await target.updateGroup(name, { newName: `${text}-${i}` }, request)
      expect((await target.lookupUserByLogin('ada'))?.groups).toEqual([`${text}-${i}`])
      await target.deleteGroup(`${text}-${i}`, request)
    }
    expect((await target.searchGroups({ offset: 0, limit: 10 })).total).toBe(0)
  })
})
