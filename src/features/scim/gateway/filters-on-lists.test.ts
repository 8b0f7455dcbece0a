import { describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import type { AttributeWrite } from '#sdk/flow/flow.ts'
import type { StorableAttributes } from '#sdk/target/target.ts'
import { unknownWrites } from '#sdk/workflow/workflow-writes.ts'
import { openGateway, People } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const params = { mapping: 'scim', lookupTarget: 'people', workflowName: 'sync-user' }

/** Lists as another program may write them: JSON with spaces and escapes, and plain values. */
function listed(): People {
  const people = new People()
  people.add('ann', {
    emails: ['{"value":"ann@example.com","type":"work","primary":true}', '{"value":"zoe@example.com","type":"home"}'],
  })
  people.add('bob', { emails: ['{ "value" : "b\\u00f6b@example.com", "type" : "work" }'] })
  people.add('cyd', { emails: ['Cyd@example.com'] })
  people.add('dan')
  return people
}

const storing = (people: People, users: StorableAttributes['users']): People =>
  Object.assign(people, { storable: async () => ({ users, groups: 'any' }) })

const logins = (body: JsonObject): unknown[] => (body['Resources'] as JsonObject[]).map(({ userName }) => userName)

const filters: readonly (readonly [filter: string, found: readonly string[]])[] = [
  ['emails.value eq "ann@example.com"', ['ann']],
  ['emails.value eq "ANN@example.com"', ['ann']],
  ['emails[type eq "work"].value eq "ann@example.com"', ['ann']],
  ['emails[type eq "home"].value eq "ann@example.com"', []],
  ['emails[value eq "ann@example.com"]', ['ann']],
  ['userName eq "ann" and emails.value eq "ann@example.com"', ['ann']],
  ['emails.value eq "böb@example.com"', ['bob']],
  ['emails.value eq "cyd@example.com"', ['cyd']],
  ['emails.value ew "@example.com"', ['ann', 'bob', 'cyd']],
  ['emails.value pr', ['ann', 'bob', 'cyd']],
  ['emails pr', ['ann', 'bob', 'cyd']],
  ['not (emails.value pr)', ['dan']],
  ['emails.value ne "ann@example.com"', ['bob', 'cyd', 'dan']],
  ['emails.type eq "WORK"', ['ann', 'bob']],
  ['emails.primary eq true', ['ann']],
]

describe.each([
  ['has no place for the plain values', storing(listed(), new Set(['emails'])), unknownWrites],
  [
    'does not get the plain values from the workflow',
    listed(),
    {
      ...unknownWrites,
      ofUser: (attribute: string): readonly AttributeWrite[] =>
        attribute === 'emails' ? [{ target: 'people', attribute }] : [],
    },
  ],
])('a store of lists that %s', (_, people, writes) => {
  const open = () => openGateway(scimGateway, { people, params, host: { workflowWrites: () => writes } })

  test.each(filters)('%s', async (filter, found) => {
    const { send } = await open()
    const { body } = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([logins(body), body['totalResults']]).toEqual([found, found.length])
  })

  test('sorts by the primary value, users without a value last', async () => {
    const { send } = await open()
    expect(logins((await send('GET', '/Users?sortBy=emails')).body)).toEqual(['ann', 'bob', 'cyd', 'dan'])
    const descending = await send('GET', '/Users?sortBy=emails.value&sortOrder=descending')
    expect(logins(descending.body)).toEqual(['dan', 'cyd', 'bob', 'ann'])
  })

  test('reads only candidates', async () => {
    const { send } = await open()
    people.searches.length = 0
    await send('GET', `/Users?filter=${encodeURIComponent('emails[type eq "work"].value eq "böb@example.com"')}`)
    expect(JSON.stringify(people.searches)).toContain('"any":["b@example.com"]')
  })
})

test('a list that cannot be stored cannot be searched, though its plain values can be stored', async () => {
  const people = storing(new People(), new Set(['emails.value']))
  const { send } = await openGateway(scimGateway, { people, params })
  for (const filter of ['emails.value eq "a@example.com"', 'emails[type eq "work"]', 'userName pr and title pr']) {
    const { status, body } = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([status, body['scimType']]).toEqual([400, 'invalidFilter'])
  }
  expect((await send('GET', '/Users?sortBy=emails')).body).toMatchObject({ scimType: 'invalidValue' })
})

describe('single values of which the store has several', () => {
  const lines = {
    lookupTarget: 'people',
    uidAttributeName: 'userName',
    workflowName: 'sync-user',
    scim2tremolo: 'title',
    'scim2tremolo.title.source': 'title',
    tremolo2scim: 'title',
    'tremolo2scim.title.source': 'title',
  }
  const titled = (): People => {
    const people = new People()
    people.add('ann', { title: ['Chief', 'Baker'] })
    people.add('bob', { title: ['Baker'] })
    people.add('cyd', { title: ['Dean', 'Actor'] })
    people.add('dan')
    return people
  }

  test.each(
    [params, lines].flatMap((gateway) =>
      (
        [
          ['title eq "Baker"', ['bob']],
          ['title co "act"', []],
          ['title ne "Baker"', ['ann', 'cyd', 'dan']],
          ['not (title eq "Baker")', ['ann', 'cyd', 'dan']],
          ['title pr', ['ann', 'bob', 'cyd']],
          ['title eq "Baker" or title eq "Dean"', ['bob', 'cyd']],
        ] as const
      ).map(
        ([filter, found]) => [filter, gateway === params ? 'the built-in mapping' : 'lines', gateway, found] as const,
      ),
    ),
  )('are not found by a value that is not shown: %s, %s', async (filter, _, gateway, found) => {
    const { send } = await openGateway(scimGateway, { people: titled(), params: gateway })
    const { body } = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([logins(body), body['totalResults']]).toEqual([found, found.length])
  })

  test('are sorted by the shown value', async () => {
    const { send } = await openGateway(scimGateway, { people: titled(), params })
    const { body } = await send('GET', '/Users?sortBy=title&sortOrder=descending')
    expect(logins(body)).toEqual(['dan', 'cyd', 'ann', 'bob'])
  })

  test('are left to a store that never has several', async () => {
    const names = new Set(['title'])
    const storable = async () => ({ users: names, groups: names, single: { users: names, groups: names } })
    const people = Object.assign(titled(), { storable })
    const { send } = await openGateway(scimGateway, { people, params })
    await send('GET', `/Users?filter=${encodeURIComponent('not (title eq "Baker")')}&sortBy=title&count=2`)
    expect(people.searches.at(-1)).toMatchObject({ limit: 2, filter: { kind: 'or' }, sort: { attribute: 'title' } })
  })
})
