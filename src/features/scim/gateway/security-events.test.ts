import { expect, test } from 'vitest'
import type { ResourceChange } from './scim-call.ts'
import { changeEvents, eventSubject, eventUris } from './security-events.ts'

const prov = 'urn:ietf:params:scim:event:prov'
const change = (more: Partial<ResourceChange>): ResourceChange => ({
  kind: 'patch',
  resourceType: 'User',
  id: '44f6142df96bd6ab61e7521d9',
  attributes: [],
  ...more,
})

test('RFC 9967 2.1: the subject is the path below the service, encoded', () => {
  expect(eventSubject(change({ externalId: 'jdoe' }))).toEqual({
    format: 'scim',
    uri: '/Users/44f6142df96bd6ab61e7521d9',
    externalId: 'jdoe',
  })
  expect(eventSubject(change({ resourceType: 'Group', id: 'a b/../c' }))).toEqual({
    format: 'scim',
    uri: '/Groups/a%20b%2F..%2Fc',
  })
})

test('RFC 9967 2.4.1, figures 4 and 5: created', () => {
  const created = change({ kind: 'create', attributes: ['id', 'name', 'userName', 'emails'], active: { after: false } })
  expect(changeEvents(created)).toEqual({
    [`${prov}:create:notice`]: { attributes: ['id', 'name', 'userName', 'emails'] },
  })
  expect(changeEvents(created, { userName: 'jdoe' })).toEqual({
    [`${prov}:create:full`]: { data: { userName: 'jdoe' } },
  })
})

test('RFC 9967 2.4.2 and 2.4.3, figures 7 to 9: patched and put, with exactly one of data and attributes', () => {
  const members = change({ resourceType: 'Group', attributes: ['members'], version: 'a330bc54f0671c9' })
  expect(changeEvents(members)).toEqual({
    [`${prov}:patch:notice`]: { attributes: ['members'], version: 'a330bc54f0671c9' },
  })
  const put = change({ kind: 'put', attributes: ['roles'], version: '1' })
  expect(changeEvents(put, { userName: 'jdoe' })).toEqual({
    [`${prov}:put:full`]: { data: { userName: 'jdoe' }, version: '1' },
  })
})

test('RFC 9967 2.4.4: a deletion has no payload', () => {
  expect(changeEvents(change({ kind: 'delete', attributes: ['x'], version: '1' }), { userName: 'jdoe' })).toEqual({
    [`${prov}:delete`]: {},
  })
})

test.each([
  [{ before: true, after: false }, ['deactivate']],
  [{ after: false }, ['deactivate']],
  [{ before: false, after: false }, []],
  [{ before: false, after: true }, ['activate']],
  [{ after: true }, []],
  [{ before: true }, []],
])('RFC 9967 2.4.5 and 2.4.6: active %o is reported as %o', (active, wanted) => {
  const uris = Object.keys(changeEvents(change({ attributes: ['active'], active })))
  expect(uris).toEqual([`${prov}:patch:notice`, ...wanted.map((name) => `${prov}:${name}`)])
})

test('every created event is announced', () => {
  const made = (data?: object) =>
    (['create', 'patch', 'put', 'delete'] as const).flatMap((kind) =>
      [true, false].flatMap((after) =>
        Object.keys(changeEvents(change({ kind, active: { before: !after, after } }), data as never)),
      ),
    )
  expect([...new Set(made())].sort()).toEqual(eventUris('notice').sort())
  expect(eventUris('full')).toEqual(expect.arrayContaining([...new Set(made({}))]))
})
