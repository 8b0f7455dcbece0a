import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { maxFilterDepth, parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { enterpriseUserSchema, userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'

const schema = new ResourceSchema(userSchema, [enterpriseUserSchema])
const enterprise = enterpriseUserSchema.id

const user: JsonObject = {
  schemas: [userSchema.id, enterprise],
  id: 'u1',
  externalId: 'Ext-1',
  userName: 'BJensen',
  name: { familyName: "O'Malley", givenName: 'Barbara' },
  title: 'Tour Guide',
  displayName: 'Research and Development',
  active: true,
  emails: [
    { value: 'bjensen@example.com', type: 'work', primary: true },
    { value: 'babs@jensen.org', type: 'home' },
  ],
  meta: { lastModified: '2011-05-13T04:42:34Z', resourceType: 'User' },
  [enterprise]: { employeeNumber: '701984', manager: { value: '26', displayName: 'John' } },
}

const matches = (text: string, resource: JsonObject = user): boolean =>
  evaluateFilter(parseFilter(text, schema), resource)

function refusal(text: string): GatewayError {
  try {
    parseFilter(text, schema)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error(`accepted: ${text}`)
}

describe('RFC 7644 3.4.2.2, figure 2', () => {
  test.each([
    ['userName eq "bjensen"', true],
    ['name.familyName co "O\'Malley"', true],
    ['userName sw "J"', false],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "b"', true],
    ['title pr', true],
    ['meta.lastModified gt "2011-05-13T04:42:34Z"', false],
    ['meta.lastModified ge "2011-05-13T04:42:34Z"', true],
    ['meta.lastModified lt "2011-05-13T04:42:35Z"', true],
    ['meta.lastModified le "2011-05-13T04:42:34Z"', true],
    ['title pr and userType eq "Employee"', false],
    ['title pr or userType eq "Intern"', true],
    [`schemas eq "${enterprise}"`, true],
    ['userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")', false],
    ['userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")', false],
    ['userType eq "Employee" and (emails.type eq "work")', false],
    ['emails[type eq "work" and value co "@example.com"]', true],
    ['emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]', true],
  ])('%s is %s', (text, expected) => expect(matches(text)).toBe(expected))
})

describe('semantics', () => {
  test.each([
    ['a value filter is about one element', 'emails[type eq "home" and value co "example.com"]', false],
    ['and so is its negation inside', 'emails[not (type eq "work")]', true],
    ["Entra's form", 'emails[type eq "work"].value eq "BJENSEN@example.com"', true],
    ["Entra's form with another element's value", 'emails[type eq "work"].value eq "babs@jensen.org"', false],
    ["Entra's reference probe", 'id eq "u1" and manager eq "26"', true],
    ['caseExact', 'externalId eq "ext-1"', false],
    ['not caseExact, any case of name and operator', 'USERNAME EQ "bjENSEN"', true],
    ['and binds closer than or', 'userName eq "x" and title eq "x" or active eq true', true],
    ['grouping', 'userName eq "x" and (title eq "x" or active eq true)', false],
    ['a keyword inside a value', 'displayName eq "Research and Development"', true],
    ['JSON escapes', 'userName eq "\\u0062jensen"', true],
    ['an escaped quote is part of the value', 'userName eq "a\\" or userName pr or title eq \\"b"', false],
    ['boolean in quotes, as Entra sends it', 'active eq "True"', true],
    ['a boolean in title case', 'active eq True', true],
    ['false is not the absence of true', 'active eq false', false],
    ['ne of an absent attribute', 'nickName ne "x"', true],
    ['eq null of an absent attribute', 'nickName eq null', true],
    ['eq null of a present one', 'title eq null', false],
    ['ne null', 'title ne null', true],
    ['negated comparison with an absent attribute', 'not (nickName eq "x")', true],
    ['dates are compared as moments', 'meta.lastModified eq "2011-05-13T06:42:34+02:00"', true],
    ['qualified sub-attribute', `${enterprise}:manager.displayName eq "john"`, true],
    ['URN in another case', `${enterprise.toUpperCase()}:EMPLOYEENUMBER eq "701984"`, true],
    ['extension attribute without its URN', 'employeeNumber eq "701984"', true],
  ])('%s', (_name, text, expected) => expect(matches(text)).toBe(expected))

  test('an empty text is not present', () => expect(matches('title pr', { title: '' })).toBe(false))
})

describe('rejected with invalidFilter', () => {
  test.each([
    '',
    'userName',
    'userName eq',
    'userName eq "x" and',
    'userName eq x y',
    'userName eq and',
    'userName is "x"',
    'not userName eq "x"',
    'userName eq "x") or (title pr',
    '(userName eq "x"',
    'emails[type eq "work"',
    'emails[type eq "work"]]',
    'userName[value eq "x"]',
    'emails[nothing eq "x"]',
    'unknown eq "x"',
    '__proto__ pr',
    'constructor.prototype pr',
    'password eq "secret"',
    'active gt true',
    'active co "t"',
    'userName gt null',
    'userName eq {}',
    'name eq "x"',
    'userName eq "unclosed',
    'userName eq "nul \\u0000"',
    'userName eq "half \\ud800"',
    'userName eq "bad \\x escape"',
    'meta.created gt "yesterday"',
    'urn:unknown:schema:userName eq "x"',
  ])('%s', (text) => {
    const error = refusal(text)
    expect(error.keyword).toBe('invalidFilter')
    expect(error.status).toBe(400)
  })

  test.each([
    ['userName like "x"', '"like" is not an operator. After userName, use eq, ne, co, sw, ew, pr, gt, ge, lt or le.'],
    ['userName "x"', 'The operator after userName is missing. Use eq, ne, co, sw, ew, pr, gt, ge, lt or le.'],
    ["userName eq 'x'", 'userName: the value is in single quotes. Put it in double quotes.'],
    ["emails[type eq 'work']", 'type: the value is in single quotes. Put it in double quotes.'],
    ['color eq "red"', 'The resource has no attribute "color". Check the name, and the schema in /Schemas.'],
  ])('%s says: %s', (text, detail) => expect(refusal(text).publicText).toBe(detail))

  test('nesting and length are bounded', () => {
    const nested = (depth: number): string => `${'('.repeat(depth)}title pr${')'.repeat(depth)}`
    expect(matches(nested(maxFilterDepth))).toBe(true)
    expect(refusal(nested(maxFilterDepth + 1)).keyword).toBe('invalidFilter')
    expect(refusal('('.repeat(20_000)).keyword).toBe('invalidFilter')
    expect(refusal(`userName eq "${'x'.repeat(5000)}"`).keyword).toBe('invalidFilter')
  })

  test('anything else is parsed or rejected, and never breaks', () => {
    const word = fc.constantFrom(
      ...[
        'userName',
        'emails',
        'emails.value',
        'not',
        'and',
        'or',
        'eq',
        'ne',
        'pr',
        'co',
        '(',
        ')',
        '[',
        ']',
        '.value',
      ],
      ...['"x"', '"', 'true', 'null', '1', '\\', enterprise, ' ', '__proto__'],
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(word, { maxLength: 20 }).map((words) => words.join(' ')),
        ),
        (text) => {
          try {
            expect(typeof matches(text)).toBe('boolean')
          } catch (error) {
            expect(error).toBeInstanceOf(GatewayError)
            expect((error as GatewayError).keyword).toBe('invalidFilter')
          }
        },
      ),
      { numRuns: sampled(500, 2000) },
    )
  })
})
