import { hash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { FormAttributeView } from '#sdk/contract/forms.ts'
import { compilePattern } from '../../src/kernel/text/safe-pattern.ts'
import { passwordRules } from '../../src/protocols/passwords/password-rules.ts'
import { type FormAttribute, viewFormAttribute } from '../../src/sdk/forms/form-attribute.ts'
import { checkValue } from '../../src/sdk/forms/form-values.ts'
import { isMailAddress } from '../../src/sdk/mail/mail.ts'
import { passwordProblem, repeatsValue } from '../src/components/password-strength.ts'
import { fieldProblem } from '../src/pages/register/field-rules.ts'
import { compilePatterns } from '../src/pages/register/patterns.ts'
import { leadingZeroBits, solve } from '../src/pages/register/proof-of-work.ts'

/** The form must report while typing what the gateway reports after sending. */

const sources = ['[a-z][a-z0-9-]+', '(?i)ab*', '\\pL+', '\\d{2,4}', '.*', '(a|b|)']
const attribute = fc
  .record({
    required: fc.boolean(),
    minChars: fc.constantFrom(0, 0, 2, 5),
    maxChars: fc.constantFrom(0, 0, 4, 12),
    type: fc.constantFrom<FormAttribute['type']>('text', 'text-area', 'text-list', 'list'),
    source: fc.option(fc.constantFrom(...sources), { nil: undefined }),
    values: fc.constantFrom([], ['red', 'blue']),
  })
  .map(({ source, values, type, ...rest }): FormAttribute => {
    return {
      ...rest,
      name: 'a',
      displayName: 'A',
      readOnly: false,
      show: true,
      unique: false,
      type,
      pattern: source === undefined ? undefined : compilePattern(source),
      patternMessage: 'A does not match',
      items: values.map((item, num) => ({ name: item.toUpperCase(), value: item, num })),
      preset: undefined,
      source: undefined,
    }
  })
const value = fc.oneof(
  fc.constantFrom('', ' ', 'red', 'ab', 'login-1', 'a\nb', 'a\tb', '\u0000', '12', 'ÄÖ', '🙂🙂', 'a'.repeat(10_001)),
  fc.string({ maxLength: 16 }),
  fc.string({ unit: 'binary', maxLength: 8 }),
)

test('the form and the gateway find the same problems', async () => {
  await fc.assert(
    fc.asyncProperty(attribute, value, async (field, given) => {
      const view: FormAttributeView = viewFormAttribute(field, field.items)
      const matches = await compilePatterns([view])
      const found = fieldProblem(view, given, false, matches)
      expect([given, found === undefined]).toEqual([given, checkValue(field, given).length === 0])
    }),
    { numRuns: 500 },
  )
})

test('both accept the same mail addresses', () => {
  const field: FormAttributeView = { ...plainField, name: 'mail' }
  const address = fc.oneof(
    fc.emailAddress(),
    fc.string(),
    fc.constantFrom('a@b', 'a b@c', '<a@b>', 'a@b@c', '@', 'ä@ö.de'),
  )
  fc.assert(
    fc.property(address, (given) => {
      const isFine = fieldProblem(field, given, true, () => undefined) === undefined
      expect([given, isFine]).toEqual([given, isMailAddress(given) && checkValue(plainAttribute, given).length === 0])
    }),
  )
})

test('both accept the same passwords', async () => {
  const rules = { minChars: 4, maxChars: 12 }
  const settings = { ...rules, breachListURL: undefined, acceptUnchecked: false }
  const check = passwordRules(settings, () => Promise.reject(new Error('nobody is asked')), silent)
  const password = fc.oneof(fc.string({ maxLength: 16 }), fc.constantFrom('ada', 'ada1', 'Lovelace12', 'ada@exam'))
  await fc.assert(
    fc.asyncProperty(password, fc.array(fc.constantFrom('Lovelace', 'ada@example.com', 'ada')), async (given, told) => {
      const errors = await check({ password: given, repeated: given, values: told }, true)
      expect([given, passwordProblem(given, rules, told) === undefined]).toEqual([given, errors.length === 0])
    }),
  )
  expect(repeatsValue('lovelace12', ['Lovelace'])).toBe(true)
})

test('a solution has the required number of zero bits', () => {
  for (const difficulty of [1, 7, 8, 12]) {
    const answer = solve('expires.difficulty.secret.signature', difficulty)
    expect(answer).toMatch(/^expires\.difficulty\.secret\.signature\.[0-9a-z]{1,40}$/)
    const digest = hash('sha256', answer, 'buffer')
    expect(digest.readUInt32BE(0) >>> (32 - difficulty)).toBe(0)
  }
  expect(leadingZeroBits(Uint8Array.of(0, 0, 1))).toBe(23)
  expect(leadingZeroBits(Uint8Array.of(255))).toBe(0)
})

const plainAttribute: FormAttribute = {
  name: 'a',
  displayName: 'A',
  readOnly: false,
  show: true,
  required: true,
  unique: false,
  minChars: 0,
  maxChars: 0,
  type: 'text',
  pattern: undefined,
  patternMessage: '',
  items: [],
  preset: undefined,
  source: undefined,
}
const plainField: FormAttributeView = viewFormAttribute(plainAttribute, [])
const silent = {
  level: 'info',
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silent,
} as unknown as Parameters<typeof passwordRules>[2]
