import { expect, test } from 'vitest'
import type { WorkflowListItem } from '#features/portal/contract/main.ts'
import { newLine, newUuid, problemsOf, refusalOf, requestOf, rowKey } from './cart.ts'

const row: WorkflowListItem = {
  uuid: 'of the list',
  name: 'join-group',
  label: 'Join vault',
  description: '',
  encryptedParams: 'reference',
  filterAnnotations: { Group: 'vault' },
}
const line = newLine(row, 'mine')
const now = Date.now()
const required = { ofRequest: true, ofDecision: true }
const optional = { ofRequest: false, ofDecision: false }

test('rows of one workflow are distinguished', () => {
  expect(rowKey(row)).not.toBe(rowKey({ ...row, filterAnnotations: { Group: 'other' } }))
  expect(rowKey(row)).toBe(rowKey({ ...row, uuid: 'another time', encryptedParams: 'another' }))
})

test('missing values are reported', () => {
  expect(problemsOf(line, required, now)).toEqual(['cart.reasonRequired'])
  expect(problemsOf({ ...line, reason: ' ' }, required, now)).toEqual(['cart.reasonRequired'])
  expect(problemsOf(line, optional, now)).toEqual([])
  const denied = { ...line, forOthers: true, decision: 'deny' } as const
  expect(problemsOf(denied, { ...optional, ofDecision: true }, now)).toEqual([
    'cart.subjectsRequired',
    'cart.decisionReasonRequired',
  ])
  expect(problemsOf(denied, optional, now)).toEqual(['cart.subjectsRequired'])
})

test('only chosen values are sent', () => {
  expect(requestOf({ ...line, reason: ' On call ', subjects: ['joan'] })).toEqual({
    uuid: 'mine',
    name: 'join-group',
    reason: 'On call',
    encryptedParams: 'reference',
  })
  const decided = { ...line, forOthers: true, subjects: ['joan'], decision: 'approve', decisionReason: 'mine' } as const
  expect(requestOf(decided)).toMatchObject({
    subjects: ['joan'],
    doPreApproval: true,
    approved: true,
    approvalReason: 'mine',
  })
})

test('the expiry date is sent as a time, and only if it can be chosen', () => {
  const ending = newLine({ ...row, accessEnds: { required: true } }, 'mine')
  expect(problemsOf(ending, optional, now)).toEqual(['cart.endRequired'])
  expect(requestOf(ending)).not.toHaveProperty('expires')
  expect(problemsOf({ ...ending, ends: '2000-01-01' }, optional, now)).toEqual(['cart.endNotAhead'])
  const expires = new Date(2099, 11, 31, 23, 59, 59).toISOString()
  expect(requestOf({ ...ending, ends: '2099-12-31' })).toMatchObject({ expires })
  expect(requestOf({ ...line, ends: '2099-12-31' })).not.toHaveProperty('expires')
})

test('the expiry date must be later than the end of the access that the user has', () => {
  const ending = newLine({ ...row, accessEnds: { required: true } }, 'mine')
  const current = new Date(2099, 5, 1, 12).getTime()
  expect(problemsOf({ ...ending, ends: '2099-05-31' }, optional, now, current)).toEqual(['cart.endNotLater'])
  expect(problemsOf({ ...ending, ends: '2099-06-01' }, optional, now, current)).toEqual([])
  const refusal = 'You have this until 2030-02-01T00:00:00.000Z; choose a later time'
  expect(refusalOf(refusal, ending)).toBe('cart.endNotLater')
  expect(refusalOf('bob has this for longer already; choose a later time', ending)).toBeUndefined()
})

test('ids are unique, and valid for the API', () => {
  expect(newUuid()).toMatch(/^[0-9a-f]{32}$/)
  expect(newUuid()).not.toBe(newUuid())
})

test('known rejections become messages, others stay unchanged', () => {
  expect(refusalOf('Unauthorized', line)).toBe('cart.notAllowed')
  expect(refusalOf('Error, user x does not exist;', line)).toBe(undefined)
  expect(refusalOf('constructor', line)).toBe(undefined)
  expect(refusalOf('End date is required', { accessEnds: { required: true } })).toBe('cart.endRequired')
  expect(refusalOf('End date is required', line)).toBe('cart.gone')
})
