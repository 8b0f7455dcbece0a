import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { JsonObject } from '#kernel/json.ts'
import { evaluateFilter } from '#protocols/scim/filter/evaluate-filter.ts'
import { parseFilter } from '#protocols/scim/filter/parse-filter.ts'
import { ResourceSchema } from '#protocols/scim/schema/resource-schema.ts'
import { userSchema } from '#protocols/scim/schema/standard-schemas.ts'
import { sampled } from '#testing/hostile/sample.ts'

/**
 * Filters of a small grammar, written as text for the engine and evaluated by an oracle that is independent of our
 * schemas, tokens and trees.
 */
interface Person {
  readonly userName?: string
  readonly externalId?: string
  readonly active?: boolean
  readonly emails?: readonly { readonly value?: string; readonly type?: string }[]
}

interface Judged<T> {
  readonly text: string
  readonly holds: (of: T) => boolean
}

const word = fc.constantFrom('a', 'A', 'ab', 'b', 'Ba', 'a"b\\', '', 'é')
const folded = (text: string): string => text.toLowerCase()

const operators: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  eq: (a, b) => a === b,
  co: (a, b) => a.indexOf(b) >= 0,
  sw: (a, b) => a.slice(0, b.length) === b,
  ew: (a, b) => b === '' || a.slice(-b.length) === b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
}

function texts<T>(
  name: string,
  fold: (text: string) => string,
  read: (of: T) => readonly string[],
): fc.Arbitrary<Judged<T>> {
  const compare = fc.tuple(fc.constantFrom(...Object.keys(operators)), word).map(([operator, value]) => ({
    text: `${name} ${operator} ${JSON.stringify(value)}`,
    holds: (of: T) => read(of).some((one) => operators[operator]?.(fold(one), fold(value)) ?? false),
  }))
  const differs = word.map((value) => ({
    text: `${name} ne ${JSON.stringify(value)}`,
    holds: (of: T) => !read(of).some((one) => fold(one) === fold(value)),
  }))
  const has = (of: T): boolean => read(of).some((one) => one !== '')
  return fc.oneof(
    compare,
    differs,
    fc.constantFrom<Judged<T>>(
      { text: `${name} pr`, holds: has },
      { text: `${name} ne null`, holds: has },
      { text: `${name} eq null`, holds: (of) => !has(of) },
    ),
  )
}

/** Conditions joined by and, or, not and parentheses; `or` inside `and` is in parentheses. */
function logic<T>(leaf: fc.Arbitrary<Judged<T>>): fc.Arbitrary<Judged<T>> {
  return fc.letrec<{ filter: Judged<T>; and: Judged<T>; or: Judged<T>; not: Judged<T>; term: Judged<T> }>((tie) => ({
    filter: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaf, tie('and'), tie('or'), tie('not')),
    term: fc.oneof({ maxDepth: 4 }, leaf, tie('not'), tie('or').map(inParentheses)),
    and: fc.array(tie('term'), { minLength: 2, maxLength: 3 }).map((parts) => ({
      text: parts.map(({ text }) => text).join(' and '),
      holds: (of: T) => parts.every(({ holds }) => holds(of)),
    })),
    // Without parentheses: `and` binds more tightly.
    or: fc.array(fc.oneof(tie('term'), tie('and')), { minLength: 2, maxLength: 3 }).map((parts) => ({
      text: parts.map(({ text }) => text).join(' OR '),
      holds: (of: T) => parts.some(({ holds }) => holds(of)),
    })),
    not: tie('filter').map(({ text, holds }) => ({ text: `not (${text})`, holds: (of: T) => !holds(of) })),
  })).filter
}

const inParentheses = <T>({ text, holds }: Judged<T>): Judged<T> => ({ text: `(${text})`, holds })

type Email = NonNullable<Person['emails']>[number]
const given = (text: string | undefined): readonly string[] => (text === undefined ? [] : [text])
const emailsOf = ({ emails = [] }: Person): readonly Email[] => emails

const inElement = logic<Email>(
  fc.oneof(
    texts<Email>('value', folded, ({ value }) => given(value)),
    texts<Email>('TYPE', folded, ({ type }) => given(type)),
  ),
)

const condition: fc.Arbitrary<Judged<Person>> = fc.oneof(
  texts<Person>('userName', folded, ({ userName }) => given(userName)),
  texts<Person>('externalId', String, ({ externalId }) => given(externalId)),
  texts<Person>('emails', folded, (person) => emailsOf(person).flatMap(({ value }) => given(value))).filter(
    // "emails pr" is about whole elements; the rest about their values.
    ({ text }) => text !== 'emails pr',
  ),
  texts<Person>('emails.type', folded, (person) => emailsOf(person).flatMap(({ type }) => given(type))),
  fc.boolean().map((value) => ({ text: `active eq ${value}`, holds: ({ active }: Person) => active === value })),
  fc.boolean().map((value) => ({ text: `active ne ${value}`, holds: ({ active }: Person) => active !== value })),
  inElement.map(({ text, holds }) => ({ text: `emails[${text}]`, holds: (of: Person) => emailsOf(of).some(holds) })),
  fc.tuple(inElement, word).map(([{ text, holds }, value]) => ({
    text: `emails[${text}].value eq ${JSON.stringify(value)}`,
    holds: (of: Person) =>
      emailsOf(of).some((one) => holds(one) && one.value !== undefined && folded(one.value) === folded(value)),
  })),
)

const person: fc.Arbitrary<Person> = fc.record(
  {
    userName: word,
    externalId: word,
    active: fc.boolean(),
    emails: fc.array(fc.record({ value: word, type: word }, { requiredKeys: [] }), { maxLength: 3 }),
  },
  { requiredKeys: [] },
)

vi.setConfig({ testTimeout: 30_000 })

const schema = new ResourceSchema(userSchema)

test('the engine agrees with the oracle', () => {
  const seen = { true: 0, false: 0 }
  fc.assert(
    fc.property(logic(condition), fc.array(person, { minLength: 1, maxLength: 5 }), ({ text, holds }, people) => {
      fc.pre(text.length <= 4000)
      const filter = parseFilter(text, schema)
      for (const one of people) {
        const matches = evaluateFilter(filter, one as JsonObject)
        seen[`${matches}`]++
        expect(matches, text).toBe(holds(one))
      }
    }),
    { numRuns: sampled(250, 1000) },
  )
  expect(Math.min(seen.true, seen.false)).toBeGreaterThan(sampled(75, 300))
})
