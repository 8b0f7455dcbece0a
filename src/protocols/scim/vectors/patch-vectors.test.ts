import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject, JsonValue } from '#kernel/json.ts'
import { applyPatch } from '#protocols/scim/patch/apply-patch.ts'
import { parsePatch, patchSchema } from '#protocols/scim/patch/parse-patch.ts'
import { clientValues } from '#protocols/scim/read-resource.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

const enterprise = enterpriseUserSchema.id
const custom = 'urn:example:params:scim:schemas:extension:site:2.0:User'
const user = new ResourceSchema(userSchema, [
  enterpriseUserSchema,
  {
    id: custom,
    name: 'Site',
    description: '',
    attributes: [
      attribute('badge', '', { mutability: 'immutable' }),
      attribute('tags', '', { multiValued: true }),
      attribute('floor', '', { type: 'integer' }),
      attribute('seals', '', { multiValued: true, mutability: 'immutable' }),
      attribute('desk', '', {
        type: 'complex',
        subAttributes: [attribute('value', '', { mutability: 'immutable' }), attribute('note', '')],
      }),
      attribute('keys', '', {
        type: 'complex',
        multiValued: true,
        subAttributes: [attribute('value', ''), attribute('door', '', { required: true }), attribute('note', '')],
      }),
    ],
  },
])
const group = new ResourceSchema(groupSchema)

const work = { value: 'bjensen@example.com', type: 'work', primary: true }
const home = { value: 'babs@jensen.org', type: 'home' }
const workAddress = {
  type: 'work',
  streetAddress: '100 Universal City Plaza',
  locality: 'Hollywood',
  region: 'CA',
  postalCode: '91608',
  country: 'US',
  formatted: '100 Universal City Plaza\nHollywood, CA 91608 USA',
  primary: true,
}
const homeAddress = { type: 'home', streetAddress: '456 Hollywood Blvd', locality: 'Hollywood', country: 'US' }
const name = { formatted: 'Ms. Barbara J Jensen', familyName: 'Jensen', givenName: 'Barbara' }
const own = { department: 'Tours', manager: { value: '26', $ref: '../Users/26', displayName: 'John' } }
const babs: JsonObject = {
  schemas: [userSchema.id, enterprise],
  id: '2819c223',
  userName: 'bjensen',
  name,
  title: 'Guide',
  active: true,
  emails: [work, home],
  addresses: [workAddress, homeAddress],
  roles: [{ value: 'urn:r:a.b]c' }],
  groups: [{ value: 'g1' }],
  meta: { resourceType: 'User' },
  [enterprise]: own,
  [custom]: { badge: 'B-1', tags: ['North', 'quiet'], desk: { value: 'd1', note: 'window' }, seals: ['one'] },
}

const babsMember = { display: 'Babs Jensen', $ref: 'https://example.com/v2/Users/2819c223', value: '2819c223' }
const james = { display: 'James Smith', $ref: 'https://example.com/v2/Users/08e1d05d', value: '08e1d05d' }
const guides: JsonObject = { id: 'acbf3ae7', displayName: 'Tour Guides', members: [babsMember, james] }

/** The expected resource: these attributes change, the others stay. Undefined means removed. */
type Becomes = Readonly<Record<string, JsonValue | undefined>>
type Row = readonly [source: string, operations: JsonValue, outcome: Becomes | string]

const unchanged: Becomes = {}

function run(schema: ResourceSchema, before: JsonObject, operations: JsonValue, strict = false): JsonObject | string {
  const options = { ...clientValues, strict }
  try {
    const body = { schemas: [patchSchema], Operations: operations }
    return applyPatch(schema, before, parsePatch(schema, body, options), options)
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400) return error.keyword ?? 'no keyword'
    throw error
  }
}

function becomes(before: JsonObject, outcome: Becomes | string): JsonObject | string {
  if (typeof outcome === 'string') return outcome
  return Object.fromEntries(
    Object.entries({ ...before, ...outcome }).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  )
}

const check = (rows: readonly Row[], schema = user, before = babs, strict = false) =>
  test.each(rows.map((row) => [`${row[0]}: ${JSON.stringify(row[1]).slice(0, 150)}`, row] as const))(
    '%s',
    (_title, [, operations, outcome]) => {
      const frozen = deepFrozen(before)
      expect(run(schema, frozen, operations, strict)).toEqual(becomes(before, outcome))
    },
  )

function deepFrozen<T extends JsonValue>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFrozen)
  return Object.freeze(value)
}

const op = (verb: string, path: string | undefined, value?: JsonValue): JsonObject => ({
  op: verb,
  ...(path === undefined ? {} : { path }),
  ...(value === undefined ? {} : { value }),
})
const add = (path: string | undefined, value?: JsonValue) => [op('add', path, value)]
const replace = (path: string | undefined, value?: JsonValue) => [op('replace', path, value)]
const remove = (path: string | undefined, value?: JsonValue) => [op('remove', path, value)]

describe("RFC 7644 3.5.2's own examples", () => {
  const tour = { displayName: 'Tour Guides' }
  check([['3.5.2.1 add a member', add('members', [babsMember]), { members: [babsMember] }]], group, tour)
  check(
    [
      ['3.5.2.2 remove a member', remove('members[value eq "2819c223"]'), { members: [james] }],
      ['3.5.2.2 remove all members', remove('members'), { members: undefined }],
      [
        '3.5.2.2 remove and add a member',
        [op('remove', 'members[value eq "2819c223"]'), op('add', 'members', [{ ...james, value: 'new' }])],
        { members: [james, { ...james, value: 'new' }] },
      ],
      ['3.5.2.3 replace all members', replace('members', [babsMember, james]), unchanged],
      ['3.5.2.3 replace all members by one', replace('members', [james]), { members: [james] }],
      ['figure 7 path "members"', remove('members'), { members: undefined }],
      [
        'figure 7 a part that members do not have',
        replace('members[value eq "2819c223"].displayName', 'x'),
        'invalidPath',
      ],
    ],
    group,
    guides,
  )
  check([
    [
      '3.5.2.1 add without a path',
      add(undefined, { emails: [{ value: 'babs@jensen.org', type: 'home' }], nickname: 'Babs' }),
      { nickName: 'Babs' },
    ],
    [
      '3.5.2.2 remove by type and value',
      remove('emails[type eq "work" and value ew "example.com"]'),
      { emails: [home] },
    ],
    [
      '3.5.2.3 replace without a path',
      replace(undefined, { emails: [work, { ...home, value: 'new@jensen.org' }], nickname: 'Babs' }),
      { emails: [work, { ...home, value: 'new@jensen.org' }], nickName: 'Babs' },
    ],
    [
      '3.5.2.3 replace the work address',
      replace('addresses[type eq "work"]', {
        ...workAddress,
        streetAddress: '911 Universal City Plaza',
        formatted: '911 Universal City Plaza\nHollywood, CA 91608 US',
      }),
      {
        addresses: [
          {
            ...workAddress,
            streetAddress: '911 Universal City Plaza',
            formatted: '911 Universal City Plaza\nHollywood, CA 91608 US',
          },
          homeAddress,
        ],
      },
    ],
    [
      '3.5.2.3 replace a street',
      replace('addresses[type eq "work"].streetAddress', '1010 Broadway Ave'),
      { addresses: [{ ...workAddress, streetAddress: '1010 Broadway Ave' }, homeAddress] },
    ],
    ['figure 7 path "name.familyName"', replace('name.familyName', 'New'), { name: { ...name, familyName: 'New' } }],
    ['figure 7 path "addresses[...]"', remove('addresses[type eq "work"]'), { addresses: [homeAddress] }],
  ])
})

describe('RFC 7644 3.5.2.1 add', () => {
  check([
    ['a single value that is not there', add('nickName', 'Babs'), { nickName: 'Babs' }],
    ['a single value replaces', add('title', 'Chief'), { title: 'Chief' }],
    ['the same value: nothing', add('title', 'Guide'), unchanged],
    ['complex: merged', add('name', { middleName: 'J' }), { name: { ...name, middleName: 'J' } }],
    ['complex: where none was', add('manager', { value: '9' }), { [enterprise]: { ...own, manager: { value: '9' } } }],
    ['a list: appended', add('emails', [{ value: 'n@x' }]), { emails: [work, home, { value: 'n@x' }] }],
    ['one object onto a list', add('emails', { value: 'n@x' }), { emails: [work, home, { value: 'n@x' }] }],
    ['one object to no list makes a list', add('ims', { value: 'b' }), { ims: [{ value: 'b' }] }],
    ['a list onto no list is not nested', add('ims', [{ value: 'b' }]), { ims: [{ value: 'b' }] }],
    ['a value that is there: nothing', add('emails', [home]), unchanged],
    ['a value that is there, in other letters', add('emails', [{ ...home, value: 'BABS@jensen.org' }]), unchanged],
    ['a value that is there, without its type', add('emails', [{ value: home.value }]), unchanged],
    [
      'another type is another value',
      add('emails', [{ value: home.value, type: 'other' }]),
      { emails: [work, home, { value: home.value, type: 'other' }] },
    ],
    [
      'other parts of an existing value',
      add('emails', [{ ...home, display: 'Babs' }]),
      { emails: [work, { ...home, display: 'Babs' }] },
    ],
    ['twice the same in one list', add('ims', [{ value: 'b' }, { value: 'b' }]), { ims: [{ value: 'b' }] }],
    ['an address that is there', add('addresses', [{ type: 'home', locality: 'Hollywood' }]), unchanged],
    [
      'a new primary takes it from the old',
      add('emails', [{ value: 'n@x', primary: true }]),
      { emails: [{ ...work, primary: false }, home, { value: 'n@x', primary: true }] },
    ],
    [
      'a value that is there becomes primary',
      add('emails', [{ ...home, primary: true }]),
      {
        emails: [
          { ...work, primary: false },
          { ...home, primary: true },
        ],
      },
    ],
    [
      'two new primaries',
      add('emails', [
        { value: 'a', primary: true },
        { value: 'b', primary: true },
      ]),
      'invalidValue',
    ],
    [
      'simple values',
      add(`${custom}:tags`, ['east']),
      { [custom]: { ...(babs[custom] as object), tags: ['North', 'quiet', 'east'] } },
    ],
    ['simple values that are there', add(`${custom}:tags`, ['NORTH']), unchanged],
    ['without a value', add('title'), 'invalidValue'],
    ['null', add('title', null), unchanged],
    ['an empty list', add('emails', []), unchanged],
    ['without a path, no object', add(undefined, 'x'), 'invalidValue'],
    ['without a path, an empty object', add(undefined, {}), unchanged],
    ['wrong type', add('title', { a: 1 }), 'invalidValue'],
    ['wrong type', add('title', ['a']), 'invalidValue'],
    ['wrong type', add('title', 5), 'invalidValue'],
    ['wrong type', add('emails', [5]), 'invalidValue'],
    ['wrong type', add('name', 'Barbara'), 'invalidValue'],
    ['unknown path', add('color', 'red'), 'invalidPath'],
    ['unknown part', add('name.color', 'red'), 'invalidPath'],
    ['part of a plain attribute', add('title.value', 'x'), 'invalidPath'],
  ])
})

describe('RFC 7644 3.5.2.2 remove', () => {
  check([
    ['without a path', remove(undefined), 'noTarget'],
    ['without a path, with a value', remove(undefined, { title: 'Guide' }), 'noTarget'],
    ['a single value', remove('title'), { title: undefined }],
    ['a single value, with a value', remove('title', 'Guide'), { title: undefined }],
    ['what is not there', remove('nickName'), unchanged],
    ['a part', remove('name.givenName'), { name: { formatted: name.formatted, familyName: 'Jensen' } }],
    ['a part that is not there', remove('name.middleName'), unchanged],
    ['a complex value', remove('name'), { name: undefined }],
    ['all values', remove('emails'), { emails: undefined }],
    ['picked values', remove('emails[type eq "work"]'), { emails: [home] }],
    ['all values by a filter: unassigned', remove('emails[value pr]'), { emails: undefined }],
    ['a filter that picks nothing', remove('emails[type eq "x"]'), unchanged],
    ['a filter on what is not there', remove('ims[type eq "x"]'), unchanged],
    [
      'a part of picked values',
      remove('emails[type eq "work"].primary'),
      { emails: [{ value: work.value, type: 'work' }, home] },
    ],
    ['the value of picked values takes them along', remove('emails[type eq "work"].value'), { emails: [home] }],
    [
      'a part of all values',
      remove('emails.type'),
      { emails: [{ value: work.value, primary: true }, { value: home.value }] },
    ],
    ['given values', remove('emails', [{ value: 'BABS@jensen.org' }]), { emails: [work] }],
    ['given values, another type', remove('emails', [{ value: home.value, type: 'work' }]), unchanged],
    ['given values by any part', remove('addresses', [{ type: 'home' }]), { addresses: [workAddress] }],
    [
      'given simple values',
      remove(`${custom}:tags`, ['north']),
      { [custom]: { ...(babs[custom] as object), tags: ['quiet'] } },
    ],
    [
      'a simple value by a filter',
      remove(`${custom}:tags[value eq "quiet"]`),
      { [custom]: { ...(babs[custom] as object), tags: ['North'] } },
    ],
    ['no given values removes none', remove('emails', []), unchanged],
    ['a value that says nothing removes none', remove('emails', [{}]), unchanged],
    ['a required attribute', remove('userName'), 'mutability'],
    ['a required attribute by its URN', remove(`${userSchema.id}:userName`), 'mutability'],
    ['a readOnly attribute', remove('id'), 'mutability'],
    ['a readOnly part', remove('meta.resourceType'), 'mutability'],
    ['an immutable attribute', remove(`${custom}:badge`), 'mutability'],
    ['an extension', remove(enterprise), { [enterprise]: undefined }],
    [
      'the last attribute of an extension takes it along',
      [op('remove', 'department'), op('remove', 'manager')],
      { [enterprise]: undefined },
    ],
    ['the core schema', remove(userSchema.id), 'mutability'],
    ['an empty filter', remove('emails[]'), 'invalidFilter'],
    ['no filter', remove('emails['), 'invalidPath'],
    ['unknown in a filter', remove('emails[color eq "x"]'), 'invalidFilter'],
  ])
})

describe('RFC 7644 3.5.2.3 replace', () => {
  check([
    ['a single value', replace('title', 'Chief'), { title: 'Chief' }],
    ['what is not there: as add', replace('nickName', 'Babs'), { nickName: 'Babs' }],
    ['complex: parts not named stay', replace('name', { familyName: 'New' }), { name: { ...name, familyName: 'New' } }],
    [
      'complex without a path: parts not named stay',
      replace(undefined, { name: { familyName: 'New' } }),
      { name: { ...name, familyName: 'New' } },
    ],
    ['a list: all values', replace('emails', [home]), { emails: [home] }],
    ['a list without a path: all values', replace(undefined, { emails: [home] }), { emails: [home] }],
    ['a list by one object', replace('emails', home), { emails: [home] }],
    ['by null', replace('title', null), { title: undefined }],
    ['by an empty list', replace('emails', []), { emails: undefined }],
    [
      'a part of picked values',
      replace('emails[type eq "home"].value', 'n@x'),
      { emails: [work, { ...home, value: 'n@x' }] },
    ],
    [
      'a part of all values',
      replace('emails.display', 'D'),
      {
        emails: [
          { ...work, display: 'D' },
          { ...home, display: 'D' },
        ],
      },
    ],
    [
      'a picked value: parts not named stay',
      replace('emails[type eq "home"]', { value: 'n@x' }),
      { emails: [work, { ...home, value: 'n@x' }] },
    ],
    [
      'a picked value by a list of one',
      replace('emails[type eq "home"]', [{ value: 'n@x' }]),
      { emails: [work, { ...home, value: 'n@x' }] },
    ],
    [
      'a picked value becomes primary',
      replace('emails[type eq "home"].primary', true),
      {
        emails: [
          { ...work, primary: false },
          { ...home, primary: true },
        ],
      },
    ],
    ['every value primary', replace('emails.primary', true), 'invalidValue'],
    [
      'a simple value by a filter',
      replace(`${custom}:tags[value eq "quiet"]`, 'loud'),
      { [custom]: { ...(babs[custom] as object), tags: ['North', 'loud'] } },
    ],
    [
      'a value like another: one remains',
      replace(`${custom}:tags[value eq "quiet"]`, 'north'),
      { [custom]: { ...(babs[custom] as object), tags: ['North'] } },
    ],
    ['no value is picked', replace('emails[type eq "other"]', { value: 'n@x' }), 'noTarget'],
    ['no value is picked, by nothing', replace('emails[type eq "other"]', {}), 'noTarget'],
    ['no value is picked, by null', replace('emails[type eq "other"]', null), 'noTarget'],
    ['a picked value by nothing', replace('emails[type eq "home"]', {}), { emails: [work] }],
    ['no part is picked, by nothing', replace('emails[type eq "other"].display', null), {}],
    ['a filter that describes none', replace('emails[type co "oth"].value', 'n@x'), 'noTarget'],
    ['a required attribute by nothing', replace('userName', ''), 'mutability'],
    ['a required attribute by null', replace('userName', null), 'mutability'],
    ['two primaries', replace('emails', [work, { ...home, primary: true }]), 'invalidValue'],
    ['a URN path', replace(enterprise, { department: 'New' }), { [enterprise]: { ...own, department: 'New' } }],
    [
      'a URN key',
      replace(undefined, { [enterprise]: { department: 'New' } }),
      { [enterprise]: { ...own, department: 'New' } },
    ],
    ['the core URN', replace(`${userSchema.id}:name.familyName`, 'New'), { name: { ...name, familyName: 'New' } }],
    ['the core URN alone', replace(userSchema.id, { title: 'Chief' }), { title: 'Chief' }],
    [
      'the sub-attribute of an extension',
      replace(`${enterprise}:manager.value`, '9'),
      { [enterprise]: { ...own, manager: { value: '9' } } },
    ],
    ['an extension by null', replace(enterprise, null), { [enterprise]: undefined }],
  ])
})

describe('RFC 7643 7: mutability', () => {
  const site = babs[custom] as JsonObject
  check([
    ['readOnly by path', replace('id', 'x'), 'mutability'],
    ['readOnly by path', add('groups', [{ value: 'g2' }]), 'mutability'],
    ['readOnly by path', replace('meta.location', 'x'), 'mutability'],
    ['readOnly by path', add('schemas', ['urn:x']), 'mutability'],
    ['readOnly part by path', replace(`${enterprise}:manager.displayName`, 'x'), 'mutability'],
    ['readOnly in a value', replace(undefined, { id: 'x', groups: [], meta: {}, title: 'Chief' }), { title: 'Chief' }],
    ['readOnly part in a value', replace('manager', { value: '26', displayName: 'x' }), unchanged],
    [
      'a service’s part goes with the value it described',
      replace('manager', { value: '9' }),
      { [enterprise]: { ...own, manager: { value: '9' } } },
    ],
    ['immutable, another value', replace(`${custom}:badge`, 'B-2'), 'mutability'],
    ['immutable, the same value', replace(`${custom}:badge`, 'B-1'), unchanged],
    [
      'immutable, taken away and put back',
      [op('remove', `${custom}:badge`), op('add', `${custom}:badge`, 'B-1')],
      unchanged,
    ],
    ['immutable list', add(`${custom}:seals`, ['two']), 'mutability'],
    ['immutable list, the same', add(`${custom}:seals`, ['one']), unchanged],
    ['immutable part, another value', replace(`${custom}:desk.value`, 'd2'), 'mutability'],
    ['immutable part in a value', replace(`${custom}:desk`, { value: 'd2' }), 'mutability'],
    [
      'immutable part, the others change',
      replace(`${custom}:desk`, { value: 'd1', note: 'door' }),
      { [custom]: { ...site, desk: { value: 'd1', note: 'door' } } },
    ],
    ['writeOnly', replace('password', 'secret'), { password: 'secret' }],
    ['writeOnly without a path', replace(undefined, { password: 'secret' }), { password: 'secret' }],
    ['writeOnly, nothing to take away', remove('password'), unchanged],
    ['required part of a new value', add(`${custom}:keys`, [{ value: 'k' }]), 'invalidValue'],
    [
      'required part of a new value, by a later operation',
      [op('add', `${custom}:keys`, [{ value: 'k' }]), op('add', `${custom}:keys[value eq "k"].door`, 'main')],
      { [custom]: { ...site, keys: [{ value: 'k', door: 'main' }] } },
    ],
    [
      'required part cannot be removed',
      [op('add', `${custom}:keys`, [{ value: 'k', door: 'main' }]), op('remove', `${custom}:keys[value eq "k"].door`)],
      'mutability',
    ],
  ])
  check(
    [['immutable without a value takes one', add(`${custom}:badge`, 'B-2'), { [custom]: { badge: 'B-2' } }]],
    user,
    { userName: 'b' },
  )
  check(
    [
      ['a member’s value', replace('members[value eq "2819c223"].value', 'x'), 'mutability'],
      ['a member’s value cannot be removed', remove('members[value eq "2819c223"].value'), 'mutability'],
      [
        'a member that is there, with another display',
        add('members', [{ value: '2819c223', display: 'B' }]),
        unchanged,
      ],
      ['a member that is there, by value alone', add('members', [{ value: '2819c223' }]), unchanged],
    ],
    group,
    guides,
  )
})

describe('scim.md 3 and 4: client variants', () => {
  const nothing: JsonObject = { userName: 'b' }
  check([
    ['Entra 3', [op('Replace', 'active', 'False')], { active: false }],
    ['Entra 3, flag', replace('active', false), { active: false }],
    ['Entra 3, in a value', [op('Replace', undefined, { active: 'False' })], { active: false }],
    ['a text stays a text', replace('title', 'False'), { title: 'False' }],
    ['neither true nor false', replace('active', 'no'), 'invalidValue'],
    [
      'Entra 7',
      replace(undefined, { displayName: 'B', 'name.givenName': 'K', [`${enterprise}:employeeNumber`]: '1' }),
      { displayName: 'B', name: { ...name, givenName: 'K' }, [enterprise]: { ...own, employeeNumber: '1' } },
    ],
    [
      'Entra 7, a filter key',
      replace(undefined, { 'emails[type eq "work"].value': 'n@x' }),
      { emails: [{ ...work, value: 'n@x' }, home] },
    ],
    [
      'Entra 8, a text',
      [op('Add', `${enterprise}:manager`, '9')],
      { [enterprise]: { ...own, manager: { value: '9' } } },
    ],
    [
      'Entra 8, a list of one',
      [op('Add', 'manager', [{ $ref: '../Users/9', value: '9' }])],
      { [enterprise]: { ...own, manager: { value: '9', $ref: '../Users/9' } } },
    ],
    ['Entra 8, Replace', [op('Replace', 'manager', '9')], { [enterprise]: { ...own, manager: { value: '9' } } }],
    ['Entra 8, Remove', [op('Remove', `${enterprise}:manager`)], { [enterprise]: { department: 'Tours' } }],
    ['Entra 8, an empty text', [op('Replace', 'manager', '')], { [enterprise]: { department: 'Tours' } }],
    [
      'Entra 8, a mistyped URN',
      replace('urn:ietf:params:scim:schemas:extension:enterprise:2.0User:department', 'N'),
      { [enterprise]: { ...own, department: 'N' } },
    ],
    [
      'Entra 8, a mistyped URN as key',
      replace(undefined, { 'urn:ietf:params:scim:schemas:extension:enterprise:2.0User': { department: 'N' } }),
      { [enterprise]: { ...own, department: 'N' } },
    ],
    [
      'Entra 9',
      [op('Add', 'roles', [{ value: '{"id":"1","value":"Admin","displayName":"Admin"}' }])],
      { roles: [{ value: 'urn:r:a.b]c' }, { value: 'Admin' }] },
    ],
    [
      'Entra 9, beside other parts',
      replace('roles', [{ primary: 'True', type: 'W', value: '{"value":"Admin","display":"A"}' }]),
      { roles: [{ primary: true, type: 'W', value: 'Admin', display: 'A' }] },
    ],
    ['Entra 9, the whole element', replace('roles', ['{"value":"Admin"}']), { roles: [{ value: 'Admin' }] }],
    [
      'Entra 9, JSON of something else stays a text',
      replace('roles', [{ value: '{"color":"red"}' }]),
      { roles: [{ value: '{"color":"red"}' }] },
    ],
    [
      'Entra 9, not quite JSON stays a text',
      replace('roles', [{ value: '{value:1}' }]),
      { roles: [{ value: '{value:1}' }] },
    ],
    ['Okta, readOnly id in the value', replace(undefined, { id: 'g1', displayName: 'N' }), { displayName: 'N' }],
    ['Okta', replace(undefined, { active: false }), { active: false }],
    [
      'names and URNs in any case',
      [op('REPLACE', 'NAME.FAMILYNAME', 'N'), op('add', `${enterprise.toUpperCase()}:COSTCENTER`, 'C')],
      { name: { ...name, familyName: 'N' }, [enterprise]: { ...own, costCenter: 'C' } },
    ],
    ['members of the message in any case', [{ OP: 'Replace', Path: 'title', VALUE: 'N' }], { title: 'N' }],
    ['an empty path', [{ op: 'replace', path: '', value: { title: 'N' } }], { title: 'N' }],
    ['a value that is JSON in a text', replace(undefined, '{"title":"N"}'), { title: 'N' }],
    [
      'unknown keys in a value',
      add(undefined, { color: 'red', 'a b': 1, '': 2, '"': 3, [`${enterprise}x`]: {}, title: 'N' }),
      { title: 'N' },
    ],
    [
      'explicit nulls',
      replace(undefined, { title: null, addresses: null, nickName: null }),
      { title: undefined, addresses: undefined },
    ],
    ['$ref: null', add('manager', { $ref: null, value: '9' }), { [enterprise]: { ...own, manager: { value: '9' } } }],
    ['extension without its URN', replace('department', 'N'), { [enterprise]: { ...own, department: 'N' } }],
  ])
  check(
    [
      ['Entra 4', [op('Add', 'emails[type eq "work"].value', 'a@b')], { emails: [{ type: 'work', value: 'a@b' }] }],
      [
        'Entra 4, Replace',
        [op('Replace', 'emails[type eq "work"].value', 'a@b')],
        { emails: [{ type: 'work', value: 'a@b' }] },
      ],
      [
        'Entra 4, one new element by several operations',
        [
          op('Add', 'addresses[type eq "work"].locality', 'Oslo'),
          op('Add', 'addresses[type eq "work"].country', 'NO'),
          op('Add', 'addresses[type eq "home"].country', 'SE'),
        ],
        {
          addresses: [
            { type: 'work', locality: 'Oslo', country: 'NO' },
            { type: 'home', country: 'SE' },
          ],
        },
      ],
      [
        'Entra 4, two terms',
        add('emails[type eq "work" and primary eq true].value', 'a@b'),
        { emails: [{ type: 'work', primary: true, value: 'a@b' }] },
      ],
      [
        'Entra 4, nested terms',
        add('emails[(type eq "work" and primary eq true) and display eq "D"].value', 'a'),
        { emails: [{ type: 'work', primary: true, display: 'D', value: 'a' }] },
      ],
      [
        'Entra 4, an object',
        add('emails[type eq "work"]', { value: 'a@b' }),
        { emails: [{ type: 'work', value: 'a@b' }] },
      ],
      [
        'Entra 4, without a path',
        add(undefined, { 'emails[type eq "work"].value': 'a@b' }),
        { emails: [{ type: 'work', value: 'a@b' }] },
      ],
      ['an element without any part', add('emails[type eq "other"]', {}), 'invalidValue'],
      ['the same where one is picked', add('emails[type eq "work"]', {}), 'invalidValue'],
      ['Entra 4, either of two', add('emails[type eq "a" or type eq "b"].value', 'x'), 'noTarget'],
      ['Entra 4, a contradiction', add('emails[type eq "a" and type eq "b"].value', 'x'), 'noTarget'],
      [
        'Entra 9, primary in quotes',
        add('roles[primary eq "True"].value', 'Admin'),
        { roles: [{ primary: true, value: 'Admin' }] },
      ],
      [
        'Entra 9, JSON in the value',
        add('roles[primary eq "True"].value', '{"value":"Admin","display":"A"}'),
        { roles: [{ primary: true, value: 'Admin', display: 'A' }] },
      ],
      ['a part of no list', add('emails.value', 'a@b'), { emails: [{ value: 'a@b' }] }],
    ],
    user,
    nothing,
  )
  check(
    [
      ['Entra 5', [op('Remove', 'members', [{ $ref: null, value: '2819c223' }])], { members: [james] }],
      ['Entra 5, flag', remove('members[value eq "2819c223"]'), { members: [james] }],
      ['Entra 5, not there', [op('Remove', 'members', [{ value: 'other' }])], unchanged],
      ['Entra 5, one object', [op('Remove', 'members', { value: '2819c223' })], { members: [james] }],
      ['Entra 5, a text', [op('Remove', 'members', '2819c223')], { members: [james] }],
      [
        'OneLogin, with a stale display',
        remove('members', [{ value: '2819c223', display: 'Old', type: 'User' }]),
        { members: [james] },
      ],
      [
        'Entra 6',
        [
          op('Add', 'members', [
            { $ref: null, value: 'u3' },
            { $ref: null, value: 'u4' },
          ]),
        ],
        { members: [babsMember, james, { value: 'u3' }, { value: 'u4' }] },
      ],
      [
        'Okta, membership',
        [op('remove', 'members[value eq "2819c223"]'), op('add', 'members', [{ value: 'u2', display: 'x' }])],
        { members: [james, { value: 'u2', display: 'x' }] },
      ],
      ['Okta, empty group push', replace('members', []), { members: undefined }],
      ['Okta, rename with id', replace(undefined, { id: 'acbf3ae7', displayName: 'N' }), { displayName: 'N' }],
      ['or in a member filter', remove('members[value eq "2819c223" or value eq "08e1d05d"]'), { members: undefined }],
      ['a group’s name', remove('displayName'), 'mutability'],
    ],
    group,
    guides,
  )
})

describe('scim.md 6: what public engines get wrong', () => {
  check([
    ['Remove without a path is an answer', [op('Remove', undefined)], 'noTarget'],
    ['all or none', [op('replace', 'title', 'N'), op('replace', 'id', 'x')], 'mutability'],
    [
      'a value with . ] and : in a filter',
      replace('roles[value eq "urn:r:a.b]c"].display', 'D'),
      { roles: [{ value: 'urn:r:a.b]c', display: 'D' }] },
    ],
    ['a bad filter', add('emails[type eq]', { value: 'x' }), 'invalidFilter'],
    ['a bad filter', add('emails[type]', { value: 'x' }), 'invalidFilter'],
    ['a path behind a path', add('emails[type eq "work"].value.x', 'x'), 'invalidPath'],
    ['a filter in the middle', add('name[familyName eq "x"].givenName', 'x'), 'invalidPath'],
    ['a path of two words', add('name familyName', 'x'), 'invalidPath'],
    ['a path that is a number', [{ op: 'add', path: 5, value: 'x' }], 'invalidPath'],
    ['unknown op', [op('move', 'title', 'x')], 'invalidSyntax'],
    ['no op', [{ path: 'title', value: 'x' }], 'invalidSyntax'],
    ['an operation that is none', ['x'], 'invalidSyntax'],
    ['no operations', [], 'invalidSyntax'],
    ['operations that are not a list', {}, 'invalidSyntax'],
    ['__proto__ path', add('__proto__.x', 1), 'invalidPath'],
    ['constructor path', add('constructor.prototype.x', 1), 'invalidPath'],
    ['prototype path', replace('prototype', 1), 'invalidPath'],
    [
      '__proto__ key',
      add(undefined, JSON.parse('{"__proto__":{"x":1},"__proto__.x":1,"constructor":{"prototype":{"x":1}}}')),
      unchanged,
    ],
    [
      '__proto__ in an element',
      add('ims', [JSON.parse('{"value":"b","__proto__":{"x":1},"constructor":1}')]),
      { ims: [{ value: 'b' }] },
    ],
    [
      '__proto__ in JSON in a text',
      add('ims', [{ value: '{"value":"b","__proto__":{"x":1}}' }]),
      { ims: [{ value: 'b' }] },
    ],
    ['__proto__ in a filter', add('emails[__proto__ eq "x"].value', 'x'), 'invalidFilter'],
    ['half a character', add('title', '\ud800'), 'invalidValue'],
    ['half a character in a list', add('emails', [{ value: 'a\udfff' }]), 'invalidValue'],
    ['half a character in a filter', remove('emails[value eq "\ud800"]'), 'invalidFilter'],
    ['NUL', add('title', 'a\0'), 'invalidValue'],
  ])

  test('no prototype was changed', () => expect(({} as Record<string, unknown>)['x']).toBeUndefined())

  test('of a repeated name in a JSON object the last value counts, as in JSON.parse', () => {
    const twice = JSON.parse('{"title":"first","title":"last"}')
    expect(run(user, babs, add(undefined, twice))).toMatchObject({ title: 'last' })
  })

  test('the same for names that differ only in letter case', () => {
    expect(run(user, babs, add(undefined, { title: 'first', TITLE: 'last' }))).toMatchObject({ title: 'last' })
  })
})

describe('strict mode', () => {
  check(
    [
      [
        'the RFC’s own forms',
        add(undefined, { nickName: 'B', [enterprise]: { department: 'N' } }),
        { nickName: 'B', [enterprise]: { ...own, department: 'N' } },
      ],
      ['add by a filter creates', add('ims[type eq "x"].value', 'b'), { ims: [{ type: 'x', value: 'b' }] }],
      ['readOnly in a value is ignored', replace(undefined, { id: 'x', title: 'N' }), { title: 'N' }],
      ['string boolean', replace('active', 'False'), 'invalidValue'],
      ['unknown key', add(undefined, { color: 'red' }), 'invalidPath'],
      ['unknown key of an extension', add(undefined, { [enterprise]: { color: 'red' } }), 'invalidPath'],
      ['unknown part', add('emails', [{ value: 'x', color: 'red' }]), 'invalidSyntax'],
      ['a text for a complex value', replace(`${enterprise}:manager`, '9'), 'invalidValue'],
      ['a list for a single value', replace(`${enterprise}:manager`, [{ value: '9' }]), 'invalidValue'],
      [
        'JSON in a text stays a text',
        replace('roles', [{ value: '{"value":"A"}' }]),
        { roles: [{ value: '{"value":"A"}' }] },
      ],
      ['extension without its URN', replace('department', 'N'), 'invalidPath'],
      [
        'mistyped URN',
        replace('urn:ietf:params:scim:schemas:extension:enterprise:2.0User:department', 'N'),
        'invalidPath',
      ],
      ['replace by a filter that picks nothing', replace('ims[type eq "x"].value', 'b'), 'noTarget'],
      ['replace by nothing what a filter does not pick', replace('addresses[type eq "none"]', {}), 'noTarget'],
      ['the same of a part', replace('addresses[type eq "none"].locality', null), 'noTarget'],
      ['add of nothing to what a filter picks', add('addresses[type eq "work"]', {}), 'invalidValue'],
      ['a bare word in a filter', remove('emails[type eq work]'), 'invalidFilter'],
      ['an empty path', [{ op: 'replace', path: '', value: { title: 'N' } }], 'invalidPath'],
      ['base64 that is none', add('x509Certificates', [{ value: 'not base64!' }]), 'invalidValue'],
      ['a number in a text', replace(`${custom}:floor`, '7'), 'invalidValue'],
    ],
    user,
    babs,
    true,
  )

  test('a message must name its schema', () => {
    const strict = { ...clientValues, strict: true }
    const Operations = [{ op: 'remove', path: 'title' }]
    for (const schemas of [undefined, null, 'x', [], ['urn:other']]) {
      const body = { Operations, ...(schemas === undefined ? {} : { schemas }) }
      expect(() => parsePatch(user, body, strict)).toThrow(expect.objectContaining({ keyword: 'invalidSyntax' }))
    }
    expect(parsePatch(user, { Operations, schemas: [patchSchema.toUpperCase()] }, strict)).toHaveLength(1)
    expect(parsePatch(user, { Operations })).toHaveLength(1)
  })
})
