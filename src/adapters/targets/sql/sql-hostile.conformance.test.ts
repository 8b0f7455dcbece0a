import { expect, onTestFinished, test } from 'vitest'
import { userCollection } from '#adapters/targets/shared/collections.ts'
import { Attributes } from '#identity/attributes.ts'
import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { type GroupTarget, hasGroups, hasLookups, type LookupTarget, type Target } from '#sdk/target/target.ts'
import { onEachEmptyDatabase } from '#testing/databases/databases.ts'
import {
  applicationStatements,
  openApplication,
  openQuickTarget,
  openTarget,
  runOn,
} from '#testing/databases/sql-schema.ts'
import { callMillis, trialMillis } from '#testing/hostile/hostile-coverage.ts'
import { hostileTrial } from '#testing/hostile/hostile-trial.ts'

const patient = { timeoutMillis: String(callMillis) }
const names = { attributes: ['mail', 'givenName', 'phone'], groups: ['group1', 'group2', 'group3'] } as const

function full(target: Target): LookupTarget & GroupTarget {
  if (!hasLookups(target) || !hasGroups(target)) throw new Error('the target cannot do everything')
  return target
}

/** The number of users, addresses, groups and memberships. */
async function rowsOf(url: string): Promise<number[]> {
  const [counts] = await runOn(
    url,
    'select (select count(*) from "People") as people, (select count(*) from addresses) as addresses, (select count(*) from crews) as crews, (select count(*) from crew_people) as members',
  )
  return Object.values(counts ?? {}).map(Number)
}

onEachEmptyDatabase('the SQL target and hostile values', (freshUrl) => {
  test('tables: each passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    const url = await freshUrl()
    const target = full(await openApplication(url, patient, openQuickTarget))
    const row = url.startsWith('sqlite:') ? 'SQL tables on SQLite' : 'SQL tables on PostgreSQL'
    await hostileTrial(row, target, { attributes: ['mail', 'givenName'] })
    expect(await rowsOf(url)).toEqual([7, 14, 10, 7])
  })

  test('statements: each passes through every lookup and write unchanged, and touches no other user', {
    timeout: trialMillis,
  }, async () => {
    const url = await freshUrl()
    const groupMaker = full(await openApplication(url, patient))
    const target = await openQuickTarget(url, { ...applicationStatements, ...patient })
    onTestFinished(async () => {
      await target.close?.()
    })
    const row = url.startsWith('sqlite:') ? 'SQL statements on SQLite' : 'SQL statements on PostgreSQL'
    await hostileTrial(row, target, { attributes: ['mail', 'givenName'], groupMaker, batch: 20 })
    expect(await rowsOf(url)).toEqual([7, 14, 10, 7])
  })

  test('statements: a group is identified by its name, even if its statement returns an id', async () => {
    const url = await freshUrl()
    await openApplication(url)
    const target = await openTarget(url, applicationStatements)
    onTestFinished(async () => {
      await target.close?.()
    })
    if (!hasLookups(target)) throw new Error('no look-ups')
    const { request } = targetFixture(target, names)
    await target.createUser(userOf('ada', {}, ['group2']), names.attributes, request)
    expect(target.groupHasOwnId).toBe(false)
    expect(await target.lookupGroupById('group2')).toMatchObject({ id: 'group2', name: 'group2', members: ['ada'] })
    expect(await target.lookupGroupById('2')).toBeUndefined()
    expect((await target.searchGroups({ offset: 0, limit: 5 })).items.map(({ id }) => id)).toEqual(names.groups)
  })

  test('characters that no database stores are rejected by name, and find no user', async () => {
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

  test('a search finds exactly the matches, whatever part of the filter the database can evaluate', {
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

test('the test handles an absent attribute', () => {
  expect(matches({ kind: 'present', attribute: 'nothing' }, new Attributes())).toBe(false)
})
