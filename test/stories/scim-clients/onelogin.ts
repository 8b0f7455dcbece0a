import { expect, test } from 'vitest'
import { coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh, type StoryOptions, testIf } from '#testing/scim/scim-story.ts'

/** OneLogin's behavior, with the requests of its provisioning connector. */
export function oneloginStory(onelogin: () => ScimClient, { groups }: StoryOptions = {}): void {
  const groupTest = testIf(groups)
  /** The output of its body template, including the wrong schema. */
  const newUser = (more: object = {}) => ({
    schemas: ['urn:scim:schemas:core:1.0'],
    userName: fresh('user'),
    externalId: '12345',
    name: { givenName: 'One', familyName: 'Login', formatted: 'One Login' },
    emails: [{ value: 'one@example.com', type: 'work', primary: true }],
    phoneNumbers: [],
    ...more,
  })
  const create = async (): Promise<string> => {
    const { status, body } = await onelogin().post('/Users', newUser())
    expect(status).toBe(201)
    return body.id
  }
  const createGroup = async (members: readonly string[]): Promise<string> => {
    const body = { schemas: ['urn:scim:schemas:core:1.0'], displayName: fresh('group') }
    const created = await onelogin().post('/Groups', body)
    expect(created.status).toBe(201)
    const value = members.map((member) => ({ value: member }))
    await onelogin().patch(`/Groups/${created.body.id}`, [{ op: 'add', path: 'members', value }])
    return created.body.id
  }

  test('the schema of the template is ignored, the answer names the right one', async () => {
    const { status, body } = await onelogin().post('/Users', newUser())
    expect(status).toBe(201)
    expect(body).toMatchObject({ schemas: [coreUser], externalId: '12345', name: { formatted: 'One Login' } })
    expect(
      await onelogin().put(`/Users/${body.id}`, { ...newUser(), userName: body.userName, title: 'T' }),
    ).toMatchObject({
      status: 200,
      body: { schemas: [coreUser], title: 'T' },
    })
  })

  groupTest('a member is removed by value, and no other member', async () => {
    const users = [await create(), await create(), await create()]
    const group = await createGroup(users)
    const [first = '', ...rest] = users
    const removed = await onelogin().patch(`/Groups/${group}`, [
      { op: 'remove', path: 'members', value: [{ value: first }] },
    ])
    expect(removed.status).toBe(204)
    expect(await onelogin().members(group)).toEqual(rest.sort())
  })

  groupTest('a removal without a member is rejected, since it would empty the group', async () => {
    const users = [await create(), await create()]
    const group = await createGroup(users)
    expect((await onelogin().patch(`/Groups/${group}`, [{ op: 'remove', path: 'members' }])).status).toBe(400)
    expect(await onelogin().members(group)).toEqual(users.sort())
  })

  test('a leaver is deleted, or deactivated, or unchanged', async () => {
    const [deleted, suspended] = [await create(), await create()]
    expect((await onelogin().delete(`/Users/${deleted}`)).status).toBe(204)
    expect((await onelogin().get(`/Users/${deleted}`)).status).toBe(404)
    const off = await onelogin().patch(`/Users/${suspended}`, [{ op: 'replace', path: 'active', value: false }])
    expect(off).toMatchObject({ status: 200, body: { active: false } })
  })

  test('only a bearer token is accepted', async () => {
    const basic = await onelogin().get('/Users', { authorization: 'Basic aWRwOnNlY3JldA==' })
    expect(basic.status).toBe(401)
    expect(basic.headers.get('www-authenticate')).toMatch(/^Bearer/)
  })
}
