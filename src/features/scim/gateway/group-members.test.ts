import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import { openGateway, People, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { notesOf } from './scim-call.ts'
import scimGateway from './scim-gateway.ts'

const params = { ...tutorialParams, client: 'okta', groupUpdateWorkflow: 'update-group' }

function crowd(size: number, ...members: number[]): People {
  const people = new People({ ownIds: false, versions: true })
  for (let i = 0; i < size; i++) people.add(`u${i}`)
  people.addGroup('red', ...members.map((i) => `u${i}`))
  return people
}

const open = (people: People) => openGateway(scimGateway, { people, params })
const patchOp = (...operations: JsonValue[]): JsonObject => ({ Operations: operations })
const add = (...ids: string[]) => patchOp({ op: 'add', path: 'members', value: ids.map((value) => ({ value })) })
const remove = (...ids: string[]) => patchOp({ op: 'remove', path: 'members', value: ids.map((value) => ({ value })) })
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
const held = (people: People) => [...(people.memberships.get('red') ?? [])].map((login) => Number(login.slice(1)))

describe('at the same time', () => {
  test('50 parallel changes of different members all take effect', async () => {
    const people = crowd(60, ...range(0, 25))
    const { send } = await open(people)
    const answers = await Promise.all(
      range(0, 50).map((i) => send('PATCH', '/Groups/red', i < 25 ? remove(`u${i}`) : add(`u${i}`))),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]))
    expect(held(people).sort((a, b) => a - b)).toEqual(range(25, 50))
  })

  test('one of many requests with the same version succeeds', async () => {
    const people = crowd(20)
    const { send } = await open(people)
    const answers = await Promise.all(
      range(0, 20).map((i) => send('PATCH', '/Groups/red', add(`u${i}`), { 'if-match': 'W/"1"' })),
    )
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 412)).toHaveLength(19)
    expect(held(people)).toHaveLength(1)
  })

  test('a member that another process changes is read again, and the run is bound to that version', async () => {
    const people = crowd(3)
    const { send, workflows } = await open(people)
    let races = 3
    workflows.before = ({ user }) => {
      const person = people.people.get(user.userID)
      if (user.userID === 'u1' && races-- > 0 && person !== undefined) person.version++
    }
    expect((await send('PATCH', '/Groups/red', add('u0', 'u1', 'u2'))).status).toBe(204)
    expect(held(people).sort()).toEqual([0, 1, 2])
    const bound = workflows.calls.filter(({ user }) => user.userID === 'u1').map(({ basedOn }) => basedOn)
    expect(bound).toEqual(['7', '8', '9', '10'].map((version) => ({ target: 'people', version })))
  })

  test('gives up on a member that keeps changing', async () => {
    const people = crowd(1)
    const { send, workflows } = await open(people)
    workflows.before = () => {
      const person = people.people.get('u0')
      if (person !== undefined) person.version++
    }
    const { status, body } = await send('PATCH', '/Groups/red', add('u0'))
    expect([status, workflows.calls.length]).toEqual([503, 10])
    expect(body['detail']).toBe('Other requests are changing the resource. Try again.')
  })

  test('does not re-create a member that was deleted meanwhile', async () => {
    const people = crowd(2, 1)
    const { send, workflows } = await open(people)
    workflows.before = ({ user }) => void people.people.delete(user.userID)
    expect((await send('PATCH', '/Groups/red', add('u0'))).body).toMatchObject({ scimType: 'invalidValue' })
    expect((await send('PATCH', '/Groups/red', remove('u1'))).status).toBe(204)
    expect(people.people.size).toBe(0)
  })
})

describe('a failure part way', () => {
  test('reports the progress, and the same request again completes it', async () => {
    const people = crowd(100)
    const { send, workflows } = await open(people)
    const everyone = add(...range(0, 100).map((i) => `u${i}`))
    workflows.failing = ({ user }) => user.userID === 'u50'
    const { status, body } = await send('PATCH', '/Groups/red', everyone)
    const done = held(people).length
    expect(status).toBe(503)
    expect(body['detail']).toBe(
      `A downstream system did not answer. ${done} of 100 changes were made. Send the same request again to make the others.`,
    )
    expect(done).toBeGreaterThan(0)
    expect(done).toBeLessThan(100)
    const runs = workflows.calls.length
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(workflows.calls).toHaveLength(runs)
    workflows.failing = undefined
    expect((await send('PATCH', '/Groups/red', everyone)).status).toBe(204)
    expect(held(people).sort((a, b) => a - b)).toEqual(range(0, 100))
    expect(workflows.calls).toHaveLength(runs + 100 - done)
  })

  test('a completed rename stays, and is counted', async () => {
    const people = new People({ ownIds: true, versions: true })
    people.add('ann')
    people.addGroup('red')
    const { send, workflows } = await open(people)
    workflows.failing = ({ head: { workflow: name } }) => name === 'change-members'
    const both = patchOp(
      { op: 'replace', path: 'displayName', value: 'new' },
      { op: 'add', path: 'members', value: [{ value: 'id-1' }] },
    )
    expect((await send('PATCH', '/Groups/gid-red', both)).body['detail']).toContain('1 of 2 changes were made')
    workflows.failing = undefined
    expect((await send('PATCH', '/Groups/gid-red', both)).status).toBe(204)
    expect([...(people.memberships.get('new') ?? [])]).toEqual(['ann'])
    expect(workflows.calls.map(({ head: { workflow: name } }) => name)).toEqual([
      'update-group',
      'change-members',
      'change-members',
    ])
  })

  test('does not show internal reasons', async () => {
    const { send, workflows } = await open(crowd(2))
    workflows.override = async () => {
      throw new GatewayError('TARGET_FAILED', 'secret: password of the directory')
    }
    const { body } = await send('PATCH', '/Groups/red', add('u0', 'u1'))
    expect(body['detail']).toMatch(/^A downstream system refused the change\. 0 of 2 /)
  })
})

/** Counts the users that are looked up. */
function counting(people: People): { looked: number } {
  const count = { looked: 0 }
  const lookup = people.lookupUserById.bind(people)
  people.lookupUserById = (id) => {
    count.looked++
    return lookup(id)
  }
  return count
}

test('members that stay are not looked up one by one when the request has the whole list', async () => {
  const people = crowd(50, ...range(0, 49))
  const { send, workflows } = await open(people)
  const count = counting(people)
  const value = range(1, 50).map((i) => ({ value: `u${i}` }))
  expect((await send('PATCH', '/Groups/red', patchOp({ op: 'replace', path: 'members', value }))).status).toBe(204)
  expect(held(people)).toEqual(range(1, 50))
  expect([workflows.calls.length, count.looked]).toEqual([2, 4])
})

test('looks up few of 100,000 members that do not exist, and refuses one more', async () => {
  const people = crowd(1)
  const { send, workflows } = await open(people)
  const count = counting(people)
  const ids = range(0, 100_000).map((i) => `x${i}`)
  const { status, body } = await send('PATCH', '/Groups/red', add(...ids))
  expect([status, body['detail']]).toEqual([
    400,
    'members: there is no user with id "x0". Create it first, or leave the member out.',
  ])
  expect(count.looked).toBeLessThan(100)
  expect((await send('PATCH', '/Groups/red', add(...ids, 'one more'))).body['detail']).toContain('more than 100000')
  expect(workflows.calls).toEqual([])
})

describe('notes', () => {
  const notesOfLast = (exchanges: readonly Exchange[]) => {
    const last = exchanges.at(-1)
    return last === undefined ? undefined : notesOf(last)
  }

  test('have the operations without values, and the changes that were made', async () => {
    const people = new People({ ownIds: true, versions: true })
    for (const login of ['ann', 'bob']) people.add(login)
    people.addGroup('red', 'ann')
    const { send, exchanges } = await open(people)
    const body = patchOp(
      { op: 'Replace', value: { id: 'x', displayName: 'Secret name' } },
      { op: 'add', path: 'members', value: [{ value: 'id-1' }, { value: 'id-2' }] },
      { op: 'remove', path: 'members[value eq "id-1"]' },
      { op: 'remove', path: 'members[value eq "id-9"]' },
    )
    await send('PATCH', '/Groups/gid-red', body)
    expect(notesOfLast(exchanges)).toMatchObject({
      operations: [
        { op: 'replace', path: 'displayName' },
        { op: 'add', path: 'members', count: 2 },
        { op: 'remove', path: 'members', count: 2 },
      ],
      changes: [
        {
          kind: 'patch',
          resourceType: 'Group',
          id: 'gid-red',
          version: 'W/"4"',
          attributes: ['displayName', 'members'],
        },
      ],
    })
    expect(JSON.stringify(notesOfLast(exchanges)?.operations)).not.toContain('Secret')
    await send('PATCH', '/Groups/gid-red', body)
    expect(notesOfLast(exchanges)?.changes).toEqual([])
    await send('DELETE', '/Groups/gid-red')
    expect(notesOfLast(exchanges)?.changes).toMatchObject([{ kind: 'delete', id: 'gid-red', attributes: [] }])
  })

  test('have a change that stopped part way, if anything was done', async () => {
    const people = crowd(2)
    const { send, workflows, exchanges } = await open(people)
    workflows.failing = ({ user }) => user.userID === 'u1'
    await send('PATCH', '/Groups/red', add('u0', 'u1'))
    expect(notesOfLast(exchanges)?.changes).toMatchObject([{ kind: 'patch', attributes: ['members'] }])
    await send('PATCH', '/Groups/red', add('u1'))
    expect(notesOfLast(exchanges)?.changes).toEqual([])
  })
})

describe('a member without a value', () => {
  test.each([
    ['PATCH', patchOp({ op: 'replace', path: 'members', value: [{ value: null }] })],
    ['PATCH', patchOp({ op: 'replace', path: 'members', value: [null, { value: 'u1' }] })],
    ['PATCH', patchOp({ op: 'add', value: { members: [{ value: null, type: null }] } })],
    ['PATCH', patchOp({ op: 'remove', path: 'members', value: [{ vlaue: 'u0' }] })],
    ['PUT', { displayName: 'red', members: [{}] }],
  ])('is rejected by %s, and no member is removed', async (method, body) => {
    const people = crowd(2, 0)
    const { send } = await open(people)
    expect((await send(method, '/Groups/red', body as JsonObject)).status).toBe(400)
    expect(held(people)).toEqual([0])
  })
})
