import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Dn } from '#identity/dn.ts'
import type { JsonObject } from '#kernel/json.ts'
import { directoryEntry } from '#testing/modules/directory-entry.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { openGateway, tutorialParams } from '#testing/scim/scim-gateway-fixture.ts'
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

test('pages by index follow one another in one order', async () => {
  const { send } = await open()
  const names = async (startIndex: number) => {
    const { body } = await send('GET', `/Users?startIndex=${startIndex}&count=2`)
    expect(body).toMatchObject({ totalResults: 4, itemsPerPage: 2 })
    return (body['Resources'] as JsonObject[]).map(({ userName }) => userName)
  }
  expect([...(await names(1)), ...(await names(3))]).toEqual(['c', 'a', 'b', 'd'])
})

test('a login of two entries finds no user, and neither does a filter in place of a login', async () => {
  const twice = [person('a'), { ...person('a'), dn: Dn.parse('uid=a,ou=x,o=test') }, person('b')]
  const { directory } = fakeModuleHost({ entries: twice })
  const { send } = await openGateway(scimGateway, { params, host: { directory } })
  expect((await send('GET', '/Users/a')).status).toBe(404)
  expect((await send('GET', '/Users/b')).status).toBe(200)
  for (const odd of ['*', 'b)(uid=*', 'B*']) {
    expect((await send('GET', `/Users/${encodeURIComponent(odd)}`)).status).toBe(404)
  }
})

test('an answer that would need too many entries is rejected, not truncated', async () => {
  const many = Array.from({ length: 1000 }, (_, i) => person(`u${i}`))
  const { directory } = fakeModuleHost()
  const endless = { ...directory, page: async () => ({ entries: many.map(directoryEntry), next: 'more' }) }
  const { send } = await openGateway(scimGateway, { params, host: { directory: endless } })
  expect(await send('GET', '/Users')).toMatchObject({ status: 400, body: { scimType: 'tooMany' } })
})

/** Ada and two groups, one of which is elsewhere; the attribute also names a group that is gone, and no group. */
const adaIn = (attribute: string) => {
  const group = (dn: string) => ({
    dn: Dn.parse(dn),
    attributes: Attributes.from({
      objectClass: ['groupOfNames'],
      cn: [dn.slice(3, 6)],
      entryUUID: [`id-${dn.slice(3, 6)}`],
    }),
  })
  const names = ['CN=one, ou=groups,o=test', 'cn=gone,ou=groups,o=test', 'no name', '', 'cn=two,o=elsewhere']
  const user = {
    dn: Dn.parse('userName=ada,o=test'),
    attributes: Attributes.from({ userName: ['ada'], entryUUID: ['7'], objectClass: ['person'], [attribute]: names }),
  }
  return { entries: [user, group('cn=one,ou=groups,o=test'), group('cn=two,o=elsewhere')] }
}
const byUuid = {
  lookupFromLDAP: 'true',
  searchBase: 'o=test',
  idAttributeName: 'entryUUID',
  groupIdName: 'entryUUID',
  groupLookupAttributeName: 'cn',
}

test('with the built-in mapping a user shows the groups that memberOf names, each once', async () => {
  const { directory } = fakeModuleHost(adaIn('memberOf'))
  const built = { ...byUuid, mapping: 'scim', workflowName: 'w' }
  const { send } = await openGateway(scimGateway, { params: built, host: { directory } })
  expect((await send('GET', '/Users/7')).body).toMatchObject({
    id: '7',
    userName: 'ada',
    groups: [{ value: 'id-one', display: 'one' }],
  })
})

test('a mapper shows the groups that its attribute names, with their ids', async () => {
  const { directory } = fakeModuleHost(adaIn('teams'))
  const mapped = {
    ...tutorialParams,
    ...byUuid,
    tremolo2scim: ['userName', 'emails', 'name', 'active', 'displayName', 'groups'],
    'tremolo2scim.userName.source': 'userName',
    'tremolo2scim.groups.source': 'groups|true,https://h,teams,entryUUID',
    'tremolo2scim.groups.sourceType': 'custom',
  }
  const { send } = await openGateway(scimGateway, { params: mapped, host: { directory } })
  expect((await send('GET', '/Users/7')).body['groups']).toEqual([
    { value: 'id-one', $ref: 'https://h/Groups/id-one', display: 'one' },
  ])
})

test('groups in groups are members of type Group, and users are in the groups that contain theirs', async () => {
  const group = (name: string, ...member: string[]) => ({
    dn: Dn.parse(`cn=${name},ou=groups,o=test`),
    attributes: Attributes.from({
      objectClass: ['groupOfNames'],
      cn: [name],
      // Has the attributes of users, and is a group all the same.
      userName: [name],
      entryUUID: [`id-${name}`],
      member,
    }),
  })
  const inGroups = (name: string) => `cn=${name},ou=groups,o=test`
  const user = {
    dn: Dn.parse('userName=ada,o=test'),
    attributes: Attributes.from({
      userName: ['ada'],
      displayName: ['Ada L.'],
      entryUUID: ['7'],
      objectClass: ['person'],
      memberOf: [inGroups('eng')],
    }),
  }
  const entries = [
    user,
    group('eng', 'userName=ada,o=test'),
    group('dev', inGroups('eng')),
    // Others may write cycles, which end the walk like any other group.
    group('all', inGroups('dev'), inGroups('eng'), 'userName=ada,o=test', inGroups('gone'), inGroups('all')),
  ]
  const { directory } = fakeModuleHost({ entries })
  const built = {
    mapping: 'scim',
    lookupFromLDAP: 'true',
    searchBase: 'o=test',
    workflowName: 'w',
    idAttributeName: 'entryUUID',
    groupIdName: 'entryUUID',
    groupLookupAttributeName: 'cn',
    groupMemberAttributeName: 'member',
  }
  const { send } = await openGateway(scimGateway, { params: built, host: { directory } })
  expect((await send('GET', '/Groups/id-all')).body['members']).toEqual([
    { value: 'id-dev', type: 'Group', display: 'dev', $ref: expect.stringMatching(/\/Groups\/id-dev$/) },
    { value: 'id-eng', type: 'Group', display: 'eng', $ref: expect.stringMatching(/\/Groups\/id-eng$/) },
    { value: '7', type: 'User', display: 'Ada L.', $ref: expect.stringMatching(/\/Users\/7$/) },
    { value: 'id-all', type: 'Group', display: 'all', $ref: expect.stringMatching(/\/Groups\/id-all$/) },
  ])
  const groups = [
    { value: 'id-eng', display: 'eng', type: 'direct' },
    { value: 'id-dev', display: 'dev', type: 'indirect' },
    { value: 'id-all', display: 'all', type: 'indirect' },
  ]
  expect((await send('GET', '/Users/7')).body['groups']).toMatchObject(groups)
  const { body } = await send('GET', '/Users?filter=userName%20eq%20%22ada%22')
  expect(body['Resources']).toMatchObject([{ id: '7', groups }])
  const held = await send('GET', `/Groups?filter=${encodeURIComponent('members.value eq "id-eng"')}`)
  expect((held.body['Resources'] as JsonObject[]).map(({ id }) => id)).toEqual(['id-dev', 'id-all'])
})
