import { expect, test } from 'vitest'
import { base, openGateway, People } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

/** The caller of the fixture is `idp`. */
async function open() {
  const people = new People({ ownIds: true })
  people.add('other')
  people.add('IDP', { first: ['Ida'], last: ['P'] })
  return openGateway(scimGateway, { people })
}

const replaceLast = {
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: [{ op: 'replace', path: 'name.familyName', value: 'Q' }],
}

test('is the user whose login is the caller, under its own address', async () => {
  const { send } = await open()
  const me = await send('GET', '/Me')
  expect(me).toMatchObject({
    status: 200,
    headers: { location: `${base}/Users/id-2` },
    body: { id: 'id-2', userName: 'IDP', meta: { location: `${base}/Users/id-2` } },
  })
  expect(me).toEqual(await send('GET', '/Users/id-2'))
  expect((await send('GET', '/Me?attributes=userName')).body).not.toHaveProperty('name')
})

test('is changed and deleted as that user', async () => {
  const { send, people, workflows } = await open()
  expect(await send('PATCH', '/Me', replaceLast)).toMatchObject({ status: 200, body: { name: { familyName: 'Q' } } })
  expect((await send('PUT', '/Me', { userName: 'IDP', name: { givenName: 'I' } })).status).toBe(200)
  expect(workflows.calls.map(({ user }) => user.userID)).toEqual(['IDP', 'IDP'])
  expect((await send('DELETE', '/Me')).status).toBe(204)
  expect([...people.people.keys()]).toEqual(['other'])
  expect((await send('GET', '/Me')).status).toBe(404)
})

test('offers no dry runs, which show more than the mapping', async () => {
  const { send, workflows } = await open()
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status, body } = await send(method, '/Me?dryRun=true', replaceLast)
    expect([status, body['scimType'], body['detail']]).toEqual([
      400,
      'invalidValue',
      '/Me offers no dry runs. Nothing was changed.',
    ])
  }
  expect(workflows.calls).toEqual([])
})

test('is 404 if the caller does not match any user', async () => {
  const { send, workflows } = await openGateway(scimGateway)
  for (const method of ['GET', 'HEAD', 'DELETE']) expect((await send(method, '/Me')).status).toBe(404)
  for (const method of ['PUT', 'PATCH']) expect((await send(method, '/Me', replaceLast)).status).toBe(404)
  expect(workflows.calls).toEqual([])
  expect((await send('GET', '/Me')).body['detail']).toBe('The caller does not match any user, so /Me is not available.')
})

test('is not created (RFC 7644 3.11), and has nothing below it', async () => {
  const { send } = await open()
  expect((await send('POST', '/Me', { userName: 'idp' })).status).toBe(501)
  expect((await send('GET', '/Me/x')).status).toBe(404)
  expect((await send('OPTIONS', '/Me')).headers['allow']).toBe('GET, PUT, PATCH, DELETE, POST, HEAD, OPTIONS')
})
