import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { attribute } from '#protocols/scim/schema/schema.ts'
import { enterpriseUserSchema, groupSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'

/** Each row: its source, the filter, and its result for the resource. */
type Row = readonly [source: string, filter: string, outcome: boolean | 'refused']

const enterprise = enterpriseUserSchema.id
const custom = 'urn:example:params:scim:schemas:extension:site:2.0:User'
const user = new ResourceSchema(userSchema, [
  enterpriseUserSchema,
  {
    id: custom,
    name: 'Site',
    description: '',
    attributes: [
      attribute('floor', '', { type: 'integer' }),
      attribute('rating', '', { type: 'decimal' }),
      attribute('tags', '', { multiValued: true }),
      attribute('since', '', { type: 'dateTime' }),
      attribute('codes', '', { type: 'integer', multiValued: true }),
    ],
  },
])
const group = new ResourceSchema(groupSchema)

const babs: JsonObject = {
  schemas: [userSchema.id, enterprise],
  id: '2819c223-7f76-453a-919d-413861904646',
  externalId: 'Ext-701984',
  userName: 'bjensen',
  name: { formatted: 'Ms. Barbara J Jensen', familyName: "O'Malley", givenName: 'Barbara' },
  displayName: 'Research and Development',
  nickName: '',
  title: 'Tour "Guide" \\ one',
  userType: 'Employee',
  active: true,
  emails: [
    { value: 'bjensen@example.com', type: 'work', primary: true },
    { value: 'babs@jensen.org', type: 'home', primary: false },
  ],
  ims: [{ value: 'someaimhandle', type: 'aim' }],
  addresses: [{ type: 'work', locality: 'Hollywood', country: 'US' }],
  roles: [{ value: 'urn:r:a.b]c' }],
  x509Certificates: [{ value: 'MIIDQzCC' }],
  meta: {
    resourceType: 'User',
    created: '2010-01-23T04:56:22Z',
    lastModified: '2011-05-13T04:42:34Z',
    version: 'W/"a330bc54f0671c9"',
    location: 'https://example.com/v2/Users/2819c223',
  },
  [enterprise]: { employeeNumber: '701984', department: 'Tours', manager: { value: '26118915', displayName: 'John' } },
  [custom]: { floor: 7, rating: 4.5, tags: ['North', 'quiet'], since: '2020-02-29T10:00:00+02:00', codes: [1, 2] },
}

const tourGuides: JsonObject = {
  schemas: [groupSchema.id],
  id: 'e9e30dba',
  displayName: 'Tour Guides',
  members: [
    { value: '2819c223', display: 'Babs Jensen', type: 'User' },
    { value: '902c246b', display: 'Mandy Pepperidge', type: 'User' },
  ],
  meta: { resourceType: 'Group' },
}

function outcome(text: string, schema: ResourceSchema, resource: JsonObject, strict = false): boolean | string {
  try {
    return evaluateFilter(parseFilter(text, schema, { strict }), resource)
  } catch (error) {
    if (error instanceof GatewayError && error.status === 400 && error.keyword === 'invalidFilter') return 'refused'
    throw error
  }
}

const check = (rows: readonly Row[]) =>
  test.each(rows)('%s: %s', (_source, text, expected) => expect(outcome(text, user, babs)).toBe(expected))

describe('RFC 7644', () => {
  check([
    ['figure 2', 'userName Eq "john"', false],
    ['figure 2', 'Username eq "john"', false],
    ['figure 2', 'userName eq "bjensen"', true],
    ['figure 2', 'name.familyName co "O\'Malley"', true],
    ['figure 2', 'userName sw "J"', false],
    ['figure 2', 'urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J"', false],
    ['figure 2, matching', 'urn:ietf:params:scim:schemas:core:2.0:User:userName sw "B"', true],
    ['figure 2', 'title pr', true],
    ['figure 2', 'meta.lastModified gt "2011-05-13T04:42:34Z"', false],
    ['figure 2', 'meta.lastModified ge "2011-05-13T04:42:34Z"', true],
    ['figure 2', 'meta.lastModified lt "2011-05-13T04:42:34Z"', false],
    ['figure 2', 'meta.lastModified le "2011-05-13T04:42:34Z"', true],
    ['figure 2', 'title pr and userType eq "Employee"', true],
    ['figure 2', 'title pr or userType eq "Intern"', true],
    ['figure 2', 'schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"', true],
    ['figure 2', 'userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")', true],
    ['figure 2', 'userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")', false],
    ['figure 2', 'userType eq "Employee" and (emails.type eq "work")', true],
    ['figure 2', 'userType eq "Employee" and emails[type eq "work" and value co "@example.com"]', true],
    [
      'figure 2',
      'emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]',
      true,
    ],
    ['3.4.2.1', '(meta.resourceType eq User) or (meta.resourceType eq Group)', true],
    ['3.4.3', 'displayName sw "smith"', false],
    ['table 3 eq', 'userName eq "bjense"', false],
    ['table 3 ne', 'userName ne "bjensen"', false],
    ['table 3 ne', 'userName ne "other"', true],
    ['table 3 co', 'userName co "jens"', true],
    ['table 3 sw', 'userName sw "bj"', true],
    ['table 3 sw', 'userName sw "jensen"', false],
    ['table 3 ew', 'userName ew "sen"', true],
    ['table 3 ew', 'userName ew "jen"', false],
    ['table 3 pr', 'locale pr', false],
    ['table 3 pr, empty text', 'nickName pr', false],
    ['table 3 pr, complex', 'name pr', true],
    ['table 3 pr, multi-valued', 'emails pr', true],
    ['table 3 pr, multi-valued without values', 'photos pr', false],
    ['table 3 pr, sub-attribute', 'emails.type pr', true],
    ['table 3 pr, sub-attribute of none', 'emails.display pr', false],
    ['table 3 gt, text', 'userName gt "a"', true],
    ['table 3 lt, text', 'userName lt "C"', true],
    ['table 3 gt, integer', `${custom}:floor gt 6`, true],
    ['table 3 ge, integer', `${custom}:floor ge 8`, false],
    ['table 3 lt, decimal', `${custom}:rating lt 4.75`, true],
    ['table 3 le, decimal with exponent', `${custom}:rating le 4.5e0`, true],
    ['table 3 eq, one of several numbers', `${custom}:codes eq 2`, true],
    ['table 3 gt, boolean', 'active gt true', 'refused'],
    ['table 3 le, boolean', 'active le false', 'refused'],
    ['table 3 gt, binary', 'x509Certificates.value gt "a"', 'refused'],
    ['table 3 co, boolean', 'active co "ru"', 'refused'],
    ['table 3 co, number', `${custom}:floor co "7"`, 'refused'],
    ['table 3 sw, dateTime', 'meta.created sw "2010"', 'refused'],
    ['table 4 and before or', 'userName eq "x" and title pr or active eq true', true],
    ['table 4 and before or', 'active eq true or title pr and userName eq "x"', true],
    ['table 5 grouping', '(active eq true or title pr) and userName eq "x"', false],
    ['table 4 not', 'not (userName eq "x")', true],
    ['table 4 not, no blank', 'not(userName eq "bjensen")', false],
    ['table 4 not before and', 'not (userName eq "x") and active eq true', true],
    ['table 4 not of not', 'not (not (userName eq "bjensen"))', true],
    ['table 4 operators in any case', 'userName EQ "bjensen" AND NOT (active eq false) OR title PR', true],
    ['table 5 value filter with or', 'emails[type eq "other" or value ew ".org"]', true],
    ['table 5 value filter with not', 'emails[not (type eq "work") and not (type eq "home")]', false],
    ['table 5 value filter with grouping', 'emails[(type eq "work" or type eq "home") and primary eq true]', true],
    ['3.10 sub-attribute with URN', 'urn:ietf:params:scim:schemas:core:2.0:User:name.givenName eq "barbara"', true],
    ['3.10 URN in another case', 'URN:IETF:params:SCIM:schemas:core:2.0:user:USERNAME eq "bjensen"', true],
    ['3.10 extension', `${enterprise}:department eq "tours"`, true],
    ['3.10 extension, sub-attribute', `${enterprise}:manager.displayName sw "jo"`, true],
    ['3.10 extension, complex', `${enterprise}:manager pr`, true],
    ['3.10 extension, value filter', `${enterprise}:manager[value eq "26118915"]`, true],
    ['3.10 unknown URN', 'urn:example:other:userName eq "bjensen"', 'refused'],
  ])
})

describe('scim.md 6: what public engines get wrong', () => {
  check([
    ['across elements', 'emails[type eq "home" and value co "example.com"]', false],
    ['across elements, not', 'emails[type eq "work" and not (value co "example.com")]', false],
    ['default sub-attribute eq', 'emails eq "babs@jensen.org"', true],
    ['default sub-attribute co', 'emails co "jensen.org"', true],
    ['default sub-attribute, single', 'manager eq "26118915"', true],
    ['simple multi-valued', `schemas eq "${userSchema.id}"`, true],
    ['simple multi-valued of an extension', `${custom}:tags eq "north"`, true],
    ['simple multi-valued, value filter', `${custom}:tags[value sw "qu"]`, true],
    ['core URN', `${userSchema.id}:active eq true`, true],
    ['pr of null, "" and []', 'nickName pr or photos pr or locale pr', false],
    ['eq null of the absent', 'locale eq null', true],
    ['eq null of the present', 'title eq null', false],
    ['eq null of an empty list', 'photos eq null', true],
    ['ne null', 'title ne null', true],
    ['ne null of the absent', 'locale ne null', false],
    ['gt null', 'title gt null', 'refused'],
    ['ne of the absent', 'locale ne "x"', true],
    ['eq of the absent', 'locale eq "x"', false],
    ['not eq of the absent', 'not (locale eq "x")', true],
    ['dateTime with an offset', 'meta.lastModified eq "2011-05-13T06:42:34+02:00"', true],
    ['dateTime with an offset, order', 'meta.lastModified lt "2011-05-13T03:42:35-01:00"', true],
    ['dateTime with a fraction', 'meta.lastModified lt "2011-05-13T04:42:34.001Z"', true],
    ['dateTime of an extension by instant', `${custom}:since eq "2020-02-29T08:00:00Z"`, true],
    ['no dateTime', 'meta.created gt "yesterday"', 'refused'],
    ['no day of the calendar', 'meta.created gt "2011-02-30T00:00:00Z"', 'refused'],
    ['JSON escape \\\\ and \\"', 'title eq "tour \\"guide\\" \\\\ one"', true],
    ['JSON escape \\u0065', 'userName eq "bj\\u0065nsen"', true],
    ['escaped quote does not end the text', 'userName eq "a\\" or userName pr or title eq \\"b"', false],
    ['not without parentheses', 'not userName eq "x"', 'refused'],
    ['caseExact externalId', 'externalId eq "ext-701984"', false],
    ['caseExact externalId', 'externalId eq "Ext-701984"', true],
    ['caseExact id', 'id eq "2819C223-7f76-453a-919d-413861904646"', false],
    ['caseExact binary', 'x509Certificates.value eq "miidqzcc"', false],
    ['not caseExact userName', 'userName eq "BJENSEN"', true],
    ['and inside a text', 'displayName eq "Research and Development"', true],
    ['and inside a text, with another', 'displayName eq "research and development" and active eq true', true],
    ['or inside a text', 'title eq "a or b"', false],
    ['brackets inside a text', 'roles[value eq "urn:r:a.b]c"]', true],
    ['parentheses inside a text', 'title ne "a (b"', true],
    ['not inside a text', 'title ne "not (userName pr)"', true],
    ['not (A and B)', 'not (userName eq "bjensen" and active eq false)', true],
    ['not (A or B)', 'not (userName eq "x" or active eq false)', true],
    ['not (A or B)', 'not (userName eq "x" or active eq true)', false],
    ['no value', 'userName eq', 'refused'],
    ['trailing and', 'userName eq "x" and', 'refused'],
    ['leading or', 'or userName eq "x"', 'refused'],
    ['two conditions, no operator', 'userName pr title pr', 'refused'],
    ['operator missing', 'userName "x"', 'refused'],
    ['unknown operator', 'userName like "x"', 'refused'],
    ['pr with a value', 'userName pr "x"', 'refused'],
    ['nothing', '', 'refused'],
    ['blanks', '   ', 'refused'],
    ['empty group', '()', 'refused'],
    ['empty value filter', 'emails[]', 'refused'],
    ['unclosed group', '(userName pr', 'refused'],
    ['unclosed value filter', 'emails[type pr', 'refused'],
    ['unclosed text', 'userName eq "x', 'refused'],
    ['bad escape', 'userName eq "\\x41"', 'refused'],
    ['single quotes', "userName eq 'bjensen'", 'refused'],
    ['single quotes around several words', "displayName eq 'Tour Guides'", 'refused'],
    ['one single quote', "userName eq 'bjensen", 'refused'],
    ['single quotes in a value filter', "emails[type eq 'work']", 'refused'],
    ['an apostrophe inside a word', "name.familyName eq O'Malley", true],
    ['typographic quotes', 'userName eq “bjensen”', 'refused'],
    ['a wildcard', 'userName eq bjen*', 'refused'],
    ['unknown attribute', 'color eq "red"', 'refused'],
    ['unknown sub-attribute', 'emails.color eq "red"', 'refused'],
    ['unknown inside brackets', 'emails[color eq "red"]', 'refused'],
    ['value filter of a plain attribute', 'userName[value eq "x"]', 'refused'],
    ['value filter in a value filter', 'emails[type[value eq "x"]]', 'refused'],
    ['complex without value', 'name eq "x"', 'refused'],
    ['number in place of a boolean', 'active eq 1', 'refused'],
    ['text in place of a number', `${custom}:floor eq "seven"`, 'refused'],
    ['password', 'password eq "x"', 'refused'],
    ['password pr', 'password pr', 'refused'],
    ['a name of JavaScript', '__proto__ pr', 'refused'],
    ['a name of JavaScript', 'constructor.prototype pr', 'refused'],
    ['a name of JavaScript', 'emails.__proto__ pr', 'refused'],
    ['half a character', 'userName eq "\\ud800"', 'refused'],
    ['NUL', 'userName eq "\\u0000"', 'refused'],
    ['active eq True is not inverted', 'active eq True', true],
    ['active eq False', 'active eq False', false],
    ['attribute name in any case', 'EMAILS[TYPE eq "work"].VALUE eq "bjensen@example.com"', true],
  ])
})

describe('scim.md 3: client variants', () => {
  check([
    ['Entra 1', 'userName eq "3d5ebd41-4b0c-4c3a-9e3b-3c7ee2b3f6ac"', false],
    ['Entra 1', 'emails[type eq "work"].value eq "BJensen@example.com"', true],
    ['Entra 1, the other element', 'emails[type eq "work"].value eq "babs@jensen.org"', false],
    ['Entra 1, joined', 'emails[type eq "work"].value eq "bjensen@example.com" and active eq true', true],
    ['Entra 1, without quotes', 'externalId eq jyoung', false],
    ['Entra 1, without quotes', 'userName eq bjensen', true],
    ['Entra 1, without quotes in a group', '(userName eq bjensen)', true],
    ['Entra 1, a number without quotes', 'employeeNumber eq 701984', true],
    ['Entra 2', 'id eq "2819c223-7f76-453a-919d-413861904646" and manager eq "26118915"', true],
    ['Entra 9', 'emails[primary eq "True"].value eq "bjensen@example.com"', true],
    ['Entra, mistyped URN', 'urn:ietf:params:scim:schemas:extension:enterprise:2.0User:department eq "Tours"', true],
    ['a number in quotes', `${custom}:floor eq "7"`, true],
    ['a date without quotes', 'meta.lastModified ge 2011-05-13T04:42:34Z', true],
    ['extension without its URN', 'department eq "Tours"', true],
    ['keyword for a value', 'userName eq and', 'refused'],
    ['two words for a value', 'displayName eq Tour Guides', 'refused'],
  ])

  test.each<[string, boolean | 'refused']>([
    ['displayName eq "tour guides"', true],
    ['id eq "e9e30dba" and members eq "902c246b"', true],
    ['members.value eq "902C246B"', false],
    ['members[value eq "902c246b" and display eq "Babs Jensen"]', false],
    ['members[type eq "user"].value eq "902c246b"', true],
    ['userName eq "x"', 'refused'],
  ])('of groups: %s', (text, expected) => expect(outcome(text, group, tourGuides)).toBe(expected))
})

describe('strict mode', () => {
  test.each<[string, boolean | 'refused']>([
    ['userName eq "bjensen"', true],
    ['active eq true', true],
    [`${enterprise}:department eq "Tours"`, true],
    ['meta.lastModified ge "2011-05-13T04:42:34Z"', true],
    ['userName eq bjensen', 'refused'],
    ['active eq "true"', 'refused'],
    ['active eq True', 'refused'],
    ['locale eq NULL', 'refused'],
    ['employeeNumber eq "701984"', 'refused'],
    ['employeeNumber eq 701984', 'refused'],
    [`${custom}:floor eq "7"`, 'refused'],
    ['urn:ietf:params:scim:schemas:extension:enterprise:2.0User:department eq "Tours"', 'refused'],
  ])('%s', (text, expected) => expect(outcome(text, user, babs, true)).toBe(expected))
})

test('a complex value whose parts are all empty is not present', () => {
  const filter = parseFilter('name pr', user)
  expect(evaluateFilter(filter, { name: { givenName: '' } })).toBe(false)
  expect(evaluateFilter(filter, { name: { givenName: '', familyName: 'J' } })).toBe(true)
  expect(evaluateFilter(parseFilter('emails pr', user), { emails: [{ value: '' }] })).toBe(false)
})
