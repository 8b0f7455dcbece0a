import fc from 'fast-check'
import { expect, test } from 'vitest'
import { evaluate } from '#identity/filter/evaluate.ts'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/resource-schema.ts'
import { userSchema } from '#protocols/scim/schemas/user.ts'
import { type NameOf, translateFilter } from './filter-translation.ts'

const schema = new ResourceSchema(userSchema)

/** userName and active are stored one to one, emails by their values only, name not at all; title never has a value. */
const nameOf: NameOf = ({ attribute, sub }) => {
  if (attribute.name === 'userName') return ['login', 'uid']
  if (attribute.name === 'active') return ['enabled']
  if (attribute.name === 'emails') return sub?.name === 'value' ? ['mail'] : undefined
  return attribute.name === 'title' ? [] : undefined
}

const word = fc.constantFrom('a', 'b', 'AB', 'ba')
const text = fc
  .tuple(fc.constantFrom('eq', 'ne', 'co', 'sw', 'ew', 'gt'), word)
  .map(([op, value]) => `${op} "${value}"`)
const leaf = fc.oneof(
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
const person = fc.record(
  { userName: word, active: fc.boolean(), emails: fc.array(email, { minLength: 1, maxLength: 2 }), givenName: word },
  { requiredKeys: ['userName'] },
)

test('never matches less than the SCIM filter, and exactly as much where it says so', () => {
  fc.assert(
    fc.property(filter, person, (source, { givenName, ...rest }) => {
      const resource: JsonObject = { ...rest, ...(givenName === undefined ? {} : { name: { givenName } }) }
      const stored: Record<string, readonly string[]> = {
        login: [rest.userName],
        enabled: rest.active === undefined ? [] : [String(rest.active)],
        mail: rest.emails?.map(({ value }) => value) ?? [],
      }
      const parsed = parseFilter(source, schema)
      const wanted = evaluateFilter(parsed, resource)
      const { filter: translated, exact } = translateFilter(parsed, nameOf)
      const found = translated === undefined || evaluate(translated, { values: (name) => stored[name] ?? [] }) === true
      if (exact) expect(found).toBe(wanted)
      else if (wanted) expect(found).toBe(true)
    }),
    { numRuns: 3000 },
  )
})

test('what can be narrowed is narrowed', () => {
  const translate = (source: string) => translateFilter(parseFilter(source, schema), nameOf)
  expect(translate('emails[type eq "work" and value eq "x"]')).toEqual({
    filter: { kind: 'and', filters: [{ kind: 'equal', attribute: 'mail', value: 'x' }] },
    exact: false,
  })
  expect(translate('title eq "x"')).toEqual({ filter: { kind: 'or', filters: [] }, exact: true })
  expect(translate('name.givenName eq "x" or userName eq "y"')).toEqual({ filter: undefined, exact: false })
})
