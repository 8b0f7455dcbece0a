import { expect, test } from 'vitest'
import { coreGroup, coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

const bulkRequest = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest'
const searchRequest = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest'

/** Features of RFC 7644 and 9865 that no identity provider uses today, through the whole server. */
export function wholeProtocolStory(any: () => ScimClient): void {
  const newUser = (more: object = {}) => ({ schemas: [coreUser], userName: fresh('user'), ...more })

  test('every user is read by cursor, each once, while others are created and deleted', async () => {
    const made = await Promise.all(
      Array.from({ length: 25 }, async () => (await any().post('/Users', newUser())).body.id),
    )
    const seen: string[] = []
    let cursor: string | undefined = ''
    for (let pages = 0; cursor !== undefined && pages < 500; pages++) {
      const { status, body }: Awaited<ReturnType<typeof anyList>> = await anyList(cursor)
      expect(status).toBe(200)
      seen.push(...body.Resources.map(({ id }: { id: string }) => id))
      cursor = body.nextCursor
      if (pages === 0) await any().post('/Users', newUser())
    }
    expect(cursor).toBeUndefined()
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen).toEqual(expect.arrayContaining(made))
    expect(await any().list('/Users', { cursor: 'no cursor of ours' })).toMatchObject({
      status: 400,
      body: { scimType: 'invalidCursor' },
    })
  })
  const anyList = (cursor: string) => any().list('/Users', { cursor, count: '7' })

  test('a search is posted, to a type and to the root, and sorted', async () => {
    const title = fresh('title')
    for (const displayName of ['b', 'C', 'a']) await any().post('/Users', newUser({ displayName, title }))
    const request = {
      schemas: [searchRequest],
      filter: `title eq "${title}"`,
      sortBy: 'displayName',
      sortOrder: 'descending',
      attributes: ['displayName'],
    }
    for (const path of ['/Users/.search', '/.search']) {
      const { status, body } = await any().post(path, request)
      expect({ path, status }).toEqual({ path, status: 200 })
      const names = body.Resources.map(({ displayName }: { displayName: string }) => displayName)
      expect({ path, names }).toEqual({ path, names: ['C', 'b', 'a'] })
      expect(body.Resources[0]).not.toHaveProperty('userName')
    }
  })

  test('a bulk request creates a user and a group that refers to it, in either order', async () => {
    const [userName, displayName] = [fresh('user'), fresh('group')]
    const { status, body } = await any().post('/Bulk', {
      schemas: [bulkRequest],
      Operations: [
        {
          method: 'POST',
          path: '/Groups',
          bulkId: 'g',
          data: { schemas: [coreGroup], displayName, members: [{ type: 'User', value: 'bulkId:u' }] },
        },
        { method: 'POST', path: '/Users', bulkId: 'u', data: newUser({ userName }) },
        { method: 'DELETE', path: '/Users/nobody' },
      ],
    })
    expect(status).toBe(200)
    const results = body.Operations as { bulkId?: string; status: string; location?: string }[]
    expect(results.map((result) => result.status).toSorted()).toEqual(['201', '201', '404'])
    const location = (bulkId: string) => results.find((result) => result.bulkId === bulkId)?.location ?? ''
    const group = await any().get(location('g').slice(any().base.length))
    expect(group.body).toMatchObject({ displayName, members: [{ $ref: location('u') }] })
  })

  test('a known version is not sent again', async () => {
    const { body, headers } = await any().post('/Users', newUser())
    const etag = headers.get('etag') ?? ''
    expect(etag).toBe(body.meta.version)
    const same = await any().get(`/Users/${body.id}`, { 'if-none-match': etag })
    expect([same.status, same.body]).toEqual([304, undefined])
    await any().patch(`/Users/${body.id}`, [{ op: 'add', path: 'title', value: 'T' }])
    expect((await any().get(`/Users/${body.id}`, { 'if-none-match': etag })).status).toBe(200)
  })
}
