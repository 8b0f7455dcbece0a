import { describe, expect, test } from 'vitest'
import { type AttributeText, GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const patch = (...operations: JsonObject[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

async function open(people = new People()) {
  people.add('ann', { first: ['Ann'] })
  people.addGroup('red')
  return openGateway(scimGateway, {
    people,
    params: { ...tutorialParams, groupCreateWorkflow: 'create-group', groupUpdateWorkflow: 'update-group' },
  })
}

describe('errors say what was wrong, where, and what to do', () => {
  test.each<[string, string, string | JsonObject, string]>([
    [
      'POST',
      '/Users',
      '{\n  "userName": "x",\n  oops\n}',
      'The request body is not valid JSON: unexpected character at line 3, column 3.',
    ],
    [
      'POST',
      '/Users',
      '{"userName": "x"',
      'The request body is not valid JSON: it ends too early, at line 1, column 17.',
    ],
    [
      'POST',
      '/Users',
      { userName: 'x'.repeat(7000) },
      'userName must have at most 256 characters. Send another login.',
    ],
    ['POST', '/Users', { userName: '..' }, 'userName: ".." is reserved in addresses. Choose another one.'],
    [
      'POST',
      '/Groups',
      { displayName: '.search' },
      'displayName: ".search" is reserved in addresses. Choose another one.',
    ],
    [
      'POST',
      '/Users',
      { userName: 'ANN' },
      'userName: another user has "A…". Choose another one, or change that user.',
    ],
    [
      'POST',
      '/Groups',
      { displayName: 'RED' },
      'displayName: another group has this name, in this or another letter case. Choose another one, or change that group.',
    ],
    [
      'PATCH',
      '/Users/ann',
      patch({ op: 'replace', path: 'name.givenName', value: 'B' }, { op: 'chnge', path: 'name.givenName', value: 'C' }),
      'Operations[1]: op must be "add", "replace" or "remove".',
    ],
    [
      'PATCH',
      '/Users/ann',
      patch({ op: 'replace', path: 'nme.givenName', value: 'B' }),
      'There is no attribute "nme.givenName" (did you mean "name.givenName"?). Correct the name, or list it in ignoreUnmapped.',
    ],
    ['GET', '/Users/none', '', 'There is no user with id "none". It may have been deleted; search for it by userName.'],
    [
      'GET',
      '/Groups/none',
      '',
      'There is no group with id "none". It may have been deleted; search for it by displayName.',
    ],
  ])('%s %s %#', async (method, path, body, detail) => {
    const { send } = await open()
    expect((await send(method, path, body === '' ? undefined : body)).body['detail']).toBe(detail)
  })

  test('an unknown bulkId is named', async () => {
    const { send } = await open()
    const members = [{ value: 'bulkId:ghost' }]
    const Operations = [{ method: 'POST', path: '/Groups', bulkId: 'g', data: { displayName: 'new', members } }]
    const [one] = (await send('POST', '/Bulk', { Operations })).body['Operations'] as JsonObject[]
    expect(one?.['response']).toMatchObject({
      detail:
        'No operation of this request has the bulkId "ghost". Add the POST that creates it, or send the id of an existing resource.',
    })
  })
})

describe('a target that fails', () => {
  test('while reading is not reported as a rejected change', async () => {
    const people = new People()
    const { send, workflows } = await open(people)
    Object.assign(people, {
      lookupUserById: async () => {
        throw new GatewayError('TARGET_FAILED', 'ldap: insufficient access to ou=secret')
      },
    })
    const { status, body } = await send('PATCH', '/Users/ann', patch({ op: 'replace', path: 'active', value: false }))
    expect([status, body['detail']]).toEqual([
      502,
      'Reading from the target failed. The log of the gateway has the reason, under the id of this request.',
    ])
    expect(workflows.calls).toEqual([])
  })

  test('after the change, a failed read does not deny it', async () => {
    const people = new People()
    const { send, workflows } = await open(people)
    workflows.override = async () => {
      Object.assign(people, {
        lookupUserById: async () => {
          throw new GatewayError('TARGET_FAILED', 'gone')
        },
      })
    }
    const { body } = await send('PATCH', '/Users/ann', patch({ op: 'replace', path: 'active', value: false }))
    expect(body['detail']).toMatch(/^Reading from the target failed\. .* had ended before: read the resource before/)
  })

  test.each<[detail: string, attribute: string | undefined, publicText: AttributeText]>([
    ['name has a value that cannot be stored.', 'first', (a = '"first"') => `${a} has a value that cannot be stored.`],
    ['The value of emails cannot be stored.', 'Mail', (a = '"Mail"') => `The value of ${a} cannot be stored.`],
    ['A value of name is too long.', 'last', (a = 'the attribute last') => `A value of ${a} is too long.`],
    ['A value of an attribute of the account is required.', 'gidNumber', (a = 'x') => `A value of ${a} is required.`],
    ['An attribute of the account has too many values.', 'gidNumber', (a = 'x') => `${a} has too many values.`],
    ['The value of an attribute of the account is odd.', 'first, gidNumber', (a = 'x') => `The value of ${a} is odd.`],
    ['The value of the user is too large.', undefined, () => 'The value of the user is too large.'],
    [
      '"name.givenName" is too short for the server behind',
      undefined,
      () => '"name.givenName" is too short for the server behind',
    ],
  ])('a refused value is reported in the names of clients: %s', async (detail, attribute, publicText) => {
    const { send, workflows } = await open()
    workflows.override = async () => {
      throw new GatewayError('BAD_REQUEST', 'internal', { attribute, publicText })
    }
    const { status, body } = await send(
      'PATCH',
      '/Users/ann',
      patch({ op: 'replace', path: 'name.givenName', value: 'B' }),
    )
    expect([status, body['scimType'], body['detail']]).toEqual([400, 'invalidValue', detail])
  })
})
