import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { GatewayError } from '#kernel/errors.ts'
import { syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasGroups, hasLookups, type LookupTarget, type Target } from '#sdk/target.ts'
import { userCollection } from '#sdk/target-collections.ts'
import { onEachDatabase } from '#testing/databases.ts'
import { hostileValues } from '#testing/hostile-values.ts'
import { openApplication, runOn } from '#testing/sql-schema.ts'

const names = { attributes: ['mail', 'givenName', 'phone'], groups: ['group1', 'group2', 'group3'] } as const

function full(target: Target): LookupTarget & GroupTarget {
  if (!hasLookups(target) || !hasGroups(target)) throw new Error('the target cannot do everything')
  return target
}

/** Undefined when it was refused by name. */
async function unlessRefused<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'BAD_REQUEST') return undefined
    throw error
  }
}

onEachDatabase('the SQL target and hostile values', (freshUrl) => {
  test('10,000 of them come back as they went in, or are refused, and touch nobody else', {
    timeout: 120_000,
  }, async () => {
    const url = await freshUrl()
    const target = full(await openApplication(url))
    const { request } = targetFixture(target, names)
    const bystander = userOf('bystander', { mail: ['b@x.test'], givenName: ['B'] }, ['group1'])
    await target.createUser(bystander, names.attributes, request)
    const before = await target.lookupUserByLogin('bystander')
    const values = hostileValues(10_000)
    let refused = 0

    async function one(i: number): Promise<void> {
      const [login = '', given = '', phone = '', group = '', about = '', ...mails] = values.slice(25 * i, 25 * i + 25)
      const userID = `${login}${i}`
      const name = `${group}|${i}`
      const made = await unlessRefused(async () => {
        await target.createGroup(name, { description: [about] }, request)
        return target.lookupGroupByName(name)
      })
      if (made === undefined) refused++
      else expect([made.name, made.attributes?.values('description')]).toEqual([name, [about]])
      const groups = made === undefined ? [] : [name]
      const user = userOf(userID, { mail: mails, givenName: [given], phone: [phone] }, groups)
      const created = await unlessRefused(async () => {
        await target.createUser(user, names.attributes, request)
        return true
      })
      if (created === undefined) {
        refused++
        expect(await target.lookupUserByLogin(userID)).toBeUndefined()
      } else {
        const found = await target.lookupUserByLogin(userID)
        expect(found?.userID).toBe(userID)
        expect(found?.attributes.values('mail')).toEqual([...new Set(mails)])
        expect([found?.attributes.first('givenName'), found?.attributes.first('phone')]).toEqual([given, phone])
        expect(found?.groups).toEqual(groups)
        expect((await target.lookupUserById(found?.id ?? ''))?.userID).toBe(userID)
        const filters: Filter[] = [
          { kind: 'equal', attribute: 'userID', value: userID },
          { kind: 'equal', attribute: 'givenName', value: given, caseExact: true },
          { kind: 'equal', attribute: 'mail', value: mails[0] ?? '' },
          { kind: 'substring', attribute: 'phone', any: [phone.slice(0, 200)] },
        ]
        const filter: Filter = { kind: 'and', filters }
        const page = await target.searchUsers({ filter, offset: 0, limit: 10 })
        expect(page.items.map((each) => each.userID)).toEqual([userID])
        const swapped = userOf(userID, { mail: [given], givenName: [phone] }, [])
        await unlessRefused(async () => {
          await target.syncUser(swapped, syncOptions(names.attributes), request)
          const after = await target.findUser(userID, names.attributes, request)
          expect(after?.attributes.toObject()).toEqual(swapped.attributes.toObject())
        })
        await target.deleteUser(user, request)
      }
      await target.deleteGroup(name, request)
    }

    const next = Array.from({ length: 400 }, (_, i) => i).values()
    const worker = async (): Promise<void> => {
      for (const i of next) await one(i)
    }
    await Promise.all(Array.from({ length: 6 }, worker))
    expect(refused).toBeLessThan(200)
    expect(await target.lookupUserByLogin('bystander')).toEqual(before)
    const counted = await runOn(
      url,
      'select (select count(*) from "People") as people, (select count(*) from addresses) as addresses, (select count(*) from crews) as crews, (select count(*) from crew_people) as members',
    )
    expect(Object.values(counted[0] ?? {}).map(Number)).toEqual([1, 1, 3, 1])
  })

  test('characters that no database holds are refused by name, and find nobody', async () => {
    const target = full(await openApplication(await freshUrl()))
    const { request } = targetFixture(target, names)
    for (const text of ['nul\0', '\ud800half', 'half\udc00']) {
      for (const user of [userOf(text), userOf('ada', { mail: [text] }), userOf('ada', { phone: [text] })]) {
        await expect(target.createUser(user, names.attributes, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      }
      await expect(target.createGroup(text, {}, request)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      expect(await target.lookupUserByLogin(text)).toBeUndefined()
      expect(await target.lookupUserById(text)).toBeUndefined()
      expect(await target.lookupGroupByName(text)).toBeUndefined()
      for (const kind of ['equal', 'greater'] as const) {
        const page = await target.searchUsers({
          filter: { kind, attribute: 'phone', value: text },
          offset: 0,
          limit: 5,
        })
        expect(page.items).toEqual([])
      }
    }
    expect(await target.lookupUserByLogin('ada')).toBeUndefined()
  })

  test('a search finds what the filter is true of, whatever part of it the database can do', {
    timeout: 120_000,
  }, async () => {
    const url = await freshUrl()
    const target = full(await openApplication(url))
    const { request } = targetFixture(target, names)
    const texts = [
      'k',
      'K',
      '\u212a',
      '\u0130x',
      'i\u0307x',
      'Straße',
      'STRASSE',
      'ÉCOLE',
      'école',
      'a%b',
      'A_B',
      'a\\b',
      '007',
      '7',
      '',
    ]
    const people = Array.from({ length: 60 }, (_, i) => {
      const pick = (step: number): string[] => ((i * step) % 5 === 0 ? [] : [texts[(i * step) % texts.length] ?? ''])
      return userOf(`user${i}`, {
        mail: [...new Set([...pick(7), ...pick(3)])],
        givenName: pick(2),
        badge: i % 4 === 0 ? [] : [String((i * 37) % 300)],
        active: [i % 3 === 0 ? 'true' : 'false'],
        hired: i % 6 === 0 ? ['2026-01-02T03:04:05Z'] : [],
      })
    })
    const attributes = [...names.attributes, 'badge', 'active', 'hired']
    for (const user of people) await target.createUser(user, attributes, request)
    const stored = (await target.searchUsers({ offset: 0, limit: 100 })).items
    expect(stored).toHaveLength(60)
    const filters = leaves([...texts, '37', 'true', 'TRUE', '2026-01-02T03:04:05Z', 'str', 'É', 'x']).flatMap(
      (filter, i, all): Filter[] => {
        const other = all[(i * 31 + 7) % all.length] ?? filter
        return [
          filter,
          { kind: 'not', filter },
          { kind: i % 2 === 0 ? 'and' : 'or', filters: [filter, { kind: 'not', filter: other }] },
        ]
      },
    )
    for (const filter of filters) {
      const expected = stored.filter((user) => matches(filter, userCollection.source(user))).map(({ userID }) => userID)
      const page = await target.searchUsers({ filter, offset: 0, limit: 100 })
      expect({ filter, found: page.items.map(({ userID }) => userID).sort() }).toEqual({
        filter,
        found: expected.sort(),
      })
      expect(page.total).toBe(expected.length)
    }
  })
})

function leaves(values: readonly string[]): Filter[] {
  const attributes = ['mail', 'givenName', 'badge', 'active', 'hired', 'userID', 'nothing']
  return values.flatMap((value, i) =>
    attributes.flatMap((attribute, j): Filter[] => {
      const caseExact = (i + j) % 3 === 0
      const comparisons = ['equal', 'greaterOrEqual', 'less'] as const
      return [
        { kind: comparisons[(i + j) % 3] ?? 'equal', attribute, value, caseExact },
        { kind: 'equal', attribute, value },
        { kind: 'substring', attribute, ...(j % 2 === 0 ? { initial: value, any: [] } : { any: [value] }), caseExact },
        { kind: 'present', attribute },
      ]
    }),
  )
}

test('the test knows an attribute that is not there', () => {
  expect(matches({ kind: 'present', attribute: 'nothing' }, new Attributes())).toBe(false)
})
