import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import type { ParamValues } from '#testing/modules/fake-parse.ts'
import { prepareGateway } from '#testing/scim/scim-gateway-fixture.ts'
import { builtInParams, openStack } from '#testing/scim/scim-stack.ts'
import scimGateway from './scim-gateway.ts'

const params: ParamValues = {
  ...builtInParams,
  'list.emails': 'work=mail,home=homeMail,=otherMail',
  'list.phoneNumbers': 'work=telephoneNumber, mobile=mobile',
  'list.addresses': 'work=office',
  'list.roles': 'app=role,=role',
}

let stack: Awaited<ReturnType<typeof openStack>>
beforeAll(async () => {
  stack = await openStack(scimGateway, { params })
})
afterAll(() => stack.close())

let next = 1
const patchOp = (...operations: JsonValue[]): JsonObject => ({
  schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
  Operations: operations,
})

/** A user that another program stored. */
async function withUser(attributes: Record<string, readonly string[]>) {
  const userID = `list${next++}`
  await createUser(stack.directory, {
    userID,
    attributes: Attributes.from({ userName: [userID], ...attributes }),
    groups: [],
  })
  const user = () => stack.directory.lookupUserByLogin(userID)
  const path = `/Users/${(await user())?.id}`
  return {
    path,
    read: async () => (await stack.send('GET', path)).body,
    stored: async (name: string) => (await user())?.attributes.values(name) ?? [],
    patch: (...operations: JsonValue[]) => stack.send('PATCH', path, patchOp(...operations)),
  }
}

describe('plain attributes are shown as one list', () => {
  test('with the type of each attribute, the first value as the primary one', async () => {
    const { read } = await withUser({
      mobile: ['2'],
      homeMail: ['h@x.org'],
      mail: ['a@x.org', 'b@x.org'],
      otherMail: ['o@x.org'],
      'office.locality': ['Oslo'],
      'office.country': ['NO'],
    })
    expect(await read()).toMatchObject({
      emails: [
        { value: 'a@x.org', type: 'work', primary: true },
        { value: 'b@x.org', type: 'work' },
        { value: 'h@x.org', type: 'home' },
        { value: 'o@x.org' },
      ],
      phoneNumbers: [{ value: '2', type: 'mobile', primary: true }],
      addresses: [{ locality: 'Oslo', country: 'NO', type: 'work', primary: true }],
    })
  })

  test('a client reads back what it wrote, and only plain values are stored', async () => {
    const sent = {
      emails: [
        { value: 'w@x.org', type: 'work', primary: true },
        { value: 'w2@x.org', type: 'work' },
        { value: 'h@x.org', type: 'home' },
      ],
      addresses: [{ streetAddress: '1 Main St', locality: 'Oslo', type: 'work', primary: true }],
    }
    const { status, body } = await stack.send('POST', '/Users', { userName: `list${next++}`, ...sent })
    expect([status, body['emails'], body['addresses']]).toEqual([201, sent.emails, sent.addresses])
    const { attributes } = (await stack.directory.lookupUserByLogin(`list${next - 1}`)) ?? {}
    expect(attributes?.toObject()).toMatchObject({ mail: ['w@x.org', 'w2@x.org'], homeMail: ['h@x.org'] })
    expect(attributes?.has('emails')).toBe(false)
    expect(attributes?.values('office.locality')).toEqual(['Oslo'])
  })
})

describe('elements change one by one', () => {
  const held = { mail: ['a@x.org'], homeMail: ['h@x.org'], otherMail: ['o@x.org'] }
  const value = 'new@x.org'

  test.each([
    [
      { op: 'replace', path: 'emails[type eq "work"].value', value },
      { ...held, mail: [value] },
    ],
    [
      { op: 'replace', path: 'emails[type eq "home"].value', value },
      { ...held, homeMail: [value] },
    ],
    [
      { op: 'add', path: 'emails', value: [{ type: 'work', value }] },
      { ...held, mail: ['a@x.org', value] },
    ],
    [
      { op: 'add', path: 'emails', value: [{ type: 'Work', value, primary: true }] },
      { ...held, mail: [value, 'a@x.org'] },
    ],
    [
      { op: 'add', path: 'emails', value: [{ value }] },
      { ...held, otherMail: ['o@x.org', value] },
    ],
    [
      { op: 'remove', path: 'emails[type eq "home"]' },
      { ...held, homeMail: [] },
    ],
    [
      { op: 'remove', path: 'emails[value eq "a@x.org"]' },
      { ...held, mail: [] },
    ],
    [
      { op: 'replace', path: 'emails', value: [{ type: 'home', value }] },
      { mail: [], homeMail: [value], otherMail: [] },
    ],
    [{ op: 'replace', path: 'emails[value eq "h@x.org"].type', value: 'work' }, { mail: ['a@x.org', 'h@x.org'] }],
    [
      { op: 'remove', path: 'emails' },
      { mail: [], homeMail: [], otherMail: [] },
    ],
  ])('%j', async (operation, expected) => {
    const { patch, stored, read } = await withUser(held)
    const { status, body } = await patch(operation)
    expect([status, body['detail']]).toEqual([200, undefined])
    for (const [name, values] of Object.entries(expected)) expect([name, await stored(name)]).toEqual([name, values])
    if (operation.op === 'remove' && operation.path === 'emails') expect(await read()).not.toHaveProperty('emails')
  })

  test('an element of an earlier type becomes the primary one, and no client has to know', async () => {
    const { patch } = await withUser({ homeMail: ['h@x.org'] })
    const { status, body } = await patch({ op: 'add', path: 'emails[type eq "work"].value', value })
    expect(status).toBe(200)
    expect(body['emails']).toEqual([
      { value, type: 'work', primary: true },
      { value: 'h@x.org', type: 'home' },
    ])
  })

  test('so it does where another value of the later type gets the mark in the same request', async () => {
    const { path, patch } = await withUser({ homeMail: ['h@x.org'] })
    const work = { value: 'h@x.org', type: 'work' }
    const emails = [work, { value, type: 'home', primary: true }]
    const shown = [
      { ...work, primary: true },
      { value, type: 'home' },
    ]
    const { body: user } = await stack.send('GET', path)
    const put = await stack.send('PUT', path, { ...user, emails })
    expect([put.status, put.body['detail'], put.body['emails']]).toEqual([200, undefined, shown])
    await patch({ op: 'remove', path: 'emails[type eq "work"]' }, { op: 'replace', path: 'title', value: 'Lead' })
    const again = await patch({
      op: 'replace',
      path: 'emails',
      value: [
        { ...work, value: 'w@x.org' },
        { value: 'n@x.org', type: 'home', primary: true },
      ],
    })
    expect([again.status, again.body['detail']]).toEqual([200, undefined])
  })

  test('the parts of an element without a value', async () => {
    const { patch, stored } = await withUser({ 'office.locality': ['Oslo'] })
    const street = { op: 'add', path: 'addresses[type eq "work"].streetAddress', value: '1 Main St' }
    expect((await patch(street)).body['addresses']).toEqual([
      { streetAddress: '1 Main St', locality: 'Oslo', type: 'work', primary: true },
    ])
    await patch({ op: 'remove', path: 'addresses[type eq "work"].locality' })
    expect([await stored('office.locality'), await stored('office.streetAddress')]).toEqual([[], ['1 Main St']])
  })

  test('an element that is there already is not added again', async () => {
    const { patch, stored } = await withUser({ mail: ['a@x.org'], 'office.locality': ['Oslo'], role: ['admin'] })
    for (const [path, element] of [
      ['emails', { type: 'work', value: 'a@x.org' }],
      ['addresses', { type: 'work', locality: 'Oslo' }],
      ['roles', { value: 'admin' }],
    ] as const) {
      const { status, body } = await patch({ op: 'add', path, value: [element] })
      expect([path, status, (body[path] as unknown[] | undefined)?.length]).toEqual([path, 200, 1])
    }
    expect(await stored('mail')).toEqual(['a@x.org'])
  })

  test('a removed part stays removed, also if another program stored several values', async () => {
    const { patch, stored } = await withUser({ 'office.locality': ['Oslo', 'Bergen'], 'office.country': ['NO'] })
    const { body } = await patch({ op: 'remove', path: 'addresses[type eq "work"].locality' })
    expect(body['addresses']).toEqual([{ country: 'NO', type: 'work', primary: true }])
    expect(await stored('office.locality')).toEqual([])
  })

  test('a second type of one attribute is shown with the first', async () => {
    const { patch, stored } = await withUser({})
    const { body } = await patch({ op: 'add', path: 'roles', value: [{ value: 'admin' }] })
    expect(body['roles']).toEqual([{ value: 'admin', type: 'app', primary: true }])
    expect(await stored('role')).toEqual(['admin'])
  })
})

test.each([
  ['add', 'emails[type eq "home"].primary', true],
  ['replace', 'emails[type eq "home"].primary', true],
  ['replace', 'emails[type eq "home"].primary', false],
  ['add', 'addresses[type eq "work"].primary', true],
])('%s of %s to %s does not succeed without such an element', async (op, path, value) => {
  const { patch, stored } = await withUser({ mail: ['a@x.org'] })
  const { status, body } = await patch({ op, path, value })
  expect([status, body['scimType']]).toEqual([400, 'noTarget'])
  expect(body['detail']).toMatch(
    /no value matches the filter of the path, and "primary" alone creates none. Send its "/,
  )
  expect(await stored('mail')).toEqual(['a@x.org'])
})

describe('what can not be stored', () => {
  const emails = (...elements: JsonObject[]): JsonObject => ({ op: 'replace', path: 'emails', value: elements })
  test.each([
    [
      { op: 'add', path: 'phoneNumbers', value: [{ value: '1', type: 'fax' }] },
      'phoneNumbers[0]: the type "fax" cannot be stored. Types that can be: "work", "mobile".',
    ],
    [
      { op: 'add', path: 'phoneNumbers', value: [{ value: '1' }] },
      'phoneNumbers[0] without a type cannot be stored. Types that can be: "work", "mobile".',
    ],
    [emails({ value: 'a', type: 'work', display: 'A' }), 'emails[0].display cannot be stored.'],
    [
      emails({ value: 'a', type: 'work' }, { value: 'b', type: 'home', primary: true }),
      'emails[1] cannot be primary, because the first value of type "work" is.',
    ],
    [
      {
        op: 'add',
        path: 'addresses',
        value: [
          { locality: 'Oslo', type: 'work' },
          { locality: 'Bergen', type: 'work' },
        ],
      },
      'addresses[1] is a second one of type "work".',
    ],
  ])('is refused: %j', async (operation, text) => {
    const { patch, read } = await withUser({ mail: ['old@x.org'] })
    const { status, body } = await patch(operation)
    expect([status, body['scimType']]).toEqual([400, 'invalidValue'])
    expect(body['detail']).toContain(text)
    expect((await read())['emails']).toEqual([{ value: 'old@x.org', type: 'work', primary: true }])
  })

  test('is refused in a create and in a PUT, and dropped if ignored', async () => {
    const user = { userName: `list${next++}`, phoneNumbers: [{ value: '1', type: 'fax' }] }
    const refused = await stack.send('POST', '/Users', user)
    expect([refused.status, refused.body['scimType']]).toEqual([400, 'invalidValue'])
    const { path } = await withUser({})
    expect((await stack.send('PUT', path, user)).body).toMatchObject({ status: '400', scimType: 'invalidValue' })
    const { send } = await stack.gateway({ ...params, ignoreUnmapped: ['phoneNumbers', 'emails.display'] })
    const emails = [{ value: 'a@x.org', type: 'work', display: 'A' }]
    const { status, body } = await send('POST', '/Users', { ...user, emails })
    expect([status, body['phoneNumbers'], body['emails']]).toEqual([
      201,
      undefined,
      [{ value: 'a@x.org', type: 'work', primary: true }],
    ])
  })

  test('an element without a value is none', async () => {
    const { patch, stored } = await withUser({ mail: ['old@x.org'] })
    expect((await patch(emails({ value: '', type: 'work' }))).body).not.toHaveProperty('emails')
    expect(await stored('mail')).toEqual([])
  })
})

test('/Schemas announces the parts and types that can be stored', async () => {
  const { body } = await stack.send('GET', `/Schemas/${userSchema.id}`)
  const parts = (name: string): JsonObject[] =>
    ((body['attributes'] as JsonObject[]).find((one) => one['name'] === name)?.['subAttributes'] ?? []) as JsonObject[]
  expect(parts('emails').map(({ name }) => name)).toEqual(['value', 'type', 'primary'])
  expect(parts('emails')[1]).toMatchObject({ canonicalValues: ['work', 'home'], mutability: 'readWrite' })
  expect(parts('addresses').map(({ name }) => name)).toContain('streetAddress')
})

describe('filters', () => {
  const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
  beforeAll(async () => {
    await withUser({ mail: ['wanted@x.org', 'second@x.org'] })
    await withUser({ homeMail: ['Wanted@x.org'], mail: ['x@x.org'] })
    await withUser({ otherMail: ['wanted@x.org'] })
    await withUser({ 'office.locality': ['Oslo'], mobile: ['1'] })
    await withUser({})
  })

  test.each([
    'emails.value eq "wanted@x.org"',
    'emails eq "WANTED@x.org"',
    'emails[type eq "work"].value eq "wanted@x.org"',
    'emails[type eq "home" and value eq "wanted@x.org"]',
    'emails[value eq "wanted@x.org"]',
    'emails[value sw "wanted"]',
    'emails.value co "anted"',
    'emails.value ew "x.org"',
    'emails.value ne "wanted@x.org"',
    'not (emails.value eq "wanted@x.org")',
    'not (emails[type eq "home"])',
    'emails pr',
    'not (emails pr)',
    'emails.value pr',
    'emails.display pr',
    'emails.display eq "A"',
    'emails.type eq "home"',
    'emails[primary eq true and type eq "home"]',
    'phoneNumbers[type eq "mobile"].value eq "1"',
    'addresses.locality eq "oslo"',
    'addresses[type eq "work" and locality eq "Oslo"]',
    'addresses pr',
    'emails eq null',
  ])('find what the evaluator finds: %s', async (filter) => {
    const all = (await stack.send('GET', '/Users?count=200')).body['Resources'] as JsonObject[]
    const parsed = parseFilter(filter, schema)
    const wanted = all.filter((resource) => evaluateFilter(parsed, resource)).map(({ id }) => id)
    const { status, body } = await stack.send('GET', `/Users?count=200&filter=${encodeURIComponent(filter)}`)
    expect([status, (body['Resources'] as JsonObject[]).map(({ id }) => id)]).toEqual([200, wanted])
    if (!/display/.test(filter)) expect(wanted.length).toBeGreaterThan(0)
  })

  test('an order by the list is that of the primary values', async () => {
    const { body } = await stack.send('GET', '/Users?count=200&sortBy=emails.value')
    const values = (body['Resources'] as JsonObject[]).map(
      ({ emails }) => ((emails as JsonObject[] | undefined)?.[0]?.['value'] as string | undefined) ?? '~',
    )
    expect(values.map((value) => value.toLowerCase())).toEqual(values.map((value) => value.toLowerCase()).toSorted())
  })
})

describe('check', () => {
  const messages = (more: ParamValues): readonly string[] =>
    prepareGateway(scimGateway, { ...builtInParams, ...more }).issues

  test.each([
    [{ 'list.email': 'work=mail' }, /"email" is not a list of complex values of users \(did you mean "emails"/],
    [{ 'list.title': 'work=mail' }, /"title" is not a list/],
    [{ 'list.groups': 'work=mail' }, /"groups" is not a list/],
    [{ 'list.emails': 'work' }, /"work" is not of the form type=attribute/],
    [{ 'list.emails': 'work=a,Work=b' }, /the type "Work" is listed twice/],
    [{ 'list.emails': 'work=mail,home=mail' }, /"mail" is listed for "work" and "home"/],
    [{ 'list.emails': 'work=mail,home=Mail' }, /"mail" is listed for "work" and "home"/],
    [{ 'list.emails': '=mail,work=mail' }, /"mail" is listed for no type and "work"/],
    [{ 'list.emails': 'work=mail;home=homeMail' }, /"work=mail;home=homeMail" is not of the form/],
    [{ 'list.emails': 'work==mail' }, /"work==mail" is not of the form/],
    [{ 'list.emails': '"work"=mail' }, /is not of the form/],
    [{ 'list.emails': 'emails[type eq work]=mail' }, /is not of the form/],
    [{ 'list.emails': 'work=mail,' }, /"" is not of the form/],
    [{ 'list.emails': 'work=mail', 'list.Emails': 'home=homeMail' }, /"Emails" is listed by "list.emails"/],
    [{ 'list.emails': 'work=a', 'list.phoneNumbers': 'work=A' }, /"A" already stores "emails"/],
    [{ 'list.emails': 'work=title' }, /"title" would store two SCIM attributes/],
    [{ 'list.emails': 'work=userName' }, /reserved name/],
    [{ 'list.emails': 'work=a', mapping: 'lines', uidAttributeName: 'uid' }, /needs "mapping: scim"/],
    [
      { 'list.emails': 'work=a', tremolo2scim: 'emails', 'tremolo2scim.emails.source': 'mail' },
      /"emails" is shown by tremolo2scim/,
    ],
  ])('%j', (more, text) => {
    expect(messages(more as ParamValues).join('\n')).toMatch(text)
  })

  test('accepts an attribute for elements without a type too, in another letter case and with blanks', () => {
    expect(messages({ 'list.emails': ' Work Mail = mail , = Mail ' })).toEqual([])
  })
})
