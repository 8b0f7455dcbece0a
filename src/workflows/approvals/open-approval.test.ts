import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import type { User } from '#identity/user.ts'
import { approvalData } from './open-approval.ts'

const userWith = (attributes: Record<string, string[]>, groups: string[] = []): User => ({
  userID: 'ann',
  attributes: Attributes.from(attributes),
  groups,
})

test('D4: approvers see the request, but no secrets and no keys of the engine', () => {
  const user = userWith({ cn: ['Ann'], userPassword: ['hush'], apiKey: ['hush'], otp: ['hush'] }, ['staff'])
  const request = new Map<string, unknown>([
    ['namespace', 'prod'],
    ['access_token', 'hush'],
    ['APPROVAL_ID', 'a'],
    ['WORKFLOW_ID', 'w'],
    ['constructor', 'x'],
    ['object', { a: 1 }],
  ])
  const data = approvalData({ ...user, password: 'hush' } as User, request)
  expect(JSON.parse(JSON.stringify(data))).toEqual({
    attributes: { cn: ['Ann'] },
    groups: ['staff'],
    parameters: { namespace: 'prod' },
  })
})

test('groups that a user will join are shown, even if the other memberships are unknown', () => {
  const groupsOf = (user: Parameters<typeof approvalData>[0]) => approvalData(user, new Map())['groups']
  const user = userWith({}, ['staff'])
  expect(groupsOf({ ...user, keepGroups: false })).toEqual(['staff'])
  expect(groupsOf({ ...user, keepGroups: true })).toEqual([])
  const groupChanges = { add: ['vault'], remove: ['vpn'] }
  expect(groupsOf({ ...user, keepGroups: true, groupChanges })).toEqual(['vault'])
})

test('the shown data is limited', () => {
  const values = Array.from({ length: 500 }, () => 'x'.repeat(5000))
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`a${i}`, values]))
  const request = new Map(Array.from({ length: 500 }, (_, i) => [`p${i}`, 'y'.repeat(5000)] as const))
  const data = approvalData(userWith(many, values), request)
  expect(JSON.stringify(data).length).toBeLessThan(100_000)
  expect(data['parameters']).toMatchObject({ p0: `${'y'.repeat(2000)}…` })
})
