import { expect, test } from 'vitest'
import { coreUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh } from '#testing/scim/scim-story.ts'

const errorSchema = 'urn:ietf:params:scim:api:messages:2.0:Error'

/** The twelve steps of Okta's SPEC suite, in its order. */
export function oktaSpecStory(okta: () => ScimClient): void {
  const userName = `${fresh('Spec')}@example.com`
  const user = {
    schemas: [coreUser],
    userName,
    name: { familyName: 'Spec', givenName: 'Runner' },
    emails: [{ primary: true, value: userName, type: 'work' }],
    displayName: 'Spec Runner',
    active: true,
  }
  let id = ''

  test('01: Users exist and the list has its shape', async () => {
    await okta().post('/Users', { schemas: [coreUser], userName: fresh('first') })
    const { status, headers, body } = await okta().list('/Users', { count: '1', startIndex: '1' })
    expect(status).toBe(200)
    expect(headers.get('content-type')).toContain('application/scim+json')
    expect(body.schemas).toContain('urn:ietf:params:scim:api:messages:2.0:ListResponse')
    expect(body).toMatchObject({ itemsPerPage: 1, startIndex: 1 })
    expect(Number.isInteger(body.totalResults)).toBe(true)
    expect(body.Resources[0].id).not.toBe('')
    id = body.Resources[0].id
  })

  test('02: the first of them is read by id', async () => {
    expect(await okta().get(`/Users/${id}`)).toMatchObject({ status: 200, body: { id } })
  })

  test('03: an unused user name returns an empty list', async () => {
    const { status, body } = await okta().filter('/Users', `userName eq "${fresh('nobody')}@example.com"`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ totalResults: 0 })
    expect(body.schemas).toContain('urn:ietf:params:scim:api:messages:2.0:ListResponse')
  })

  test('04: an unknown id is 404 with an Error', async () => {
    expect(await okta().get('/Users/00919288221112222')).toMatchObject({
      status: 404,
      body: { schemas: [errorSchema], status: '404', detail: expect.any(String) },
    })
  })

  test('05: a random user does not exist yet', async () => {
    expect((await okta().filter('/Users', `userName eq "${userName}"`)).body.totalResults).toBe(0)
  })

  test('06: it is created', async () => {
    const { status, body } = await okta().post('/Users', user)
    expect(status).toBe(201)
    expect(body).toMatchObject({ active: true, userName, name: user.name })
    expect(body.schemas).toContain(coreUser)
    id = body.id
  })

  test('07: it exists', async () => {
    expect(await okta().get(`/Users/${id}`)).toMatchObject({ status: 200, body: { userName, name: user.name } })
  })

  test('08: it cannot be created again', async () => {
    expect(await okta().post('/Users', user)).toMatchObject({ status: 409, body: { schemas: [errorSchema] } })
  })

  test('09: it is found by its name in another letter case', async () => {
    const { status, body } = await okta().filter('/Users', `userName eq "${userName.toUpperCase()}"`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ totalResults: 1, Resources: [{ id }] })
  })

  test('10: Groups exist', async () => {
    const { status, body } = await okta().get('/Groups')
    expect(status).toBe(200)
    expect(body.schemas).toContain('urn:ietf:params:scim:api:messages:2.0:ListResponse')
  })

  test('11: without a valid token the answer is 401 with an Error and a challenge', async () => {
    const wrong = { authorization: 'Bearer non-token' }
    const { status, headers, body } = await okta().get('/Users?startIndex=1&count=1', wrong)
    expect(status).toBe(401)
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
    expect(body).toMatchObject({ schemas: [errorSchema], status: '401', detail: expect.any(String) })
  })

  test('12: an unknown address is 404', async () => {
    const { status, body } = await okta().get('/Users/00919288221112222')
    expect([status, body.schemas]).toEqual([404, [errorSchema]])
    expect((await okta().get('/NoSuchThing')).status).toBe(404)
  })
}
