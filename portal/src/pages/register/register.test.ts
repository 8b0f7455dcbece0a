import { expect, test } from 'vitest'
import type { RegisterConfig } from '#features/registration/contract/register.ts'
import { registerField as field, registerConfig } from '../../../test/register-config.ts'
import { strengthOf } from '../../components/password-strength.ts'
import { type Entries, fieldsOf, type Invitation, noPasswords, problemsOf, requestOf } from './entries.ts'
import { unique } from './list-items.ts'
import { sortProblems } from './server-problems.ts'

const config = (more: Partial<RegisterConfig> = {}): RegisterConfig =>
  registerConfig({
    attributes: [field('uid'), field('mail'), field('hidden', { show: false }), field('team', { required: false })],
    ...more,
  })

const invitation: Invitation = { token: 'secret', email: 'ada@example.com', attributes: { team: 'red' }, expires: '' }
const entries: Entries = { values: { uid: 'ada', mail: 'else@example.com' }, reason: '', terms: false }
const nothing = { proof: undefined, trap: '', invitation: undefined }

test('values of an invitation cannot be changed and are not sent', () => {
  const known = config({ verifyEmailAttribute: 'mail' })
  const fields = fieldsOf(known, invitation)
  expect(fields.map(({ name, readOnly }) => [name, readOnly])).toEqual([
    ['uid', false],
    ['mail', true],
    ['team', true],
  ])
  expect(requestOf(known, fields, entries, noPasswords, { ...nothing, invitation })).toEqual({
    attributes: { uid: 'ada' },
    invitation: 'secret',
  })
})

test('the honeypot is sent unchanged, and no unrequested field', () => {
  const known = config({ humanCheck: { kind: 'proof-of-work', honeypot: 'website' } })
  const sent = requestOf(
    known,
    fieldsOf(known, undefined),
    entries,
    { password: 'x', password2: 'x' },
    {
      ...nothing,
      proof: 'a.b',
      trap: 'spam',
    },
  )
  expect(sent).toEqual({ attributes: entries.values, reCaptchaCode: 'a.b', website: 'spam' })
})

test('all missing values are found at once, in the order of the form', () => {
  const known = config({
    requireReason: true,
    requireTermsAndConditions: true,
    preSetPassword: true,
    passwordRules: { minChars: 8, maxChars: 64 },
  })
  const empty: Entries = { values: {}, reason: ' ', terms: false }
  const found = problemsOf(
    known,
    fieldsOf(known, undefined),
    empty,
    { password: 'short', password2: '' },
    () => undefined,
  )
  expect([...found.keys()]).toEqual(['field uid', 'field mail', 'reason', 'password', 'password2', 'terms'])
})

test("the gateway's problem is beside the field with the longest matching label", () => {
  const fields = [
    field('cn', { displayName: 'Name' }),
    field('team', { displayName: 'Name of the team', regExFailedMsg: 'Odd' }),
  ]
  const { fields: found, others } = sortProblems(
    ['Name of the team is required', 'Name is not available', 'Odd', 'Human validation failed', 'Namesake'],
    fields,
  )
  expect([...found]).toEqual([
    ['team', 'Name of the team is required'],
    ['cn', 'Name is not available'],
  ])
  expect(others).toEqual(['Human validation failed', 'Namesake'])
})

test('each label and each value appears once', () => {
  const items = [
    { name: 'A', value: '1', num: 0 },
    { name: 'A', value: '2', num: 1 },
    { name: 'B', value: '1', num: 2 },
    { name: 'C', value: '3', num: 3 },
  ]
  expect(unique(items).map(({ value }) => value)).toEqual(['1', '3'])
})

test.each([
  ['', 0],
  ['aaaaaaaaaaaaaaaa', 1],
  ['abcdefgh12345678', 1],
  ['password', 1],
  ['lovelace99', 0],
  ['correct horse battery staple', 4],
  ['tR4$kw9!', 2],
])('%s has the strength %i at most', (password, most) => {
  expect(strengthOf(password, ['Lovelace'])).toBeLessThanOrEqual(most)
  if (most === 4) expect(strengthOf(password, [])).toBe(4)
})
