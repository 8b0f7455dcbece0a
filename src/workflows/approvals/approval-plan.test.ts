import { describe, expect, test } from 'vitest'
import { Dn } from '#identity/dn.ts'
import type { JsonValue } from '#kernel/json.ts'
import { userRef } from '#testing/workflows/user-ref.ts'
import { type ApprovalPlan, readPlan, storePlan } from './approvers.ts'

const plan: ApprovalPlan = {
  approvers: [
    { scope: 'dn', constraint: 'ou=a\\,b,o=T', dn: Dn.parse('ou=a\\,b,o=T') },
    {
      scope: 'filter',
      constraint: '(a=\\2a\\29\\28uid=\\2a)',
      filter: { kind: 'equal', attribute: 'a', value: '*)(uid=*' },
    },
    { scope: 'custom', constraint: 'c!$x$', name: 'c', params: ['a!b', ''] },
    {
      scope: 'custom',
      constraint: 'm',
      name: 'm',
      params: [],
      about: { login: 'bob', identity: userRef('bob').identity },
    },
  ],
  involved: { identities: [userRef('ann').identity], names: ['bob'] },
  escalations: [
    { approvers: [{ scope: 'group', constraint: 'cn=g', group: Dn.parse('cn=g') }] },
    {
      approvers: [{ scope: 'dynamicGroup', constraint: 'cn=d', group: Dn.parse('cn=d') }],
      onlyIf: { scope: 'custom', constraint: 'late', name: 'late', params: [] },
    },
  ],
  failure: [],
  mail: { text: 't', html: '<p>t</p>', notifier: 'n', address: 'mail' },
}

test('a stored plan is read back unchanged', () => {
  const stored = JSON.parse(JSON.stringify(storePlan(plan))) as JsonValue
  const plain = (value: ApprovalPlan): unknown => JSON.parse(JSON.stringify(value))
  expect(plain(readPlan(stored))).toEqual(plain(plan))
  const least = { approvers: [], involved: { identities: [], names: [] }, escalations: [] }
  expect(readPlan(storePlan(least))).toEqual(least)
})

describe('anything else is rejected', () => {
  const stored = storePlan(plan)
  test.each([
    null,
    [],
    {},
    { ...stored, approvers: 'all' },
    { ...stored, involved: [1] },
    { ...stored, approvers: [{ scope: 'everybody', constraint: 'x' }] },
    { ...stored, approvers: [{ scope: 'filter', constraint: '(a=' }] },
    { ...stored, failure: {} },
    { ...stored, mail: { subject: 's' } },
    { ...stored, escalations: [null] },
  ] as JsonValue[])('%j', (damaged) => {
    expect(() => readPlan(damaged)).toThrow()
  })
})
