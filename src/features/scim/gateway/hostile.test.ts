import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonValue } from '#kernel/json.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { openGateway, People } from '#testing/scim/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

async function open() {
  const people = new People()
  people.add('ann', { enabled: ['true'] })
  people.add('idp', { enabled: ['true'] })
  people.addGroup('red', 'ann')
  return openGateway(scimGateway, { people })
}

const word = fc.constantFrom(
  ...['ann', 'red', 'bulkId:a', 'bulkId:', '__proto__', 'constructor', '', '\0', '\ud800', 'true', '*', 'W/"7"'],
)
const value = fc.oneof(word, fc.integer(), fc.double(), fc.constant(null), fc.boolean())
const json = fc.oneof(
  value,
  fc.array(value, { maxLength: 3 }),
  fc.dictionary(fc.oneof(word, fc.constantFrom('value', 'Operations', 'op', 'path')), value),
)

/** A partial message: every member may be missing or of another type. */
const message = (members: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(
    Object.fromEntries(
      Object.entries(members).map(([name, arbitrary]) => [name, fc.oneof(arbitrary, arbitrary, json)]),
    ),
    { requiredKeys: [] },
  ) as fc.Arbitrary<JsonValue>

const resource = message({
  userName: word,
  displayName: word,
  active: value,
  emails: fc.array(message({ value: word, primary: value }), { maxLength: 3 }),
  members: fc.array(message({ value: word }), { maxLength: 3 }),
})
const path = fc.constantFrom(
  ...['/Users', '/Groups', '/Users/ann', '/Groups/red', '/Users/bulkId:a', '/Users/bulkId:%', '/Bulk', '/Me', '/', 'x'],
)
const patch = message({
  Operations: fc.array(message({ op: fc.constantFrom('add', 'remove', 'replace'), path: word, value: json }), {
    maxLength: 3,
  }),
})
const bulk = message({
  failOnErrors: fc.nat(3),
  Operations: fc.array(
    fc.record({
      method: fc.constantFrom('POST', 'PUT', 'PATCH', 'DELETE'),
      path: fc.oneof(path, path, json),
      bulkId: fc.oneof(fc.constantFrom('a', 'b', 'c', 'd'), fc.uuid()),
      version: fc.option(fc.constantFrom('W/"7"', '"6"', '7', '*'), { nil: null }),
      data: fc.oneof(resource, patch, json),
    }) as fc.Arbitrary<JsonValue>,
    { maxLength: 6 },
  ),
})
const search = message({
  filter: fc.constantFrom('userName eq "ann"', 'members eq "ann"', 'displayName pr', '((', 'not (id eq "x")'),
  sortBy: fc.constantFrom('userName', 'emails', 'members', '__proto__', 'name'),
  sortOrder: fc.constantFrom('ascending', 'descending'),
  startIndex: fc.integer(),
  count: fc.integer(),
  cursor: fc.oneof(fc.constant(''), fc.base64String()),
  attributes: fc.array(word, { maxLength: 3 }),
})

const request = fc.oneof(
  fc.tuple(fc.constant('POST'), fc.constantFrom('/Users/.search', '/Groups/.search', '/.search'), search),
  fc.tuple(fc.constant('POST'), fc.constant('/Bulk'), bulk),
  fc.tuple(
    fc.constantFrom('POST', 'PUT'),
    fc.constantFrom('/Users', '/Groups', '/Users/ann', '/Groups/red', '/Me'),
    resource,
  ),
  fc.tuple(fc.constant('PATCH'), fc.constantFrom('/Users/ann', '/Groups/red', '/Me'), patch),
)

test('every input gets a protocol answer and never a 500', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 4 }), async (requests) => {
      const { send } = await open()
      for (const [method, to, body] of requests) {
        const answer = await send(method, to, body)
        expect(answer.status === 501 || answer.status < 500, JSON.stringify([method, to, body, answer])).toBe(true)
        if (answer.status >= 400) expect(answer.body).toMatchObject({ status: String(answer.status) })
        const results = to === '/Bulk' ? ((answer.body['Operations'] ?? []) as { status: string }[]) : []
        for (const { status } of results) {
          expect(status === '501' || Number(status) < 500, JSON.stringify([body, results])).toBe(true)
        }
      }
    }),
    { numRuns: sampled(100, 300) },
  )
})
