import { expect, test } from 'vitest'
import type { Filter } from '#identity/filter/ast.ts'
import { ServerSchema } from '#protocols/ldap/server-schema.ts'
import { narrowedLeaf } from './narrowed-leaf.ts'

const schema = new ServerSchema(
  [],
  [
    "( 2.5.4.41 NAME 'name' EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch )",
    "( 2.5.4.12 NAME ( 'title' 'jobTitle' ) SUP name )",
    "( 1.1 NAME 'code' EQUALITY caseExactMatch SUBSTR caseExactSubstringsMatch )",
    "( 1.2 NAME 'entryUUID' EQUALITY UUIDMatch )",
    "( 1.3 NAME 'enabled' EQUALITY booleanMatch )",
    "( 1.4 NAME 'phone' EQUALITY telephoneNumberMatch SUBSTR telephoneNumberSubstringsMatch )",
    "( 1.5 NAME 'photo' )",
  ],
)

type Leaf = Parameters<typeof narrowedLeaf>[0]

const equal = (attribute: string, value: string, caseExact = false): Leaf => ({
  kind: 'equal',
  attribute,
  value,
  ...(caseExact ? { caseExact } : {}),
})
const starting = (attribute: string, initial: string): Leaf => ({ kind: 'substring', attribute, initial, any: [] })
const present = (attribute: string): Filter => ({ kind: 'present', attribute })

test.each<[string, Leaf, Filter | 'same']>([
  ['ASCII under a rule without letter case', equal('jobTitle', 'Ann'), 'same'],
  [
    'letters that servers fold differently',
    equal('title', 'Ann Σ b'),
    { kind: 'substring', attribute: 'title', initial: 'An', any: [], final: 'b' },
  ],
  ['letters that all servers fold', equal('title', 'Jörg Ыва'), 'same'],
  ['characters without letter case', equal('title', '日本'), 'same'],
  [
    'letter case under a rule that counts it',
    equal('code', 'ab-1'),
    { kind: 'substring', attribute: 'code', any: [], final: '-1' },
  ],
  ['letter case that counts here too', equal('code', 'ab-1', true), 'same'],
  ['a part of an id', starting('entryUUID', '7d89'), present('entryUUID')],
  ['an id', equal('entryUUID', '7d895e14-77aa-1041-8f32-53c6c42eecd5'), 'same'],
  ['a boolean', equal('enabled', 'true'), { ...equal('enabled', 'TRUE') }],
  ['a part that the rule changes', starting('phone', '-1'), present('phone')],
  ['no rule', equal('photo', 'x'), present('photo')],
  ['a start that may have an accent', starting('title', 'Ann'), starting('title', 'An')],
  ['a single letter', starting('title', 'a'), present('title')],
  ['a start with a digit', starting('title', 'a1'), starting('title', 'a1')],
  ['an unknown attribute', starting('other', 'a'), 'same'],
])('%s', (_, leaf, expected) => {
  expect(narrowedLeaf(leaf, schema)).toEqual(expected === 'same' ? leaf : expected)
})

test('a server that does not show its rules gets the condition as it is', () => {
  const silent = new ServerSchema([], ["( 2.5.4.12 NAME 'title' SYNTAX '1.3.6.1.4.1.1466.115.121.1.15' SINGLE-VALUE )"])
  for (const known of [silent, undefined])
    expect(narrowedLeaf(starting('title', 'a'), known)).toEqual(starting('title', 'a'))
})
