import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { Issues } from '#kernel/issues.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { readResource } from '#protocols/scim/read-resource.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import type { SchemaAttribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { createUser, deleteUser } from '#testing/databases/directory-writes.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { fakeParams } from '#testing/modules/fake-parse.ts'
import { base } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import { readSchemas } from './mapping-config.ts'
import scimGateway from './scim-gateway.ts'

const badgeUrn = 'urn:example:scim:schemas:Badge'
const badge = {
  id: badgeUrn,
  name: 'Badge',
  attributes: [
    { name: 'number', type: 'integer' },
    { name: 'weight', type: 'decimal' },
    { name: 'issued', type: 'dateTime' },
    { name: 'doors', multiValued: true },
    { name: 'codes', type: 'integer', multiValued: true },
    { name: 'secret', returned: 'never', mutability: 'writeOnly' },
    { name: 'note', returned: 'request' },
    { name: 'printer', mutability: 'immutable' },
    {
      name: 'keys',
      type: 'complex',
      multiValued: true,
      subAttributes: [
        { name: 'value' },
        { name: 'lost', type: 'boolean' },
        { name: 'copies', type: 'integer' },
        { name: 'rooms', multiValued: true },
      ],
    },
  ],
}
const coreAddition = `
id: ${userSchema.id}
attributes:
  - name: costume
    type: complex
    subAttributes:
      - { name: color }
      - { name: hats, type: integer }
`
const params = { ...builtInParams, unknownManager: 'accept', userSchema: [JSON.stringify(badge), coreAddition] }

type Stack = Awaited<ReturnType<typeof openStack>>
let stack: Stack

beforeAll(async () => {
  stack = await openStack(scimGateway, { params })
})
afterAll(() => stack.close())

const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

let next = 1
const unique = (): string => `user${next++}`

const text = fc
  .string({ unit: 'grapheme', maxLength: 12 })
  .filter((value) => value.isWellFormed() && !value.includes('\0'))

function single({ type }: SchemaAttribute): fc.Arbitrary<JsonValue> {
  switch (type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.maxSafeInteger()
    case 'decimal':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'dateTime':
      return fc.date({ min: new Date(0), max: new Date('9000-01-01'), noInvalidDate: true }).map((d) => d.toISOString())
    default:
      return text
  }
}

function valueFor(attribute: SchemaAttribute): fc.Arbitrary<JsonValue> {
  const { subAttributes, type, multiValued } = attribute
  const one =
    type === 'complex'
      ? fc.record(Object.fromEntries(writable(subAttributes)), { requiredKeys: [] })
      : single(attribute)
  return multiValued ? fc.array(one as fc.Arbitrary<JsonValue>, { maxLength: 4 }) : (one as fc.Arbitrary<JsonValue>)
}

const writable = (attributes: readonly SchemaAttribute[]): [string, fc.Arbitrary<JsonValue>][] =>
  attributes
    .filter(({ mutability, returned }) => mutability === 'readWrite' && returned === 'default')
    .map((attribute) => [attribute.name, valueFor(attribute)])

const schema = readSchemas(
  fakeParams(params),
  'userSchema',
  new ResourceSchema(userSchema, [enterpriseUserSchema]),
  new Issues(),
)

const person: fc.Arbitrary<JsonObject> = fc
  .tuple(
    fc.record(Object.fromEntries(writable(schema.core.attributes.filter(({ name }) => name !== 'userName'))), {
      requiredKeys: [],
    }),
    fc.record(
      Object.fromEntries(
        schema.extensions.map(({ id, attributes }) => [
          id,
          fc.record(Object.fromEntries(writable(attributes)), { requiredKeys: [] }),
        ]),
      ),
      { requiredKeys: [] },
    ),
    fc.option(text, { nil: undefined }),
  )
  .map(([core, extensions, externalId]) => ({
    ...core,
    ...extensions,
    ...(externalId === undefined ? {} : { externalId }),
  }))

/** The resource as the protocol engine reads it; undefined if it is invalid. */
function understood(raw: JsonObject): JsonObject | undefined {
  try {
    return readResource(schema, raw)
  } catch {
    return undefined
  }
}

/** Without the attributes that the service adds. */
function own({ schemas: _, id: __, meta: ___, ...rest }: JsonObject): JsonObject {
  return rest
}

const sameJson = (value: JsonValue): JsonValue => JSON.parse(JSON.stringify(value))

describe('nothing is lost', () => {
  test('by POST and by PUT', async () => {
    await fc.assert(
      fc.asyncProperty(person, person, async (first, second) => {
        const userName = unique()
        const created = understood({ ...first, userName })
        const replaced = understood({ ...second, userName })
        fc.pre(created !== undefined && replaced !== undefined)
        const { status, body } = await stack.send('POST', '/Users', created)
        expect([status, body['detail']]).toEqual([201, undefined])
        expect(own(body)).toEqual(sameJson(created))
        const address = `/Users/${String(body['id'])}`
        expect(own((await stack.send('GET', address)).body)).toEqual(sameJson(created))
        const put = await stack.send('PUT', address, replaced)
        expect([put.status, put.body['detail']]).toEqual([200, undefined])
        // A PUT without `active` neither activates nor deactivates the account.
        const active = replaced?.['active'] ?? created?.['active']
        const kept = { ...replaced, ...(active === undefined ? {} : { active }) }
        expect(own((await stack.send('GET', address)).body)).toEqual(sameJson(kept))
      }),
      { numRuns: sampled(15, 50) },
    )
  }, 60_000)
})

const create = async (resource: JsonObject = {}): Promise<{ address: string; body: JsonObject }> => {
  const { status, body } = await stack.send('POST', '/Users', { userName: unique(), ...resource })
  expect([status, body['detail']]).toEqual([201, undefined])
  return { address: `/Users/${String(body['id'])}`, body }
}

describe('storing', () => {
  test('uses the SCIM path as the name, and never stores the password', async () => {
    const userName = unique()
    await create({
      userName,
      password: 'hidden-word',
      active: false,
      name: { givenName: 'Ann' },
      emails: [
        { type: 'home', value: 'a@home.example' },
        { primary: true, value: 'a@work.example', type: 'work' },
      ],
      [enterpriseUserSchema.id]: { department: 'D1', manager: { value: '26' } },
      [badgeUrn]: { doors: ['1', '2'], number: 7 },
    })
    const stored = await stack.directory.lookupUserByLogin(userName)
    expect(stored?.attributes.toObject()).toEqual({
      userName: [userName],
      active: ['false'],
      'name.givenName': ['Ann'],
      emails: ['{"value":"a@home.example","type":"home"}', '{"value":"a@work.example","type":"work","primary":true}'],
      'emails.value': ['a@work.example', 'a@home.example'],
      [`${enterpriseUserSchema.id}:department`]: ['D1'],
      [`${enterpriseUserSchema.id}:manager.value`]: ['26'],
      [`${badgeUrn}:doors`]: ['1', '2'],
      [`${badgeUrn}:number`]: ['7'],
    })
    expect(JSON.stringify(stack.audit.rows)).not.toContain('hidden-word')
  })

  test('clears by PATCH and PUT, though the workflow names no attributes', async () => {
    const userName = unique()
    const { address } = await create({ userName, title: 'x', nickName: 'y', emails: [{ value: 'e@example.com' }] })
    await stack.send('PATCH', address, patchOp({ op: 'remove', path: 'title' }, { op: 'remove', path: 'emails' }))
    expect((await stack.directory.lookupUserByLogin(userName))?.attributes.names().sort()).toEqual([
      'nickName',
      'userName',
    ])
    await stack.send('PUT', address, { userName })
    expect((await stack.directory.lookupUserByLogin(userName))?.attributes.names()).toEqual(['userName'])
  })

  test('shows and keeps values of other writers as far as they fit', async () => {
    const userName = unique()
    await createUser(stack.directory, {
      userID: userName,
      attributes: Attributes.from({
        emails: ['plain@example.com', '{"VALUE":"json@example.com","junk":1}'],
        active: ['TRUE'],
        'name.givenName': ['Ann'],
        addresses: ['{"country":'],
        [`${badgeUrn}:number`]: ['seven'],
        phoneNumbers: ['{"__proto__":{"value":"1"}}'],
      }),
      groups: [],
    })
    const found = await stack.send('GET', `/Users?filter=${encodeURIComponent(`userName eq "${userName}"`)}`)
    const [shown] = found.body['Resources'] as JsonObject[]
    expect(own(shown ?? {})).toEqual({
      userName,
      active: true,
      name: { givenName: 'Ann' },
      emails: [{ value: 'plain@example.com' }, { value: 'json@example.com' }],
    })
    await stack.send('PATCH', `/Users/${String(shown?.['id'])}`, patchOp({ op: 'add', path: 'title', value: 'T' }))
    const stored = await stack.directory.lookupUserByLogin(userName)
    expect(stored?.attributes.values('emails')[0]).toBe('plain@example.com')
    expect(stored?.attributes.values(`${badgeUrn}:number`)).toEqual(['seven'])
    expect(stored?.attributes.values('title')).toEqual(['T'])
    await deleteUser(stack.directory, userName)
  })
})

describe('showing', () => {
  test('has the groups of the user, and the extensions among the schemas', async () => {
    const userName = unique()
    const { address } = await create({ userName, [badgeUrn]: { doors: ['1'] } })
    await stack.workflows.run({
      head: { workflow: 'change-members', requester: 'test' },
      keepGroups: true,
      user: { userID: userName, attributes: new Attributes(), groups: [] },
      params: { groupname: 'staff', removegroup: 'false' },
    })
    const { body } = await stack.send('GET', address)
    const [group] = body['groups'] as JsonObject[]
    expect(group).toMatchObject({ display: 'staff', type: 'direct' })
    expect(group?.['$ref']).toBe(`${base}/Groups/${String(group?.['value'])}`)
    expect(body['schemas']).toEqual([userSchema.id, badgeUrn])
  })

  test('hides attributes that are never returned, and shows others on request', async () => {
    const { address, body } = await create({ [badgeUrn]: { secret: 's3cret', note: 'n', doors: ['1'] } })
    expect(body[badgeUrn]).toEqual({ doors: ['1'] })
    const asked = await stack.send('GET', `${address}?attributes=${badgeUrn}:note,${badgeUrn}:secret`)
    expect(asked.body[badgeUrn]).toEqual({ note: 'n' })
    await stack.send('PATCH', address, patchOp({ op: 'add', path: 'title', value: 'x' }))
    const stored = async (name: string) =>
      (await stack.directory.lookupUserById(address.slice('/Users/'.length)))?.attributes.values(`${badgeUrn}:${name}`)
    expect([await stored('secret'), await stored('note')]).toEqual([['s3cret'], ['n']])
    await stack.send('PUT', address, { userName: body['userName'] ?? '' })
    expect([await stored('secret'), await stored('note')]).toEqual([['s3cret'], []])
    await stack.send('PATCH', address, patchOp({ op: 'remove', path: `${badgeUrn}:secret` }))
    expect(await stored('secret')).toEqual([])
  })

  test('keeps the value of an immutable attribute, and rejects another value', async () => {
    const { address, body } = await create({ [badgeUrn]: { printer: 'P1' } })
    const userName = body['userName'] ?? ''
    const other = await stack.send('PUT', address, { userName, [badgeUrn]: { printer: 'P2' } })
    expect([other.status, other.body['scimType']]).toEqual([400, 'mutability'])
    expect((await stack.send('PUT', address, { userName })).body[badgeUrn]).toEqual({ printer: 'P1' })
  })

  test('/Schemas lists all of it, except the password', async () => {
    const { body } = await stack.send('GET', `/Schemas/${userSchema.id}`)
    const names = (body['attributes'] as JsonObject[]).map(({ name }) => name)
    expect(names).toContain('costume')
    expect(names).toContain('groups')
    expect(names).not.toContain('password')
    expect((await stack.send('GET', `/Schemas/${badgeUrn}`)).status).toBe(200)
    const types = await stack.send('GET', '/ResourceTypes/User')
    expect(types.body['schemaExtensions']).toEqual([
      { schema: enterpriseUserSchema.id, required: false },
      { schema: badgeUrn, required: false },
    ])
  })
})

describe('filters', () => {
  const value = 'wanted@example.com'
  beforeAll(async () => {
    await create({
      userName: 'wanted',
      emails: [{ type: 'work', value }],
      title: '',
      [badgeUrn]: { doors: ['A'], number: 5 },
    })
    await create({
      userName: 'other',
      emails: [
        { type: 'work', value: 'x@example.com' },
        { type: 'home', value },
      ],
      addresses: [{ country: 'DE', type: 'home' }],
      nickName: 'findme',
      externalId: 'Ext-1',
    })
  })
  const found = async (filter: string): Promise<unknown[]> => {
    const limited = `(userName eq "wanted" or userName eq "other") and (${filter})`
    const { status, body } = await stack.send('GET', `/Users?filter=${encodeURIComponent(limited)}`)
    expect([status, body['detail']]).toEqual([200, undefined])
    return (body['Resources'] as JsonObject[]).map(({ userName }) => userName)
  }

  test.each([
    [`emails.value eq "${value}"`, ['wanted', 'other']],
    [`emails eq "${value.toUpperCase()}"`, ['wanted', 'other']],
    [`emails[type eq "work" and value eq "${value}"]`, ['wanted']],
    [`emails[type eq "work"].value eq "${value}"`, ['wanted']],
    ['emails.type eq "home"', ['other']],
    ['not (emails.type eq "home")', ['wanted']],
    ['emails pr', ['wanted', 'other']],
    ['addresses pr', ['other']],
    ['addresses[country eq "de"]', ['other']],
    ['not (addresses[country eq "de"])', ['wanted']],
    ['title pr', []],
    ['title eq ""', ['wanted']],
    ['not (title pr)', ['wanted', 'other']],
    ['nickName sw "FIND"', ['other']],
    ['externalId eq "Ext-1"', ['other']],
    ['externalId eq "ext-1"', []],
    [`${badgeUrn}:number gt 4`, ['wanted']],
    [`${badgeUrn}:number eq 5`, ['wanted']],
    [`${badgeUrn}:doors eq "a"`, ['wanted']],
    [`${badgeUrn}:doors pr`, ['wanted']],
    ['name pr', []],
    ['costume pr', []],
    ['groups pr', []],
    ['meta.created gt "2020-01-01T00:00:00Z"', ['wanted', 'other']],
  ])('%s', async (filter, expected) => {
    expect(await found(filter)).toEqual(expected)
  })

  test.each([
    'emails.value co "x@"',
    'emails[value sw "wanted"]',
    'emails[type eq "work" or value ew "example.com"]',
    'nickName ne "findme"',
    'not (nickName pr)',
    'emails.value ne "x@example.com"',
    'emails eq null',
    'emails pr',
    'not (addresses pr)',
    'name pr',
    'not (name pr)',
    'not (title pr)',
    'emails.value eq ""',
    'emails.value co ""',
    'title eq null',
    'active eq true or externalId pr',
    `${badgeUrn}:doors eq ""`,
    `not (${badgeUrn}:doors pr)`,
    `${enterpriseUserSchema.id}:manager pr`,
    'not (addresses.country pr)',
  ])('the store returns exactly the matches: %s', async (filter) => {
    const all = (await stack.send('GET', '/Users?count=200')).body['Resources'] as JsonObject[]
    const parsed = parseFilter(filter, schema)
    const wanted = all.filter((resource) => evaluateFilter(parsed, resource)).map(({ id }) => id)
    const { body } = await stack.send('GET', `/Users?count=200&filter=${encodeURIComponent(filter)}`)
    expect((body['Resources'] as JsonObject[]).map(({ id }) => id)).toEqual(wanted)
  })
})

describe('lines beside it', () => {
  test('replace it attribute by attribute', async () => {
    const lines = {
      ...builtInParams,
      scim2tremolo: ['jobTitle', 'nickName'],
      'scim2tremolo.jobTitle.source': 'title',
      'scim2tremolo.nickName.source': 'fixed',
      'scim2tremolo.nickName.sourceType': 'static',
      tremolo2scim: ['title', 'displayName'],
      'tremolo2scim.title.source': 'jobTitle',
      'tremolo2scim.displayName.source': '${name.givenName} the ${jobTitle}',
      'tremolo2scim.displayName.sourceType': 'composite',
    }
    const { send } = await stack.gateway(lines)
    const userName = unique()
    const { body } = await send('POST', '/Users', {
      userName,
      title: 'Great',
      displayName: 'dropped',
      nickName: 'dropped',
      name: { givenName: 'Ann' },
    })
    expect(own(body)).toEqual({
      userName,
      title: 'Great',
      displayName: 'Ann the Great',
      nickName: 'fixed',
      name: { givenName: 'Ann' },
    })
    const stored = await stack.directory.lookupUserByLogin(userName)
    expect(stored?.attributes.names().sort()).toEqual(['jobTitle', 'name.givenName', 'nickName', 'userName'])
    const { body: core } = await send('GET', `/Schemas/${userSchema.id}`)
    const listed = new Map((core['attributes'] as JsonObject[]).map((one) => [one['name'], one['mutability']]))
    expect([listed.get('title'), listed.get('displayName')]).toEqual(['readWrite', 'readOnly'])
  })
})
