import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { WorkflowStarter } from '#sdk/workflow/workflow.ts'
import { openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { retryWhileChanged } from './run-workflow.ts'
import scimGateway from './scim-gateway.ts'

const call = (headers: { ifMatch?: string; ifNoneMatch?: string } = {}) => ({
  ifMatch: headers.ifMatch,
  ifNoneMatch: headers.ifNoneMatch,
})

/** Fails this many times, then returns how often it ran. */
function work(failures: number, code: 'VERSION_MISMATCH' | 'TARGET_FAILED' = 'VERSION_MISMATCH') {
  let runs = 0
  return async (): Promise<number> => {
    if (++runs <= failures) throw new GatewayError(code, `run ${runs}`)
    return runs
  }
}

test.each([{}, { ifMatch: ' * ' }])('repeats the work on the present version (%j)', async (headers) => {
  expect(await retryWhileChanged(call(headers), work(9))).toBe(10)
})

test('gives up after a while, and says when to try again', async () => {
  const given = await retryWhileChanged(call(), work(10)).catch((error: unknown) => error)
  expect(given).toMatchObject({ status: 503, retryAfter: 1, cause: { code: 'VERSION_MISMATCH' } })
})

test.each([{ ifMatch: 'W/"1"' }, { ifNoneMatch: '*' }])(
  'does not repeat it if the client names a version (%j)',
  async (headers) => {
    await expect(retryWhileChanged(call(headers), work(1))).rejects.toMatchObject({ status: 412 })
  },
)

test('nor after any other failure', async () => {
  await expect(retryWhileChanged(call(), work(1, 'TARGET_FAILED'))).rejects.toMatchObject({ code: 'TARGET_FAILED' })
})

const core = 'urn:ietf:params:scim:schemas:core:2.0'

/** A gateway whose runs all have to wait. */
async function open() {
  const people = new People({ ownIds: false })
  people.add('ann', { first: ['Ann'], mail: ['ann@example.com'] })
  people.add('bob', { first: ['Bob'] })
  people.addGroup('group1')
  const started: string[] = []
  const workflows: WorkflowStarter = {
    run: async ({ head: { workflow: name } }) => {
      started.push(name)
      return { id: `run-${started.length}`, status: 'waiting', changes: 0 }
    },
  }
  const { send } = await openGateway(scimGateway, { people, params: tutorialParams, host: { workflows } })
  return { send, started }
}

const accepted = (workflowId: string): JsonObject => ({
  schemas: ['urn:gatehouse:params:scim:api:messages:1.0:Accepted'],
  detail: 'The change was accepted and waits for a decision.',
  workflowId,
})

describe('a change whose workflow waits for a decision', () => {
  test.each([
    ['POST', '/Users', { schemas: [`${core}:User`], userName: 'jjackson' }],
    ['PUT', '/Users/ann', { schemas: [`${core}:User`], userName: 'ann', name: { givenName: 'Anna' } }],
    [
      'PATCH',
      '/Users/ann',
      {
        schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
        Operations: [{ op: 'replace', path: 'name.givenName', value: 'Anna' }],
      },
    ],
    ['DELETE', '/Users/ann', undefined],
  ])('%s %s is answered with 202 and the run', async (method, path, body) => {
    const { send, started } = await open()
    const answered = await send(method, path, body as JsonObject)
    expect(answered).toMatchObject({ status: 202, body: accepted('run-1') })
    expect(started.length).toBe(1)
  })

  test('does not stop the changes of other members of the same request', async () => {
    const { send, started } = await open()
    const add = { op: 'add', path: 'members', value: [{ value: 'ann' }, { value: 'bob' }] }
    const patch = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [add] }
    const { status, body } = await send('PATCH', '/Groups/group1', patch)
    expect(status).toBe(202)
    expect(body).toMatchObject({ schemas: accepted('').schemas })
    expect(started.length).toBe(2)
  })
})
