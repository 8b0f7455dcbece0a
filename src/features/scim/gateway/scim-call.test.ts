import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { resourceAddress } from '#protocols/scim/resource-address.ts'
import { openGateway, People } from '#testing/scim/scim-gateway-fixture.ts'
import { notModified, requireMatch, type ScimCall } from './scim-call.ts'
import scimGateway from './scim-gateway.ts'

const call = (ifMatch?: string, ifNoneMatch?: string) => ({ ifMatch, ifNoneMatch }) as ScimCall

describe('requireMatch', () => {
  test('returns the version that the client named, for binding the write', () => {
    expect(requireMatch(call('W/"7"'), '7')).toBe('7')
    expect(requireMatch(call('"6", "7"'), '7')).toBe('7')
    expect(requireMatch(call('*'), '7')).toBeUndefined()
    expect(requireMatch(call(), '7')).toBeUndefined()
  })

  test('another version is 412 with the present ETag', () => {
    expect(() => requireMatch(call('W/"6"'), '7')).toThrow(
      expect.objectContaining({ status: 412, headers: { etag: 'W/"7"' } }),
    )
    expect(() => requireMatch(call('W/"6"'), undefined)).toThrow(expect.objectContaining({ status: 412 }))
    expect(() => requireMatch(call(undefined, '*'), '7')).toThrow(expect.objectContaining({ status: 412 }))
    expect(() => requireMatch(call(undefined, '"7"'), '7')).toThrow(expect.objectContaining({ status: 412 }))
    expect(requireMatch(call(undefined, '"6"'), '7')).toBeUndefined()
  })

  test('a malformed header is 400', () => {
    expect(() => requireMatch(call('7'), '7')).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
    expect(() => notModified(call(undefined, '7'), '7')).toThrow(expect.objectContaining({ keyword: 'invalidValue' }))
  })
})

describe('GET', () => {
  async function open() {
    const people = new People()
    people.add('ann')
    return openGateway(scimGateway, { people })
  }

  test('the version is the ETag, for every projection', async () => {
    const { send } = await open()
    const all = await send('GET', '/Users/ann')
    expect(all).toMatchObject({ headers: { etag: 'W/"7"' }, body: { meta: { version: 'W/"7"' } } })
    expect((await send('GET', '/Users/ann?attributes=userName')).headers['etag']).toBe('W/"7"')
    expect((await send('POST', '/Users', { userName: 'new' })).headers['etag']).toBe('W/"7"')
  })

  test.each(['W/"7"', '"7"', '"1", "7"', '*'])('If-None-Match %s is 304 without a body', async (tags) => {
    const { send } = await open()
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(method, '/Users/ann', undefined, { 'if-none-match': tags })
      expect(answer).toMatchObject({ status: 304, headers: { etag: 'W/"7"' }, body: {} })
    }
  })

  test('another version is returned', async () => {
    const { send } = await open()
    expect((await send('GET', '/Users/ann', undefined, { 'if-none-match': 'W/"6"' })).status).toBe(200)
    expect(await send('GET', '/Users/ann', undefined, { 'if-none-match': 'x' })).toMatchObject({
      status: 400,
      body: { scimType: 'invalidValue' },
    })
  })
})

test.each([
  ['01a1de1b-4d41-7427-91c2-9c97bb8b255c', 'https://x/scim/Users/01a1de1b-4d41-7427-91c2-9c97bb8b255c'],
  ['a/b?c#d', 'https://x/scim/Users/a%2Fb%3Fc%23d'],
  ['ada\n', 'https://x/scim/Users/ada%0A'],
])('%s', (id, address) => {
  expect(resourceAddress('https://x/scim', 'User', id)).toBe(address)
})

test('is the encoded id', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (id) => {
      expect(resourceAddress('', 'Group', id)).toBe(`/Groups/${encodeURIComponent(id)}`)
    }),
  )
})
