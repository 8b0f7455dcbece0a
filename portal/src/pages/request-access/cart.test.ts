import { expect, test } from 'vitest'
import type { WorkflowListItem } from '#contract/main.ts'
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

test('rows of one workflow are told apart', () => {
  expect(rowKey(row)).not.toBe(rowKey({ ...row, filterAnnotations: { Group: 'other' } }))
  expect(rowKey(row)).toBe(rowKey({ ...row, uuid: 'another time', encryptedParams: 'another' }))
})

test('what is missing is told', () => {
  expect(problemsOf(line, true)).toEqual(['cart.reasonRequired'])
  expect(problemsOf({ ...line, reason: ' ' }, true)).toEqual(['cart.reasonRequired'])
  expect(problemsOf(line, false)).toEqual([])
  expect(problemsOf({ ...line, forOthers: true, decision: 'deny' }, false)).toEqual([
    'cart.subjectsRequired',
    'cart.decisionReasonRequired',
  ])
})

test('only what was chosen is sent', () => {
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

test('ids are new each time, and what the API takes', () => {
  expect(newUuid()).toMatch(/^[0-9a-f]{32}$/)
  expect(newUuid()).not.toBe(newUuid())
})

test('known refusals are messages, others stay as they are', () => {
  expect(refusalOf('Unauthorized')).toBe('cart.notAllowed')
  expect(refusalOf('Error, user x does not exist;')).toBe(undefined)
  expect(refusalOf('constructor')).toBe(undefined)
})
