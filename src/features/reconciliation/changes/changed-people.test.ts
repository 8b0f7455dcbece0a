import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { changedPeople } from './changed-people.ts'

const entry = (change: Partial<AuditEntry>): AuditEntry => ({
  id: 'i',
  time: new Date(0),
  requestor: 'admin',
  subject: 'ann',
  workflow: { id: 'w', name: 'w' },
  target: 'people',
  kind: 'attribute',
  action: 'replace',
  attribute: 'mail',
  ...change,
})
const changes = (...rows: Partial<AuditEntry>[]) =>
  changedPeople([{ link: { chain: 0, number: 1, hash: '' }, rows: rows.map(entry) }], (target) => target === 'people')

test('people whose values or groups changed, each once, in any letter case', () => {
  expect(
    changes({}, { subject: 'ANN' }, { subject: 'bob', kind: 'group', attribute: 'groups', value: 'staff' }),
  ).toEqual({ logins: ['ANN', 'bob'], isWide: false })
})

test('a renamed person by both logins', () => {
  const renamed = changes({ kind: 'entry', attribute: 'userID', value: 'anna' })
  expect(renamed).toEqual({ logins: ['ann', 'anna'], isWide: false })
})

test('changes of other targets, and decisions, are of no one', () => {
  expect(changes({ target: 'chat' }, { kind: 'token', action: 'issue' }, { kind: 'audit' }, { subject: '' })).toEqual({
    logins: [],
    isWide: false,
  })
})

test('a group that is renamed or deleted may concern anyone; a new one concerns no one', () => {
  const group = { kind: 'entry', attribute: 'name', value: 'staff' } as const
  expect(changes({ ...group, action: 'add' })).toEqual({ logins: [], isWide: false })
  for (const action of ['replace', 'delete'] as const) expect(changes({ ...group, action }).isWide).toBe(true)
  expect(changes({ kind: 'group', attribute: 'members', value: 'team' }).isWide).toBe(true)
})
