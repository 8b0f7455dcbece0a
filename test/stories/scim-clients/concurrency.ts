import { expect, test } from 'vitest'
import { coreGroup, coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'
import { siegeRaces } from '#testing/stories/siege.ts'

/**
 * Clients take turns in every case; with two of them, through two processes on one database. A single process locks what
 * it changes, so there a few requests at the same time are as good as many.
 */
export function concurrencyStory(clients: () => readonly ScimClient[], atOnce: 12 | 50 = 12): void {
  const parallel = siegeRaces || atOnce
  const contenders = parallel < 50 ? 8 : 20
  const rounds = parallel < 50 ? 2 : 10
  const losers = (status: number): number[] => Array(contenders - 1).fill(status)
  const nth = (n: number): ScimClient => {
    const all = clients()
    const client = all[n % all.length]
    if (client === undefined) throw new Error('no client')
    return client
  }
  const createUsers = (count: number): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const { status, body } = await nth(n).post('/Users', { schemas: [coreUser], userName: fresh('user') })
        expect(status).toBe(201)
        return body.id as string
      }),
    )
  const createGroup = async (members: readonly string[] = []) => {
    const body = { schemas: [coreGroup], displayName: fresh('group'), members: members.map((value) => ({ value })) }
    const created = await nth(0).post('/Groups', body)
    expect(created.status).toBe(201)
    return created.body as { id: string; meta: { version: string } }
  }

  test(`${parallel} PATCHes that add and remove different members of one group lose nothing`, async () => {
    const users = await createUsers(parallel)
    const leaving = users.filter((_, n) => n % 2 === 0)
    const joining = users.filter((_, n) => n % 2 === 1)
    const { id } = await createGroup(leaving)
    const answers = await Promise.all(
      users.map((user, n) =>
        nth(Math.floor(n / 2)).patch(`/Groups/${id}`, [
          n % 2 === 0
            ? { op: 'remove', path: `members[value eq "${user}"]` }
            : { op: 'add', path: 'members', value: [{ value: user }] },
        ]),
      ),
    )
    expect(answers.map(({ status }) => status).filter((status) => status !== 204)).toEqual([])
    for (const client of clients()) expect(await client.members(id)).toEqual([...joining].sort())
    const groups = await Promise.all(
      users.map(async (user, n) => (await nth(n).get(`/Users/${user}`)).body.groups ?? []),
    )
    expect(groups.map((list) => list.length)).toEqual(users.map((_, n) => n % 2))
  })

  test('one user joins many groups at the same time and is in all of them', async () => {
    const [user = ''] = await createUsers(1)
    const groups = await Promise.all(Array.from({ length: Math.min(contenders, 10) }, () => createGroup()))
    const answers = await Promise.all(
      groups.map(({ id }, n) =>
        nth(n).patch(`/Groups/${id}`, [{ op: 'add', path: 'members', value: [{ value: user }] }]),
      ),
    )
    expect(answers.map(({ status }) => status).filter((status) => status !== 204)).toEqual([])
    const { body } = await nth(0).get(`/Users/${user}`)
    expect(body.groups.map(({ value }: { value: string }) => value).sort()).toEqual(groups.map(({ id }) => id).sort())
  })

  test(`one of ${contenders} PATCHes of a user with the same If-Match wins`, async () => {
    const [id = ''] = await createUsers(1)
    const version = (await nth(0).get(`/Users/${id}`)).headers.get('etag') ?? ''
    expect(version).not.toBe('')
    const answers = await Promise.all(
      Array.from({ length: contenders }, (_, n) =>
        nth(n).patch(`/Users/${id}`, [{ op: 'replace', path: 'displayName', value: `${n}` }], { 'if-match': version }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([200, ...losers(412)])
    const { body } = await nth(0).get(`/Users/${id}`)
    expect(body.displayName).toBe(String(statuses.indexOf(200)))
    expect(body.meta.version).not.toBe(version)
  })

  test(`one of ${contenders} PATCHes of a group with the same If-Match wins`, async () => {
    const users = await createUsers(contenders)
    const { id } = await createGroup()
    const version = (await nth(0).get(`/Groups/${id}`)).headers.get('etag') ?? ''
    expect(version).not.toBe('')
    const answers = await Promise.all(
      users.map((value, n) =>
        nth(n).patch(`/Groups/${id}`, [{ op: 'add', path: 'members', value: [{ value }] }], { 'if-match': version }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([204, ...losers(412)])
    expect(await nth(0).members(id)).toEqual([users[statuses.indexOf(204)]])
  })

  test('a stale If-Match always loses, and nothing changes: PATCH, PUT and DELETE of users', async () => {
    const [id = ''] = await createUsers(1)
    const path = `/Users/${id}`
    const stale = (await nth(0).get(path)).headers.get('etag') ?? ''
    await nth(1).patch(path, [{ op: 'replace', path: 'displayName', value: 'Newer' }])
    const before = (await nth(0).get(path)).body
    const headers = { 'if-match': stale }
    const answers = [
      await nth(0).patch(path, [{ op: 'replace', path: 'displayName', value: 'Stale' }], headers),
      await nth(1).patch(path, [{ op: 'replace', path: 'active', value: false }], headers),
      await nth(0).put(path, { ...before, displayName: 'Stale' }, headers),
      await nth(1).delete(path, headers),
    ]
    expect(answers.map(({ status }) => status)).toEqual([412, 412, 412, 412])
    expect((await nth(0).get(path)).body).toEqual(before)
    expect((await nth(0).delete(path, { 'if-match': before.meta.version })).status).toBe(204)
  })

  test('a stale If-Match always loses, and nothing changes: PATCH, PUT and DELETE of groups', async () => {
    const [first = '', second = ''] = await createUsers(2)
    const { id } = await createGroup()
    const path = `/Groups/${id}`
    const stale = (await nth(0).get(path)).headers.get('etag') ?? ''
    await nth(1).patch(path, [{ op: 'add', path: 'members', value: [{ value: first }] }])
    const before = (await nth(0).get(path)).body
    const headers = { 'if-match': stale }
    const answers = [
      await nth(0).patch(path, [{ op: 'add', path: 'members', value: [{ value: second }] }], headers),
      await nth(1).patch(path, [{ op: 'replace', path: 'displayName', value: fresh('stale') }], headers),
      await nth(0).put(path, { ...before, members: [] }, headers),
      await nth(1).delete(path, headers),
    ]
    expect(answers.map(({ status }) => status)).toEqual([412, 412, 412, 412])
    expect((await nth(0).get(path)).body).toEqual(before)
    expect((await nth(0).delete(path, { 'if-match': before.meta.version })).status).toBe(204)
  })

  test(`one of ${contenders} POSTs for one name, each with different data, creates the user and the others get a conflict`, async () => {
    const userName = fresh('same')
    const answers = await Promise.all(
      Array.from({ length: contenders }, (_, n) =>
        nth(n).post('/Users', { schemas: [coreUser], userName, externalId: `${n}` }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, ...losers(409)])
    const { body } = await nth(0).filter('/Users', `userName eq "${userName}"`)
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ externalId: String(statuses.indexOf(201)) }] })
  })

  test(`one of ${contenders} POSTs for one group name, each with different data, creates it and the others get a conflict`, async () => {
    const displayName = fresh('same')
    const answers = await Promise.all(
      Array.from({ length: contenders }, (_, n) =>
        nth(n).post('/Groups', { schemas: [coreGroup], displayName, externalId: `${n}` }),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([201, ...losers(409)])
    const { body } = await nth(0).filter('/Groups', `displayName eq "${displayName}"`)
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ externalId: String(statuses.indexOf(201)) }] })
  })

  test('one of 10 users who want the same new name gets it, the others get a conflict and keep theirs', async () => {
    const users = await createUsers(10)
    const value = fresh('wanted')
    const answers = await Promise.all(
      users.map((id, n) => nth(n).patch(`/Users/${id}`, [{ op: 'replace', path: 'userName', value }])),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(9).fill(409)])
    const names = await Promise.all(users.map(async (id, n) => (await nth(n).get(`/Users/${id}`)).body.userName))
    expect(names.filter((name) => name === value)).toHaveLength(1)
  })

  test('each knows the answered changes of the other', async () => {
    const [id = ''] = await createUsers(1)
    for (let n = 0; n < rounds; n++) {
      await nth(n).patch(`/Users/${id}`, [{ op: 'replace', path: 'displayName', value: `${n}` }])
      expect((await nth(n + 1).get(`/Users/${id}`)).body.displayName).toBe(`${n}`)
    }
  })
}
