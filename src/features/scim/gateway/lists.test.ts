import { describe, expect, test } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { type Answer, openGateway, People, type Send, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const names = ['Dora', 'bert', 'Anna', 'carl', 'Emil']

async function open(configure: (people: People) => void = () => {}) {
  const people = new People()
  for (const [i, name] of names.entries()) {
    people.add(name, { first: [name], mail: [`${9 - i}@example.com`], enabled: [i % 2 === 0 ? 'true' : 'false'] })
  }
  people.addGroup('red', 'Anna')
  people.addGroup('Blue')
  people.addGroup('amber')
  configure(people)
  return openGateway(scimGateway, { people })
}

const found = ({ body }: Answer): unknown[] =>
  (body['Resources'] as JsonObject[]).map((resource) => resource['userName'] ?? resource['displayName'])

/** Every page of a list by cursor. */
async function pages(send: Send, path: string): Promise<unknown[][]> {
  const all: unknown[][] = []
  for (let cursor = ''; ; ) {
    const answer = await send('GET', `${path}&cursor=${cursor}`)
    expect(answer.status).toBe(200)
    expect(answer.body).not.toHaveProperty('startIndex')
    all.push(found(answer))
    const { nextCursor } = answer.body
    if (typeof nextCursor !== 'string') return all
    cursor = nextCursor
  }
}

describe('times that the target does not report', () => {
  const modified = 'meta.lastModified gt "2026-01-01T00:00:00Z"'
  test.each([
    `/Users?filter=${modified}`,
    `/Users?filter=not (${modified})`,
    `/Users?filter=name.givenName eq "Dora" and ${modified}`,
    `/Users?filter=userName eq "Dora" and ${modified}`,
    `/Users?filter=${modified}&cursor=`,
    '/Users?filter=meta.lastModified pr',
    `/Groups?filter=${modified}`,
    `/Groups?filter=members eq "Anna" and ${modified}`,
    '/Users?sortBy=meta.lastModified',
    '/Groups?sortBy=meta.lastModified&count=0',
  ])('are refused instead of finding nothing: %s', async (path) => {
    const { send } = await open()
    const { status, body } = await send('GET', encodeURI(path))
    const [scimType, start] = path.includes('sortBy') ? ['invalidValue', 'sortBy'] : ['invalidFilter', 'filter']
    expect([status, body['scimType']]).toEqual([400, scimType])
    expect(body['detail']).toContain(`${start}: the target does not report "meta.lastModified"`)
  })

  test('find nothing where there is nothing', async () => {
    const { send } = await open()
    const filter = encodeURIComponent(`userName eq "no one" and ${modified}`)
    expect((await send('GET', `/Users?filter=${filter}`)).body).toMatchObject({ totalResults: 0 })
  })
})

describe('sort', () => {
  test('the store sorts by an attribute that it knows', async () => {
    const { send, people } = await open()
    expect(found(await send('GET', '/Users?sortBy=userName'))).toEqual(['Anna', 'bert', 'carl', 'Dora', 'Emil'])
    expect(people.searches.at(-1)?.sort).toEqual({ attribute: 'userID', descending: false, caseExact: false })
    expect(found(await send('GET', '/Groups?sortBy=displayName&sortOrder=descending'))).toEqual([
      'red',
      'Blue',
      'amber',
    ])
    expect(people.searches.at(-1)?.sort).toEqual({ attribute: 'name', descending: true, caseExact: false })
  })

  test('the gateway sorts by other attributes, by the primary of several values', async () => {
    const { send, people } = await open()
    expect(found(await send('GET', '/Users?sortBy=emails.value'))).toEqual(['Emil', 'carl', 'Anna', 'bert', 'Dora'])
    expect(people.searches.at(-1)?.sort).toBeUndefined()
    const page = await send('GET', '/Users?sortBy=name.givenName&sortOrder=descending&startIndex=2&count=2')
    expect(found(page)).toEqual(['Dora', 'carl'])
    expect(page.body).toMatchObject({ totalResults: 5, startIndex: 2, itemsPerPage: 2 })
  })

  test('with a filter that is tested here', async () => {
    const { send } = await open()
    const answer = await send('GET', '/Users?filter=meta.created%20pr&sortBy=userName&count=2')
    expect(found(answer)).toEqual(['Anna', 'bert'])
  })

  test('refuses an attribute that no user can have', async () => {
    const { send } = await open()
    const { status, body } = await send('GET', '/Users?sortBy=title')
    expect([status, body['scimType'], String(body['detail'])]).toEqual([
      400,
      'invalidValue',
      expect.stringContaining('sortBy: "title" is neither stored nor shown'),
    ])
  })

  test('rejects more resources than it can sort', async () => {
    const people = new People()
    const { send } = await openGateway(scimGateway, { people })
    people.searchUsers = async () => ({ items: [], total: 10_001 })
    expect(await send('GET', '/Users?sortBy=emails')).toMatchObject({
      status: 400,
      body: { scimType: 'tooMany', detail: expect.stringContaining('by "emails.value" itself') },
    })
    expect((await send('GET', '/Users?sortBy=userName')).status).toBe(200)
  })

  test.each(['/Users?sortBy=none', '/Users?sortBy=userName&sortOrder=up', '/Groups?sortBy=members'])(
    '%s is invalidValue',
    async (path) => {
      const { send } = await open()
      expect(await send('GET', path)).toMatchObject({ status: 400, body: { scimType: 'invalidValue' } })
    },
  )
})

describe('cursor (RFC 9865)', () => {
  test.each([
    ['the positions of the store', true],
    ['a store that gives none', false],
  ])('returns every resource once, with %s', async (_, givesPositions) => {
    const { send } = await open((people) => {
      people.givesPositions = givesPositions
    })
    expect(await pages(send, '/Users?count=2')).toEqual([['Dora', 'bert'], ['Anna', 'carl'], ['Emil']])
    expect(await pages(send, '/Users?count=5')).toEqual([names])
    expect(await pages(send, '/Users?count=2&sortBy=userName')).toEqual([['Anna', 'bert'], ['carl', 'Dora'], ['Emil']])
    expect(await pages(send, '/Groups?count=2')).toEqual([['red', 'Blue'], ['amber']])
    expect(await pages(send, '/Users?filter=active%20eq%20true&count=1')).toEqual([['Dora'], ['Anna'], ['Emil']])
  })

  test('works for lists that the gateway filters or sorts', async () => {
    const { send } = await open()
    expect(await pages(send, '/Users?filter=meta.created%20pr&count=3')).toEqual([
      ['Dora', 'bert', 'Anna'],
      ['carl', 'Emil'],
    ])
    expect(await pages(send, '/Users?sortBy=emails&count=4')).toEqual([['Emil', 'carl', 'Anna', 'bert'], ['Dora']])
    expect(await pages(send, '/Users?filter=userName%20eq%20%22anna%22&count=1')).toEqual([['Anna']])
  })

  test('continues after the last page in the store', async () => {
    const { send, people } = await open()
    await pages(send, '/Users?count=2')
    expect(people.searches.map(({ offset, after }) => [offset, after])).toEqual([
      [0, undefined],
      [0, 'p2'],
      [0, 'p4'],
    ])
  })

  test('works for an empty list', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/Users?filter=userName%20sw%20%22x%22&cursor')
    expect(body).toMatchObject({ totalResults: 0, itemsPerPage: 0, Resources: [] })
    expect(body).not.toHaveProperty('nextCursor')
  })

  test('is valid for one query only', async () => {
    const { send } = await open()
    const { nextCursor } = (await send('GET', '/Users?cursor&count=2')).body
    for (const path of [
      `/Groups?cursor=${nextCursor}`,
      `/Users?sortBy=userName&cursor=${nextCursor}`,
      `/Users?filter=active%20eq%20true&cursor=${nextCursor}`,
      `/?cursor=${nextCursor}`,
      '/Users?cursor=VZUTiyhEQJ94IR',
    ]) {
      expect(await send('GET', path)).toMatchObject({ status: 400, body: { scimType: 'invalidCursor' } })
    }
    expect(found(await send('GET', `/Users?count=1&cursor=${nextCursor}`))).toEqual(['Anna'])
  })

  test('expires if its position no longer exists', async () => {
    const { send, people } = await open()
    const path = '/Users?sortBy=emails&count=2'
    const { nextCursor } = (await send('GET', `${path}&cursor`)).body
    people.people.delete('carl')
    expect(await send('GET', `${path}&cursor=${nextCursor}`)).toMatchObject({
      status: 400,
      body: { scimType: 'expiredCursor' },
    })
  })

  test('that the store rejects is invalidCursor, and the filter is not blamed', async () => {
    const { send, people } = await open()
    const { nextCursor } = (await send('GET', '/Users?count=2&cursor')).body
    const { searchUsers } = people
    people.searchUsers = (query) => searchUsers.call(people, { ...query, after: 'other' })
    expect(await send('GET', `/Users?count=2&cursor=${nextCursor}`)).toMatchObject({
      status: 400,
      body: { scimType: 'invalidCursor' },
    })
  })

  test('rejects a count of 0, or a start index', async () => {
    const { send } = await open()
    expect((await send('GET', '/Users?cursor&count=0')).body).toMatchObject({ scimType: 'invalidCount' })
    expect((await send('GET', '/Users?cursor&startIndex=1')).body).toMatchObject({ scimType: 'invalidValue' })
  })
})

describe('an empty filter', () => {
  test.each(['/Users?filter=', '/Groups?filter=', '?filter=', '/Users?filter=%20', '/Users?count=1&filter'])(
    '%s is refused instead of listing everything',
    async (path) => {
      const { send } = await open()
      expect(await send('GET', path)).toMatchObject({
        status: 400,
        body: {
          scimType: 'invalidFilter',
          detail: 'The filter is empty. Write a condition, or leave the parameter out.',
        },
      })
    },
  )

  test('also at the root of .search', async () => {
    const { send } = await open()
    expect((await send('POST', '/.search', { filter: '' })).body).toMatchObject({ scimType: 'invalidFilter' })
  })
})

describe.each([
  'tolerant',
  'entra',
  'okta',
  'sailpoint',
  'onelogin',
  'jumpcloud',
  'google',
  'aws',
  'github',
  'slack',
  'strict',
])('client %s', (client) => {
  test('a value in single quotes is refused, since no match would mean "not there" to a client', async () => {
    const people = new People()
    people.add('ann')
    const { send } = await openGateway(scimGateway, { people, params: { ...tutorialParams, client } })
    expect((await send('GET', "/Users?filter=userName%20eq%20'ann'")).status).toBe(400)
    expect((await send('GET', '/Users?filter=userName%20eq%20%22ann%22')).body).toMatchObject({ totalResults: 1 })
  })
})

describe("a client's own names for attributes", () => {
  async function as(client: string) {
    const people = new People()
    people.add('ann', { mail: ['ann@example.com'] })
    people.add('bob', { mail: ['bob@example.com'] })
    return (await openGateway(scimGateway, { people, params: { ...tutorialParams, client } })).send
  }

  test.each([
    'email eq "ann@example.com"',
    'Email eq ann@example.com',
    'email sw "ann" and active pr or email co "ann@"',
  ])('slack: %s', async (filter) => {
    const path = `/Users?filter=${encodeURIComponent(filter)}`
    expect(found(await (await as('slack'))('GET', path))).toEqual(['ann'])
    expect((await (await as('tolerant'))('GET', path)).body).toMatchObject({ scimType: 'invalidFilter' })
  })

  test('slack: email is not an attribute of groups, and another address finds no one', async () => {
    const send = await as('slack')
    expect((await send('GET', '/Groups?filter=email%20eq%20%22x%22')).status).toBe(400)
    expect(found(await send('GET', '/Users?filter=email%20eq%20%22x@example.com%22'))).toEqual([])
  })

  test('github: external_id', async () => {
    const path = '/Users?filter=external_id%20eq%20%22e1%22'
    expect((await (await as('github'))('GET', path)).body['detail']).toContain(
      '"externalId" is neither stored nor shown',
    )
    expect((await (await as('tolerant'))('GET', path)).body['detail']).toContain('external_id')
  })
})

describe('.search (RFC 7644 3.4.3)', () => {
  const schemas = ['urn:ietf:params:scim:api:messages:2.0:SearchRequest']

  test('is the GET with the same parameters', async () => {
    const { send } = await open()
    const body = {
      schemas,
      filter: 'active eq true',
      sortBy: 'userName',
      startIndex: 2,
      count: 2,
      attributes: ['userName'],
    }
    const query = new URLSearchParams({ ...body, schemas: '', startIndex: '2', count: '2', attributes: 'userName' })
    const answer = await send('POST', '/Users/.search', body)
    expect(answer).toEqual(await send('GET', `/Users?${query}`))
    expect(found(answer)).toEqual(['Dora', 'Emil'])
    expect(found(await send('POST', '/Groups/.search', { filter: 'displayName eq "blue"' }))).toEqual(['Blue'])
  })

  test('its cursors continue in a GET', async () => {
    const { send } = await open()
    const { nextCursor } = (await send('POST', '/Users/.search', { schemas, cursor: '', count: 4 })).body
    expect(found(await send('GET', `/Users?cursor=${nextCursor}`))).toEqual(['Emil'])
  })

  test.each([
    [{ filter: 'nonsense' }, 'invalidFilter'],
    [{ filter: '' }, 'invalidFilter'],
    [{ filter: 7 }, 'invalidValue'],
    [{ count: '7' }, 'invalidValue'],
    [{ cursor: 'x' }, 'invalidCursor'],
    [{ schemas: ['urn:x'] }, 'invalidSyntax'],
    [[], 'invalidSyntax'],
    ['{', 'invalidSyntax'],
  ])('%j is %s', async (body, scimType) => {
    const { send } = await open()
    expect(await send('POST', '/Users/.search', body)).toMatchObject({ status: 400, body: { scimType } })
  })

  test('accepts POST only', async () => {
    const { send } = await open()
    for (const path of ['/Users/.search', '/.search']) {
      expect(await send('GET', path)).toMatchObject({ status: 405, headers: { allow: 'POST, OPTIONS' } })
    }
  })
})

describe('of all types (RFC 7644 3.4.2.1)', () => {
  const all = [...names, 'red', 'Blue', 'amber']

  test('returns users, then groups, with one total', async () => {
    const { send } = await open()
    const answer = await send('GET', '')
    expect(found(answer)).toEqual(all)
    expect(answer.body).toMatchObject({ totalResults: 8, startIndex: 1, itemsPerPage: 8 })
    expect(found(await send('POST', '/.search', { count: 3, startIndex: 4 }))).toEqual(['carl', 'Emil', 'red'])
    expect(found(await send('GET', '/?startIndex=7'))).toEqual(['Blue', 'amber'])
    const beyond = await send('GET', '/?startIndex=9&count=1')
    expect(beyond.body).toMatchObject({ totalResults: 8, startIndex: 9, itemsPerPage: 0 })
    expect((await send('GET', '/?count=0')).body).toMatchObject({ totalResults: 8, Resources: [] })
  })

  test.each([1, 2, 3, 5, 7, 8])('works by cursor, %i at a time', async (count) => {
    const { send } = await open()
    const parts = await pages(send, `/?count=${count}`)
    expect(parts.flat()).toEqual(all)
    expect(parts.length).toBe(Math.ceil(all.length / count))
  })

  test('an attribute of one type has no value in the other', async () => {
    const { send } = await open()
    const matching = async (filter: string) => found(await send('POST', '/.search', { filter }))
    expect(await matching('userName eq "anna"')).toEqual(['Anna'])
    expect(await matching('userName eq "anna" or displayName eq "red"')).toEqual(['Anna', 'red'])
    expect(await matching('not (userName pr)')).toEqual(['red', 'Blue', 'amber'])
    expect(await matching('meta.resourceType eq "Group"')).toEqual(['red', 'Blue', 'amber'])
    expect(await matching('urn:ietf:params:scim:schemas:core:2.0:User:displayName pr')).toEqual(names)
    expect((await send('POST', '/.search', { filter: 'none eq "x"' })).body).toMatchObject({
      scimType: 'invalidFilter',
    })
  })

  test('does not search a type that cannot match', async () => {
    const { send, people } = await open()
    await send('POST', '/.search', { filter: 'meta.resourceType eq "User"' })
    expect(people.searches).toHaveLength(1)
  })

  test('sorts across the types', async () => {
    const { send } = await open()
    expect(await pages(send, '/?sortBy=id&sortOrder=descending&count=3')).toEqual([
      ['red', 'Blue', 'amber'],
      ['Emil', 'Dora', 'carl'],
      ['bert', 'Anna'],
    ])
    expect(found(await send('GET', '/?sortBy=userName&count=3&startIndex=4'))).toEqual(['Dora', 'Emil', 'red'])
    expect((await send('GET', '/?sortBy=none')).body).toMatchObject({ scimType: 'invalidValue' })
  })

  test('returns a user and a group with the same id', async () => {
    const { send } = await open((people) => people.addGroup('Anna'))
    expect((await pages(send, '/?sortBy=id&count=1')).flat()).toHaveLength(9)
  })

  test('shows each by its own schema', async () => {
    const { send } = await open()
    const { body } = await send('GET', '/?attributes=userName,members&sortBy=displayName&sortOrder=descending&count=2')
    expect(body['Resources']).toEqual([
      expect.objectContaining({ id: 'group:red', members: [expect.objectContaining({ value: 'Anna' })] }),
      { schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], id: 'Emil', userName: 'Emil' },
    ])
  })
})
