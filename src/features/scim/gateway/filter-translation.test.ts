import fc from 'fast-check'
import { expect, test } from 'vitest'
import { evaluate } from '#identity/filter/evaluate.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { dateTimeMillis } from '#protocols/scim/schema/schema.ts'
import { userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'
import { locateTime, type NameOf, translateFilter } from './filter-translation.ts'

const schema = new ResourceSchema(userSchema)

/**
 * userName and active are stored one to one, emails by their values and, as phoneNumbers, as JSON texts; name not at all;
 * title never has a value.
 */
const nameOf: NameOf = (path) => {
  const { attribute, sub } = path
  if (attribute.name === 'meta') return locateTime(path, ['meta.lastModified'])
  if (attribute.name === 'phoneNumbers') {
    return sub === undefined ? ['phones'] : { names: ['phones'], inside: true, jsonName: sub.name }
  }
  if (attribute.name === 'userName') return ['login', 'uid']
  if (attribute.name === 'active') return ['enabled']
  if (attribute.name === 'emails') return sub?.name === 'value' ? ['mail'] : undefined
  return attribute.name === 'title' ? [] : undefined
}

const word = fc.constantFrom('a', 'b', 'AB', 'ba')
const text = fc
  .tuple(fc.constantFrom('eq', 'ne', 'co', 'sw', 'ew', 'gt'), word)
  .map(([op, value]) => `${op} "${value}"`)
const time = fc.constantFrom(
  '2026-01-01T00:00:00.000Z',
  '2026-01-01T00:00:00.001Z',
  '2026-01-01T00:00:00.0010001Z',
  '2026-01-01T00:00:00.0019Z',
  '2026-01-01T00:00:00.002Z',
  '2026-01-01T02:00:00.002+02:00',
  '2026-01-01T00:00:00',
)
const odd = fc.constantFrom('a', 'A', 'a"', '","type":"b', 'a\\', '\n', 'Σ', 'σ', 'é', 'type', 'true')
const leaf = fc.oneof(
  fc
    .tuple(fc.constantFrom('eq', 'ne', 'gt', 'ge', 'lt', 'le'), time)
    .map(([op, value]) => `meta.lastModified ${op} "${value}"`),
  fc.constantFrom('meta.lastModified pr', 'meta.created pr', 'meta.lastModified eq null'),
  fc
    .tuple(fc.constantFrom('type', 'display', 'value'), fc.constantFrom('eq', 'ne', 'co', 'sw', 'ew'), odd)
    .map(([sub, op, value]) => `phoneNumbers.${sub} ${op} ${JSON.stringify(value)}`),
  fc.constantFrom('phoneNumbers.primary eq true', 'phoneNumbers.primary ne false', 'phoneNumbers[type eq "a"]'),
  fc
    .tuple(fc.constantFrom('userName', 'emails.value', 'emails.type', 'name.givenName', 'title', 'emails'), text)
    .map((p) => p.join(' ')),
  fc.constantFrom(
    'active eq true',
    'active ne false',
    'userName pr',
    'emails pr',
    'title pr',
    'userName eq null',
    'title ne null',
  ),
  fc.tuple(text, text).map(([a, b]) => `emails[type ${a} and value ${b}]`),
  text.map((a) => `emails[value ${a}]`),
  text.map((a) => `emails[not (value ${a})]`),
)
const filter = fc.letrec<{ filter: string }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.tuple(tie('filter'), fc.constantFrom('and', 'or'), tie('filter')).map(([a, op, b]) => `(${a}) ${op} (${b})`),
    tie('filter').map((inner) => `not (${inner})`),
  ),
})).filter
const email = fc.record({ value: word, type: fc.constantFrom('a', 'b') })
const phone = fc.record({ value: odd, display: odd, type: odd, primary: fc.boolean() }, { requiredKeys: ['value'] })
const person = fc.record(
  {
    phoneNumbers: fc.array(phone, { minLength: 1, maxLength: 2 }),
    lastModified: time,
    userName: word,
    active: fc.boolean(),
    emails: fc.array(email, { minLength: 1, maxLength: 2 }),
    givenName: word,
  },
  { requiredKeys: ['userName'] },
)

test('matches at least what the SCIM filter matches, and exactly that if it is exact', () => {
  fc.assert(
    fc.property(filter, person, fc.boolean(), (source, { givenName, lastModified, ...rest }, spaced) => {
      // Stored and shown times have milliseconds.
      const modified = lastModified === undefined ? undefined : new Date(dateTimeMillis(lastModified))
      const resource: JsonObject = {
        ...rest,
        ...(givenName === undefined ? {} : { name: { givenName } }),
        ...(modified === undefined ? {} : { meta: { lastModified: modified.toISOString() } }),
      }
      const spacing = (json: string) => (spaced ? json.replace(/^\{(".*?"):/, '{$1: ') : json)
      const stored: Record<string, readonly string[]> = {
        login: [rest.userName],
        enabled: rest.active === undefined ? [] : [String(rest.active)],
        mail: rest.emails?.map(({ value }) => value) ?? [],
        phones: rest.phoneNumbers?.map((element) => spacing(JSON.stringify(element))) ?? [],
        'meta.lastModified': modified === undefined ? [] : [modified.toISOString()],
      }
      const parsed = parseFilter(source, schema)
      const wanted = evaluateFilter(parsed, resource)
      const { filter: translated, exact } = translateFilter(parsed, nameOf)
      const found = translated === undefined || evaluate(translated, { values: (name) => stored[name] ?? [] }) === true
      if (exact) expect(found).toBe(wanted)
      else if (wanted) expect(found).toBe(true)
    }),
    { numRuns: sampled(600, 3000) },
  )
})

test('times and parts of elements are left to the store', () => {
  const translate = (source: string) => translateFilter(parseFilter(source, schema), nameOf)
  expect(translate('meta.lastModified gt "2026-01-01T02:00:00+01:00"')).toEqual({
    filter: { kind: 'greater', attribute: 'meta.lastModified', value: '2026-01-01T01:00:00.000Z' },
    exact: true,
  })
  expect(translate('meta.lastModified gt "2026-01-01T02:00:00.1234Z"').filter).toMatchObject({ kind: 'greaterOrEqual' })
  expect(translate('phoneNumbers.type eq "work"').exact).toBe(true)
  // A store that doesn't serve a time is not asked for it.
  expect(translate('meta.created gt "2026-01-01T02:00:00Z"')).toEqual({ filter: undefined, exact: false })
})

test('narrows the candidates where it can', () => {
  const translate = (source: string) => translateFilter(parseFilter(source, schema), nameOf)
  expect(translate('emails[type eq "work" and value eq "x"]')).toEqual({
    filter: { kind: 'and', filters: [{ kind: 'equal', attribute: 'mail', value: 'x' }] },
    exact: false,
  })
  expect(translate('title eq "x"')).toEqual({ filter: { kind: 'or', filters: [] }, exact: true })
  expect(translate('name.givenName eq "x" or userName eq "y"')).toEqual({ filter: undefined, exact: false })
})
