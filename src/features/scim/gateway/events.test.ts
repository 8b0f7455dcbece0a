import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway, People, prepareGateway, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const signingKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
const eventParams = {
  events: 'people',
  eventsIssuer: 'https://gw.example.com',
  eventsAudience: 'https://receiver.example.com',
}
const prov = 'urn:ietf:params:scim:event:prov'
const patch = (...operations: JsonObject[]) => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

async function open(more: Readonly<Record<string, string>> = {}) {
  const people = new People()
  const fake = fakeModuleHost({ signingKey, targets: { people } })
  const { eventStreams, keys } = fake
  const params = { ...tutorialParams, ...eventParams, ...more }
  const gateway = await openGateway(scimGateway, { params, people, host: { eventStreams, keys } })
  return { ...gateway, fake, reported: () => fake.events.map(({ events, subject }) => ({ subject, events })) }
}

test('each change has one event, without values', async () => {
  const { send, reported, fake } = await open()
  await send('POST', '/Users', { userName: 'ada', active: true, name: { givenName: 'hunter2' } })
  await send('PATCH', '/Users/ada', patch({ op: 'replace', path: 'active', value: false }))
  await send('DELETE', '/Users/ada')
  const subject = { format: 'scim', uri: '/Users/ada' }
  expect(reported()).toEqual([
    {
      subject,
      events: {
        [`${prov}:create:notice`]: { attributes: expect.arrayContaining(['userName']), version: expect.any(String) },
      },
    },
    {
      subject,
      events: {
        [`${prov}:patch:notice`]: { attributes: ['active'], version: expect.any(String) },
        [`${prov}:deactivate`]: {},
      },
    },
    { subject, events: { [`${prov}:delete`]: {} } },
  ])
  expect(JSON.stringify(fake.events)).not.toContain('hunter2')
  expect(fake.events[0]).toMatchObject({
    transaction: 'request-1',
    stream: {
      name: 'people',
      issuer: 'https://gw.example.com',
      audience: 'https://receiver.example.com',
      key: 'scim-events',
    },
  })
})

test('reads, failures and requests without a change have no event', async () => {
  const { send, people, reported } = await open()
  people.add('ada', { enabled: ['true'] })
  await send('GET', '/Users/ada')
  await send('PATCH', '/Users/ada', patch({ op: 'replace', path: 'active', value: true }))
  await send('POST', '/Users', { userName: 'ADA' })
  await send('DELETE', '/Users/nobody')
  expect(reported()).toEqual([])
})

test('changes of groups have events, also those made before a failure', async () => {
  const { send, people, workflows, reported } = await open()
  for (const login of ['ada', 'alan', 'grace']) people.add(login)
  people.addGroup('staff')
  await send('PATCH', '/Groups/staff', patch({ op: 'add', path: 'members', value: [{ value: 'ada' }] }))
  const subject = { format: 'scim', uri: '/Groups/group%3Astaff' }
  expect(reported()).toMatchObject([{ subject, events: { [`${prov}:patch:notice`]: { attributes: ['members'] } } }])
  let runs = 0
  workflows.override = async ({ user }) => {
    if (++runs > 1) throw new GatewayError('TARGET_FAILED', 'no')
    people.memberships.get('staff')?.add(user.userID)
  }
  const members = [{ value: 'alan' }, { value: 'grace' }]
  expect((await send('PATCH', '/Groups/staff', patch({ op: 'add', path: 'members', value: members }))).status).toBe(502)
  expect(reported()).toHaveLength(2)
})

test('events of one user keep the order of its changes, even if calls overlap', async () => {
  const people = new People()
  people.add('ada', { enabled: ['true'] })
  const fake = fakeModuleHost({ signingKey, targets: { people } })
  let started = 0
  const order: string[] = []
  const overtaken = Promise.withResolvers<void>()
  const open = () => ({
    // The first waits, so that another could overtake it.
    append: async ([event]: readonly { readonly events: JsonObject }[]) => {
      const name = Object.keys(event?.events ?? {}).at(-1) ?? ''
      if (started++ === 0) await Promise.race([overtaken.promise, new Promise((resolve) => setTimeout(resolve, 200))])
      order.push(name)
      overtaken.resolve()
    },
    close: async () => {},
  })
  const params = { ...tutorialParams, ...eventParams }
  const { send } = await openGateway(scimGateway, {
    params,
    people,
    host: { eventStreams: { ...fake.eventStreams, open }, keys: fake.keys },
  })
  const set = (value: boolean) => send('PATCH', '/Users/ada', patch({ op: 'replace', path: 'active', value }))
  await Promise.all([set(false), set(true), set(false)])
  expect(order).toEqual(['deactivate', 'activate', 'deactivate'].map((name) => `${prov}:${name}`))
})

test('a full event has the resource as a client reads it', async () => {
  const { send, fake } = await open({ eventsPayload: 'full' })
  await send('POST', '/Users?attributes=userName', { userName: 'ada', active: true, password: 'hunter2' })
  const payload = fake.events[0]?.events[`${prov}:create:full`] as { data: JsonObject }
  expect(payload.data).toMatchObject({ id: 'ada', userName: 'ada', active: true })
  expect(payload).not.toHaveProperty('attributes')
  expect(JSON.stringify(fake.events)).not.toContain('hunter2')
})

test('the configured events are announced (RFC 9967 4)', async () => {
  const { send } = await open()
  expect((await send('GET', '/ServiceProviderConfig')).body['securityEvents']).toEqual({
    asyncRequest: 'none',
    eventUris: [
      ...['create', 'patch', 'put'].map((kind) => `${prov}:${kind}:notice`),
      ...['delete', 'activate', 'deactivate'].map((kind) => `${prov}:${kind}`),
    ],
  })
  const { send: without } = await openGateway(scimGateway)
  expect((await without('GET', '/ServiceProviderConfig')).body).not.toHaveProperty('securityEvents')
})

test('an event that cannot be stored fails the call', async () => {
  const { send, fake } = await open()
  fake.eventFailure = new GatewayError('TARGET_UNREACHABLE', 'the database is away', { retryAfter: 5 })
  expect((await send('POST', '/Users', { userName: 'ada' })).status).toBe(503)
  expect((await send('GET', '/Users/ada')).status).toBe(200)
})

test.each([
  [{ events: 'a b' }, /params\.events.*letters, digits/],
  [{ events: 'x', eventsAudience: 'y' }, /params\.eventsIssuer.*required with "events"/],
  [{ events: 'x', eventsIssuer: 'y' }, /params\.eventsAudience.*required with "events"/],
  [{ eventsPushUrl: 'https://x' }, /params\.eventsPushUrl.*needs the parameter "events"/],
  [{ ...eventParams, eventsPushUrl: 'http://receiver.example.com' }, /params\.eventsPushUrl.*use https/],
  [{ ...eventParams, eventsPushToken: 'x' }, /params\.eventsPushToken.*needs the parameter "eventsPushUrl"/],
  [
    { ...eventParams, eventsPushUrl: 'https://x', eventsPushToken: 'hunter2\r\nx: y' },
    /params\.eventsPushToken.*the secret/,
  ],
  [{ ...eventParams, eventsKey: '../x' }, /params\.eventsKey.*letters, digits/],
  [{ journal: '100001' }, /params\.journal.*from 0 to 100000/],
])('parameters such as %o are rejected', (more, problem) => {
  const { issues } = prepareGateway(scimGateway, { ...tutorialParams, ...more })
  expect(issues).toEqual([expect.stringMatching(problem)])
  expect(issues.join()).not.toContain('hunter2')
})

describe('a full event of a PATCH has a patch (RFC 9967 2.4.2, figure 6)', () => {
  const full = `${prov}:patch:full`
  const message = (...operations: JsonObject[]) => ({ data: patch(...operations), version: expect.any(String) })

  test('of a user: the new value of each changed attribute', async () => {
    const { send, people, reported } = await open({ eventsPayload: 'full' })
    people.add('ada', { enabled: ['true'], first: ['Ada'], mail: ['a@x'] })
    await send(
      'PATCH',
      '/Users/ada',
      patch({ op: 'Replace', path: 'active', value: 'False' }, { op: 'remove', path: 'emails' }),
    )
    const [event] = reported()
    expect(event?.events).toEqual({
      [full]: message({ op: 'replace', path: 'active', value: false }, { op: 'remove', path: 'emails' }),
      [`${prov}:deactivate`]: {},
    })
  })

  test('a change of a hidden attribute is a notice with its name', async () => {
    const { send, people, reported } = await open({ eventsPayload: 'full' })
    people.add('ada')
    await send('PATCH', '/Users/ada', patch({ op: 'replace', value: { nickName: 'hunter2', active: true } }))
    expect(reported()[0]?.events).toEqual({
      [`${prov}:patch:notice`]: { attributes: ['nickName', 'active'], version: expect.any(String) },
    })
  })

  test('of a group: the added and removed members, without reading the others', async () => {
    const { send, people, reported } = await open({
      eventsPayload: 'full',
      groupUpdateWorkflow: 'update-group',
      groupFilterScim2Ldap: 'externalId=externalId',
    })
    for (const login of ['ada', 'alan', 'grace']) people.add(login)
    people.addGroup('staff', 'ada')
    const change = patch(
      { op: 'add', path: 'members', value: [{ value: 'alan' }, { value: 'grace' }, { value: 'ada' }] },
      { op: 'remove', path: 'members[value eq "ada"]' },
      { op: 'add', path: 'externalId', value: 'e-1' },
    )
    expect((await send('PATCH', '/Groups/staff', change)).status).toBe(204)
    expect(reported()[0]?.events).toEqual({
      [full]: {
        data: patch(
          { op: 'replace', path: 'externalId', value: 'e-1' },
          { op: 'remove', path: 'members[value eq "ada"]' },
          {
            op: 'add',
            path: 'members',
            value: [
              { value: 'alan', type: 'User' },
              { value: 'grace', type: 'User' },
            ],
          },
        ),
      },
    })
    expect(people.memberReads).toBe(0)
  })

  test('a change of members that partly failed is a notice', async () => {
    const { send, people, workflows, reported } = await open({ eventsPayload: 'full' })
    for (const login of ['alan', 'grace']) people.add(login)
    people.addGroup('staff')
    let runs = 0
    workflows.override = async ({ user }) => {
      if (++runs > 1) throw new GatewayError('TARGET_FAILED', 'no')
      people.memberships.get('staff')?.add(user.userID)
    }
    const members = [{ value: 'alan' }, { value: 'grace' }]
    await send('PATCH', '/Groups/staff', patch({ op: 'add', path: 'members', value: members }))
    expect(reported()[0]?.events).toEqual({ [`${prov}:patch:notice`]: { attributes: ['members'] } })
  })
})
