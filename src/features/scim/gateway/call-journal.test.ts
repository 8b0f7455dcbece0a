import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JournalEntry } from '#features/scim/journal/journal-entry.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonValue } from '#kernel/json.ts'
import { openGateway, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
import { shownError, shownOperations, shownPath } from './call-journal.ts'
import scimGateway from './scim-gateway.ts'

async function open(journal?: string) {
  const entries: JournalEntry[] = []
  const opened: unknown[] = []
  const gateway = await openGateway(scimGateway, {
    params: { ...tutorialParams, ...(journal === undefined ? {} : { journal }) },
    host: {
      name: 'scim-people',
      journals: {
        open: (options) => {
          opened.push(options)
          return { add: (entry) => void entries.push(entry), close: async () => {} }
        },
        list: async () => ({ entries: [] }),
      },
    },
  })
  return { ...gateway, entries, opened }
}

test('a call has an entry with its runs and operations', async () => {
  const { send, people, entries, opened } = await open()
  people.add('ada', { first: ['Ada'] })
  await send('PATCH', '/Users/ada?attributes=name', {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
    Operations: [{ op: 'replace', path: 'name.givenName', value: 'hunter2' }],
  })
  expect(opened).toEqual([{ name: 'scim-people', keep: 1000 }])
  expect(entries).toEqual([
    {
      time: expect.any(Date),
      requestId: 'request-1',
      caller: 'idp',
      method: 'PATCH',
      path: '/api/scim/Users/ada?attributes=name',
      status: 200,
      millis: expect.any(Number),
      workflows: ['run'],
      operations: [{ op: 'replace', path: 'name.givenName' }],
    },
  ])
  expect(JSON.stringify(entries)).not.toContain('hunter2')
})

test.each([
  ['GET', '/Users/nobody', undefined, 404, undefined],
  ['GET', '/Users?filter=userName', undefined, 400, 'invalidFilter'],
  ['POST', '/Users', '{', 400, 'invalidSyntax'],
  ['POST', '/Users', '{}', 400, 'invalidValue'],
  ['PUT', '/Nothing/1', '{}', 404, undefined],
  ['DELETE', '/Users', undefined, 405, undefined],
])('a rejected %s %s is recorded as well', async (method, path, body, status, keyword) => {
  const { send, entries } = await open()
  const answer = await send(method, path, body)
  expect(answer.status).toBe(status)
  expect(entries).toMatchObject([{ method, status, error: answer.body['detail'] }])
  expect(entries[0]?.keyword).toBe(keyword)
})

test('a failure has an entry with the run and the error that the client saw', async () => {
  const { send, workflows, entries } = await open()
  workflows.override = async () => {
    throw new GatewayError('TARGET_FAILED', 'the password of the database is hunter2')
  }
  expect((await send('POST', '/Users', { userName: 'ada', password: 'hunter2' })).status).toBe(502)
  const error = 'A downstream system refused the change.'
  expect(entries).toMatchObject([{ status: 502, error, workflows: ['run'] }])
  expect(JSON.stringify(entries)).not.toContain('hunter2')
})

test('0 keeps no journal', async () => {
  const { send, opened, entries } = await open('0')
  await send('GET', '/Users/nobody')
  expect([opened, entries]).toEqual([[], []])
})

test.each([
  ['POST', '/Users', { userName: 'eve', password: 'hunter2\0' }],
  ['POST', '/Users', { userName: 'eve', password: ['hunter2'] }],
  ['PUT', '/Users/ada', { userName: 'ada', password: '\ud800hunter2' }],
  ['PATCH', '/Users/ada', { Operations: [{ op: 'replace', path: 'password', value: 'hunter2\0' }] }],
  ['PATCH', '/Users/ada', { Operations: [{ op: 'replace', path: 'emails[value eq "hunter2].type', value: 'x' }] }],
  ['GET', `/Users?filter=${encodeURIComponent('password eq "hunter2')}`, undefined],
  ['GET', `/Users?filter=${encodeURIComponent('password eq "hunter2\\q"')}`, undefined],
])('a rejected secret in %s %s appears neither in the answer nor in the journal', async (method, path, body) => {
  const { send, people, entries } = await open()
  people.add('ada', { first: ['Ada'] })
  const answer = await send(method, path, body)
  expect(answer.status).toBe(400)
  expect(JSON.stringify([answer.body, entries])).not.toContain('hunter2')
})

const path = (query: string): string => shownPath({ path: '/scim/Users', query: new URLSearchParams(query) })

test.each([
  ['', '/scim/Users'],
  ['filter=userName eq "ada"&count=1', '/scim/Users?filter=userName eq "ada"&count=1'],
  [
    'attributes=name&excludedAttributes=groups&sortBy=id',
    '/scim/Users?attributes=name&excludedAttributes=groups&sortBy=id',
  ],
  ['aadOptscim062020', '/scim/Users?aadOptscim062020'],
  ['access_token=hunter2', '/scim/Users?access_token=[redacted]'],
  ['x=hunter2', '/scim/Users?x=[redacted]'],
  ['filter=password eq "hunter2"', '/scim/Users?filter=[redacted]'],
  ['filter=urn:x:User:apiToken sw hunter2', '/scim/Users?filter=[redacted]'],
])('of the query "%s" is shown %s', (query, shown) => {
  expect(path(query)).toBe(shown)
})

test('entries are bounded', () => {
  expect(path(`filter=${'x'.repeat(100_000)}`).length).toBeLessThan(1100)
  expect(shownError('x'.repeat(100_000)).length).toBeLessThan(600)
  const many = shownOperations(Array.from({ length: 60 }, () => ({ op: 'add', path: 'x'.repeat(10_000) })))
  expect(many).toHaveLength(51)
  expect(many).toContainEqual({ more: 10 })
  expect(JSON.stringify(many).length).toBeLessThan(15_000)
})

test('operations keep words, paths and counts, and lose every value', () => {
  expect(
    shownOperations([
      { op: 'add', path: 'members', count: 3 },
      { op: 'replace', path: 'emails[type eq "a\\"b" and value eq "x@y"].value', value: 'hunter2' },
      { op: 'remove', path: 'emails[value eq "hunter2' },
      { method: 'POST', path: '/Users', data: { password: 'hunter2' } },
      'hunter2',
    ]),
  ).toEqual([
    { op: 'add', path: 'members', count: 3 },
    { op: 'replace', path: 'emails[type eq ? and value eq ?].value' },
    { op: 'remove', path: 'emails[value eq ?' },
    { method: 'POST', path: '/Users' },
    {},
  ])
})

test('no entry contains a value', () => {
  const secret = 'hunter2'
  const value: fc.Arbitrary<JsonValue> = fc.letrec<{ tree: JsonValue }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.constant(secret),
      fc.integer(),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('value', 'password', 'names', 'op2'), tie('tree'), { maxKeys: 3 }),
    ),
  })).tree
  fc.assert(
    fc.property(value, (operations) => {
      expect(JSON.stringify(shownOperations(operations))).not.toContain(secret)
    }),
  )
})
