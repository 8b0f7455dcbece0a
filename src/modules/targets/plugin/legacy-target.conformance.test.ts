import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hostileTexts, syncOptions, targetFixture, userOf } from '#sdk/conformance/target-fixture.ts'
import { hasLookups, type LookupTarget } from '#sdk/target.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { fakeParams, fakeParseContext, noIssues } from '#testing/fake-parse.ts'
import { legacyTargetScript } from '#testing/legacy-script.ts'
import plugin from './plugin.ts'

const names = { attributes: ['mail', 'cn', 'sn'], groups: ['a', 'b', 'c'] } as const
const users = 100
const valuesOfEach = 100
let target: LookupTarget

beforeAll(async () => {
  const prepared = plugin.prepare(
    fakeParams({ javaScript: legacyTargetScript() }),
    noIssues(),
    fakeParseContext(tmpdir()),
  )
  const opened = await prepared.create(fakeModuleHost())
  if (!hasLookups(opened)) throw new Error('no look-ups')
  target = opened
})
afterAll(() => target.close?.())

/** Texts that mean something to JSON, JavaScript, filters, addresses and Java, and any other. */
const hostile = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1 }),
  fc.string({ unit: fc.constantFrom(...'*()\\,+"<>;=#&|!%$`{}[]\'\u0000\n\t \u{1F389}'), minLength: 1 }),
  fc.constantFrom(
    ...hostileTexts,
    'null',
    'undefined',
    'true',
    '0',
    '%s',
    '\\u0000',
    ' lead',
    'trail ',
    'x'.repeat(65_536),
  ),
)

test('10,000 hostile values come back as they went in, and touch no other user', async () => {
  const { request } = targetFixture(target, names)
  const texts = fc.sample(hostile, { numRuns: users * valuesOfEach, seed: 5 })
  const logins = [...new Set(fc.sample(hostile, { numRuns: users * 4, seed: 7 }))].slice(0, users)
  const people = logins.map((login, i) => {
    const values = [...new Set(texts.slice(i * valuesOfEach, (i + 1) * valuesOfEach))]
    return userOf(login, { mail: values, cn: [values[0] ?? ''] }, values.slice(1, 3))
  })
  for (const user of people) await target.createUser(user, names.attributes, request)
  const check = async (user: (typeof people)[number]) => {
    const [found, looked] = [
      await target.findUser(user.userID, names.attributes, request),
      await target.lookupUserByLogin(user.userID),
    ]
    for (const stored of [found, looked]) {
      expect(stored?.userID).toBe(user.userID)
      expect(stored?.attributes.values('mail')).toEqual(user.attributes.values('mail'))
      expect(stored?.groups).toEqual(user.groups)
    }
  }
  for (const user of people) await check(user)

  const [changed = [], kept = []] = [people.slice(0, users / 2), people.slice(users / 2)]
  for (const [i, user] of changed.entries()) {
    const value = user.attributes.values('cn')[0] ?? ''
    const found = await target.searchUsers({
      filter: { kind: 'equal', attribute: 'cn', value, caseExact: true },
      offset: 0,
      limit: users,
    })
    const expected = people.slice(i).filter(({ attributes }) => attributes.values('cn')[0] === value)
    expect(found.items.map(({ userID }) => userID).sort()).toEqual(expected.map(({ userID }) => userID).sort())
    await target.syncUser(userOf(user.userID), syncOptions(names.attributes), request)
    expect((await target.lookupUserById(user.userID))?.attributes.names()).toEqual([])
    await target.deleteUser(user, request)
    expect(await target.lookupUserByLogin(user.userID)).toBeUndefined()
  }
  for (const user of kept) await check(user)
  expect((await target.searchUsers({ offset: 0, limit: 1000 })).total).toBe(kept.length)
})
