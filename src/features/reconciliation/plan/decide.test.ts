import { expect, test } from 'vitest'
import { isDeactivated } from '#identity/attributes.ts'
import type { Account, Person } from './compared-entry.ts'
import { decideExtra, decidePerson, type Match, type Policy } from './decide.ts'

const policy: Policy = {
  missing: 'create',
  different: 'change',
  extra: 'deactivate',
  ambiguous: 'report',
  renamesUsers: true,
  copiesLogin: true,
  keepsDeleted: false,
  isDeactivated,
}
const reporting: Policy = { ...policy, missing: 'report', different: 'report', extra: 'report' }
const ada: Person = {
  name: { id: '1', login: 'ada' },
  wanted: { login: 'ada', attributes: { mail: ['a@x'] }, groups: ['staff'] },
}
const account = (given: Partial<Account> = {}): Account => ({
  name: { id: 'x', login: 'ada' },
  login: 'ada',
  attributes: { mail: ['a@x'] },
  groups: ['staff'],
  status: {},
  ...given,
})
const off = { status: { active: ['false'] } }
const found = (given: Partial<Account> = {}): Match => ({ kind: 'account', account: account(given), rule: 'mail' })
const decided = (match: Match, by: Policy = policy, person: Person = ada) => {
  const difference = decidePerson('1', person, match, by)
  return difference && `${difference.kind} ${difference.action}: ${difference.reason}`
}

test.each<[string, Match, Policy, string | undefined]>([
  ['agrees', found(), policy, undefined],
  ['is missing', { kind: 'none' }, policy, 'missing create: No account belongs to this person.'],
  [
    'is only reported',
    { kind: 'none' },
    reporting,
    'missing report: No account belongs to this person. It is only reported.',
  ],
  ['has other values', found({ attributes: {} }), policy, 'different change: Mail differs.'],
  ['is not in a group', found({ groups: [] }), policy, 'different change: 1 membership differs.'],
  ['has another login', found({ login: 'a' }), policy, 'different change: The login is "a" instead of "ada".'],
  [
    'has another login that stays',
    found({ login: 'a' }),
    { ...policy, renamesUsers: false },
    'different report: The login is "a" instead of "ada". Nothing is changed: the target cannot rename accounts.',
  ],
  [
    'has another login that a mapping of the target makes',
    found({ login: 'a' }),
    { ...policy, copiesLogin: false },
    'different report: The login is "a" instead of "ada". Nothing is changed: the targetAttributes of the target make the login.',
  ],
  [
    'is deactivated by a target that keeps deleted accounts',
    found(off),
    { ...policy, extra: 'delete', keepsDeleted: true },
    'different change: The account is deactivated.',
  ],
  ['is deactivated', found(off), policy, 'different change: The account is deactivated.'],
  ['is deactivated, which no one decides about', found(off), reporting, undefined],
  [
    'has several accounts',
    { kind: 'ambiguous', rule: 'mail', between: 'accounts', candidates: Array.from({ length: 11 }, () => ada.name) },
    policy,
    'ambiguous report: By mail, more than 10 accounts may belong to this person. Decide with a link.',
  ],
  [
    'shares an account',
    { kind: 'ambiguous', rule: 'mail', between: 'people', candidates: [ada.name] },
    policy,
    'ambiguous report: By mail, the account may also belong to one other person. Decide with a link.',
  ],
  [
    'would take a login',
    { kind: 'taken', account: { login: 'ADA' } },
    policy,
    'ambiguous report: The account "ADA" has the login that this person would get, but no rule connects them. Decide with a link, or rename one of them.',
  ],
  [
    'would share a login',
    { kind: 'shared', people: [ada.name, ada.name] },
    policy,
    'ambiguous report: This person would get the login "ada", and so would 2 other people.',
  ],
])('a person who %s', (_, match, by, expected) => {
  expect(decided(match, by)).toBe(expected)
})

test('a change that takes all memberships or deactivates counts for the limits', () => {
  const decide = (wanted: Partial<Person['wanted']>, given: Partial<Account>, by = policy) => {
    const person: Person = { name: ada.name, wanted: { login: 'ada', attributes: {}, groups: [], ...wanted } }
    return decidePerson('1', person, found({ attributes: {}, groups: [], ...given }), by)
  }
  expect(decide({}, { groups: ['staff', 'chess'] })).toMatchObject({
    removes: true,
    reason: '2 memberships differ. The change takes all compared memberships.',
  })
  expect(decide({ groups: ['go'] }, { groups: ['staff', 'chess'] })).toMatchObject({ removes: true })
  expect(decide({ groups: ['go', 'Chess'] }, { groups: ['staff', 'chess'] })).not.toHaveProperty('removes')
  expect(decide({}, { groups: ['staff'] }, reporting)).not.toHaveProperty('removes')
  const inactive = { attributes: { active: ['false'] } }
  const active = { status: { active: ['true'] }, attributes: { active: ['true'] } }
  expect(decide(inactive, active)).toMatchObject({
    removes: true,
    reason: 'Active differs. The change deactivates the account.',
  })
  // The account is off already, as it should be.
  expect(decide(inactive, { ...off, ...inactive })).toBeUndefined()
  expect(decide({ ...inactive, groups: ['go'] }, { ...off, ...inactive })).not.toHaveProperty('removes')
  // What the filter reads besides the mapped attributes stays as it is at the account.
  const contract: Policy = {
    ...policy,
    isDeactivated: (status) => status.first('Active') === 'false' && status.first('kind') === 'guest',
  }
  expect(decide(inactive, { attributes: {}, status: { kind: ['guest'] } }, contract)).toMatchObject({ removes: true })
})

test('a person who could not be mapped is unknown, with or without an account', () => {
  const unknown: Person = { name: ada.name, wanted: undefined, problem: 'The mail is missing.' }
  const text = 'unknown report: What this person should have is not known: The mail is missing.'
  expect([decided({ kind: 'none' }, policy, unknown), decided(found(), policy, unknown)]).toEqual([text, text])
})

test('an extra account is left alone where a person without a mapping may have it', () => {
  expect(decideExtra('x', account(), policy, 0)).toMatchObject({ action: 'deactivate', groups: { remove: [] } })
  expect(decideExtra('x', account(), policy, 2)).toMatchObject({
    action: 'report',
    reason: 'No person of the source has this account. Nothing is done: 2 people could not be mapped and may have it.',
  })
  expect(decideExtra('x', account(off), policy, 0)).toBeUndefined()
  const keeping: Policy = { ...policy, extra: 'delete', keepsDeleted: true }
  expect(decideExtra('x', account(), keeping, 0)).toMatchObject({
    action: 'delete',
    reason: 'No person of the source has this account. The target keeps deleted accounts: it is deactivated.',
  })
  expect(decideExtra('x', account(off), keeping, 0)).toBeUndefined()
  expect(decideExtra('x', account(off), { ...keeping, keepsDeleted: false }, 0)).toMatchObject({ action: 'delete' })
  expect(decideExtra('x', account(), { ...policy, copiesLogin: false }, 0)).toMatchObject({
    action: 'report',
    reason:
      'No person of the source has this account. Nothing is done: the targetAttributes of the target make the login, so no workflow can name the account of no person.',
  })
  const removing: Policy = { ...policy, extra: 'removeMemberships' }
  expect(decideExtra('x', account(), removing, 0)).toMatchObject({ groups: { remove: ['staff'] } })
  expect(decideExtra('x', account({ groups: [] }), removing, 0)).toBeUndefined()
})
