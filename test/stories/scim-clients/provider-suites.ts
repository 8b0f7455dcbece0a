import { describe, expect, test } from 'vitest'
import { coreGroup, coreUser, enterpriseUser, type ScimClient } from '#testing/scim/scim-client.ts'
import { fresh, type StoryOptions, testIf } from '#testing/scim/scim-story.ts'
import { entraStory } from './entra.ts'
import { oktaStory } from './okta.ts'
import { oktaSpecStory } from './okta-spec.ts'
import { oneloginStory } from './onelogin.ts'
import { sailpointStory } from './sailpoint.ts'

/** What every identity provider sends to a gateway that `init` wrote, from first to last request. */
export function providerSuites(client: (profile: string) => () => ScimClient, can?: StoryOptions): void {
  describe('Okta', () => oktaStory(client('okta'), can))
  describe("Okta's SPEC suite", () => oktaSpecStory(client('okta')))
  describe('Entra ID', () => entraStory(client('entra'), can))
  describe('SailPoint', () => sailpointStory(client('sailpoint'), can))
  describe('OneLogin', () => oneloginStory(client('onelogin'), can))
  describe('any client', () => genericStory(client('tolerant'), can))
}

/** The profile that Ping and other clients push: everything by PUT, then single changes, deactivation and return. */
function genericStory(client: () => ScimClient, { groups }: StoryOptions = {}): void {
  test('a whole profile is pushed, changed, deactivated, and returns', async () => {
    const userName = fresh('ping')
    const profile = {
      schemas: [coreUser, enterpriseUser],
      userName,
      externalId: fresh('external'),
      name: { formatted: 'Ann Bee', givenName: 'Ann', familyName: 'Bee' },
      displayName: 'Ann',
      title: 'Engineer',
      locale: 'en-US',
      preferredLanguage: 'en',
      emails: [
        { value: `${userName}@example.com`, type: 'work', primary: true },
        { value: 'ann@home.example', type: 'home' },
      ],
      phoneNumbers: [
        { value: '+47 1', type: 'work', primary: true },
        { value: '+47 2', type: 'mobile' },
      ],
      addresses: [{ streetAddress: '1 Main St', locality: 'Oslo', country: 'NO', type: 'work', primary: true }],
      active: true,
      [enterpriseUser]: { department: 'R&D', employeeNumber: '7' },
    }
    const created = await client().post('/Users', profile)
    expect(created).toMatchObject({ status: 201, body: profile })
    const path = `/Users/${created.body.id}`
    const put = { ...profile, title: 'Lead', locale: 'nb-NO' }
    expect(await client().put(path, put)).toMatchObject({ status: 200, body: put })
    const patched = await client().patch(path, [
      { op: 'replace', path: 'emails[type eq "home"].value', value: 'new@home.example' },
      { op: 'remove', path: 'phoneNumbers[type eq "mobile"]' },
      { op: 'add', path: 'title', value: 'Chief' },
    ])
    expect(patched.status).toBe(200)
    expect(patched.body).toMatchObject({ title: 'Chief', emails: [profile.emails[0], { value: 'new@home.example' }] })
    expect(patched.body.phoneNumbers).toMatchObject([profile.phoneNumbers[0]])
    for (const filter of [`externalId eq "${profile.externalId}"`, `emails.value eq "${userName}@example.com"`]) {
      expect([filter, (await client().filter('/Users', filter)).body.totalResults]).toEqual([filter, 1])
    }
    const removed = await client().patch(path, [{ op: 'remove', path: 'emails' }])
    expect([removed.status, removed.body.emails]).toEqual([200, undefined])
    expect((await client().patch(path, [{ op: 'replace', path: 'active', value: false }])).body.active).toBe(false)
    const back = await client().post('/Users', profile)
    expect([back.status, back.body.id, back.body.active]).toEqual([201, created.body.id, true])
  })

  test.each([{ type: 'work' }, {}])('elements of lists need no primary mark and no type: %j', async (type) => {
    const profile = {
      userName: fresh('unmarked'),
      emails: [{ value: `${fresh('unmarked')}@example.com`, ...type }],
      phoneNumbers: [{ value: '+47 3', ...type }],
      addresses: [{ streetAddress: '1 Main St', locality: 'Oslo', ...type }],
      active: true,
    }
    const made = await client().post('/Users', { schemas: [coreUser], ...profile })
    expect(made).toMatchObject({ status: 201, body: profile })
    for (const change of [{ title: 'Lead' }, { phoneNumbers: [{ value: '+47 4', ...type }] }]) {
      const put = { ...profile, ...change }
      expect(await client().put(`/Users/${made.body.id}`, put)).toMatchObject({ status: 200, body: put })
    }
  })

  testIf(groups)('a group has the externalId of the client, and is found by it', async () => {
    const [externalId, other] = [fresh('object'), fresh('object')]
    const group = { schemas: [coreGroup], displayName: fresh('team'), externalId }
    const made = await client().post('/Groups', group)
    expect(made).toMatchObject({ status: 201, body: { externalId } })
    const path = `/Groups/${made.body.id}`
    expect((await client().filter('/Groups', `externalId eq "${externalId}"`)).body.totalResults).toBe(1)
    const change = [{ op: 'Replace', path: 'externalId', value: other }]
    expect((await client().patch(path, change)).status).toBe(204)
    expect((await client().get(path)).body).toMatchObject({ displayName: group.displayName, externalId: other })
    expect((await client().filter('/Groups', `externalId eq "${externalId}"`)).body.totalResults).toBe(0)
    expect((await client().put(path, group)).body).toMatchObject({ externalId })
  })

  test('a user whose `active` is removed is not deactivated', async () => {
    const { body } = await client().post('/Users', { schemas: [coreUser], userName: fresh('user'), active: true })
    const { status } = await client().patch(`/Users/${body.id}`, [{ op: 'remove', path: 'active' }])
    expect([200, 400]).toContain(status)
    expect((await client().get(`/Users/${body.id}`)).body.active ?? true).toBe(true)
  })

  test('/Schemas announces what was stored', async () => {
    const { body } = await client().get(`/Schemas/${coreUser}`)
    const names = body.attributes.map(({ name }: { name: string }) => name)
    expect(names).toEqual(expect.arrayContaining(['title', 'locale', 'emails', 'phoneNumbers', 'active']))
  })
}
