import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { JsonObject } from '#kernel/json.ts'
import { fakeModuleHost } from '#testing/fake-module-host.ts'
import { openGateway, tutorialParams } from '#testing/scim-gateway-fixture.ts'
import scimGateway from './scim-gateway.ts'

const params = {
  ...tutorialParams,
  lookupFromLDAP: 'true',
  searchBase: 'o=test',
  uidAttributeName: 'uid',
  lookupAttributeName: 'uid',
  userFilterScim2Ldap: 'nickName=nick',
}

const person = (uid: string, nick?: string) => ({
  dn: Dn.parse(`uid=${uid},o=test`),
  attributes: Attributes.from({ uid: [uid], ...(nick === undefined ? {} : { nick: [nick] }) }),
})

async function open() {
  const { directory } = fakeModuleHost({
    entries: [person('c', 'Zed'), person('a'), person('b', 'anna'), person('d', 'Bert')],
  })
  return openGateway(scimGateway, { params, host: { directory } })
}

test('sorts and pages in memory, by index and by cursor', async () => {
  const { send } = await open()
  const names = (body: JsonObject) => (body['Resources'] as JsonObject[]).map(({ userName }) => userName)
  expect(names((await send('GET', '/Users?sortBy=nickName')).body)).toEqual(['b', 'd', 'c', 'a'])
  expect(names((await send('GET', '/Users?sortBy=userName&sortOrder=descending&startIndex=2&count=2')).body)).toEqual([
    'c',
    'b',
  ])
  const first = (await send('GET', '/Users?sortBy=nickName&count=3&cursor')).body
  expect(names(first)).toEqual(['b', 'd', 'c'])
  const second = (await send('GET', `/Users?sortBy=nickName&count=3&cursor=${first['nextCursor']}`)).body
  expect(names(second)).toEqual(['a'])
  expect(second).not.toHaveProperty('nextCursor')
})

test('offers no versions', async () => {
  const { send } = await open()
  expect((await send('GET', '/ServiceProviderConfig')).body).toMatchObject({ etag: { supported: false } })
  expect((await send('GET', '/Users/a')).headers).not.toHaveProperty('etag')
})
