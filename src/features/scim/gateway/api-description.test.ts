import { expect, test } from 'vitest'
import { patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import { DescribedApi } from '#sdk/api/api-description.ts'
import { ApiContract } from '#testing/gateway/api-contract.ts'
import { openGateway, People, prepareGateway, type Send, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const userSchema = 'urn:ietf:params:scim:schemas:core:2.0:User'
const groupSchema = 'urn:ietf:params:scim:schemas:core:2.0:Group'

function describedBy(params = tutorialParams): DescribedApi {
  const documents = prepareGateway(scimGateway, params).prepared.api?.documents
  if (documents instanceof DescribedApi) return documents
  throw new Error('the gateway is not described')
}

test('every answer is described', async () => {
  const people = new People()
  people.add('ada', { mail: ['ada@example.com'], first: ['Ada'], last: ['L'], enabled: ['true'] })
  people.add('idp')
  people.addGroup('staff', 'ada')
  const params = { ...tutorialParams, groupCreateWorkflow: 'create-group' }
  const { send } = await openGateway(scimGateway, { people, params })
  const contract = new ApiContract('', describedBy(params))
  const compared: Send = async (method, path, body, headers) => {
    const answer = await send(method, path, body, headers)
    const text = answer.status === 204 ? '' : JSON.stringify(answer.body)
    const type = String(answer.headers['content-type'] ?? '')
    expect(contract.faults({ method, path, status: answer.status, type, text })).toEqual([])
    return answer
  }
  const rename = {
    schemas: [patchSchema],
    Operations: [{ op: 'replace', path: 'name.givenName', value: 'Augusta' }],
  }
  const grace = { schemas: [userSchema], userName: 'grace', emails: [{ value: 'grace@example.com' }] }
  for (const [method, path, body, status] of [
    ['GET', '/Users', undefined, 200],
    ['GET', '/Users?cursor=&count=1&attributes=userName', undefined, 200],
    ['GET', '/Users?filter=nothing', undefined, 400],
    ['POST', '/Users/.search', { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'] }, 200],
    ['POST', '/.search', { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'] }, 200],
    ['POST', '/Users', grace, 201],
    ['POST', '/Users', grace, 409],
    ['GET', '/Users/grace', undefined, 200],
    ['GET', '/Users/nobody', undefined, 404],
    ['PUT', '/Users/grace', grace, 200],
    ['PATCH', '/Users/grace', rename, 200],
    ['GET', '/Me', undefined, 200],
    ['GET', '/Groups', undefined, 200],
    ['GET', '/Groups/staff', undefined, 200],
    ['POST', '/Groups/.search', { schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'] }, 200],
    ['POST', '/Groups', { schemas: [groupSchema], displayName: 'crew' }, 201],
    ['PUT', '/Groups/crew', { schemas: [groupSchema], displayName: 'crew', members: [{ value: 'ada' }] }, 200],
    [
      'PATCH',
      '/Groups/crew',
      { schemas: [patchSchema], Operations: [{ op: 'remove', path: 'members' }] },
      expect.toSatisfy((given: number) => given === 200 || given === 204),
    ],
    [
      'POST',
      '/Bulk',
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
        Operations: [
          { method: 'DELETE', path: '/Users/nobody' },
          { method: 'PATCH', path: '/Users/ada', data: rename },
        ],
      },
      200,
    ],
    ['POST', '/Users?dryRun=true', { schemas: [userSchema], userName: 'eve' }, 200],
    ['PUT', '/Users/grace?dryRun=true', grace, 200],
    ['PATCH', '/Groups/crew?dryRun=true', rename, 400],
    ['POST', '/Groups?dryRun=true', { schemas: [groupSchema], displayName: 'team' }, 200],
    ['DELETE', '/Users/grace?dryRun=true', undefined, 200],
    ['DELETE', '/Groups/crew?dryRun=true', undefined, 200],
    ['DELETE', '/Users/grace', undefined, 204],
    ['DELETE', '/Groups/crew', undefined, 204],
    ['GET', '/ServiceProviderConfig', undefined, 200],
    ['GET', '/ResourceTypes', undefined, 200],
    ['GET', '/Schemas', undefined, 200],
  ] as const) {
    expect([method, path, (await compared(method, path, body)).status]).toEqual([method, path, status])
  }
  const unseen = contract.unseen().filter((one) => !one.endsWith(' 202'))
  expect(unseen.filter((one) => !/^patch\w+ 20[04]$/.test(one))).toEqual([])
})

test('operations without a workflow are not described', () => {
  const { deleteUserWorkflowName: _, groupDeleteWorkflow: __, ...params } = tutorialParams
  const ids = describedBy(params).operations.map(({ id }) => id)
  expect(ids).toEqual(expect.arrayContaining(['createUser', 'patchGroup']))
  expect(ids.filter((id) => ['deleteUser', 'deleteGroup', 'createGroup'].includes(id))).toEqual([])
})
