import { expect, test } from 'vitest'
import type { ApprovalSummary } from '#features/portal/contract/main-requests.ts'
import { hasEnded } from './ended.ts'
import { openApprovals, withoutApprovals, workflowsOf } from './open-approvals.ts'
import { periodProblem } from './period.ts'

const approval = (id: string): ApprovalSummary => ({
  workflow: 'w',
  approval: id,
  label: id,
  user: 'ada',
  displayName: 'Ada',
  requestor: 'ada',
  wfStart: 0,
  approvalStart: 0,
  wfName: 'vault',
  wfLabel: 'Vault',
  wfDescription: '',
  reason: '',
  commentRequired: false,
})
const pages = { pages: [{ approvals: [approval('1'), approval('2')] }, { approvals: [approval('2')] }], pageParams: [] }

test('each approval is listed once, and disappears when it is decided', () => {
  expect(openApprovals(pages).map((one) => one.approval)).toEqual(['1', '2'])
  expect(openApprovals(withoutApprovals(pages, new Set(['2']))).map((one) => one.approval)).toEqual(['1'])
  expect(openApprovals(undefined)).toEqual([])
})

test('the choices are the kinds of the approvals, and the chosen one, so that the choice never looks empty', () => {
  expect([...workflowsOf([approval('1'), approval('2')], '')]).toEqual([['vault', 'Vault']])
  expect([...workflowsOf([approval('1')], 'vault')]).toEqual([['vault', 'Vault']])
  expect([...workflowsOf([approval('1')], 'join')]).toEqual([
    ['join', 'join'],
    ['vault', 'Vault'],
  ])
})

test('access with an expiry date expires', () => {
  const accessEnds = '2026-01-10T23:59:59.000Z'
  const at = Date.parse(accessEnds)
  expect([hasEnded({ accessEnds }, at - 1), hasEnded({ accessEnds }, at), hasEnded({}, at)]).toEqual([
    false,
    true,
    false,
  ])
})

test('a period has a deputy, and ends after it starts', () => {
  const period = { deputy: 'grace', starts: '2026-01-01T10:00', ends: '2026-01-02T10:00' }
  expect(periodProblem(period)).toBe(undefined)
  expect(periodProblem({ ...period, deputy: '' })).toBe('deputies.whoRequired')
  expect(periodProblem({ ...period, ends: '' })).toBe('deputies.timeRequired')
  expect(periodProblem({ ...period, ends: period.starts })).toBe('deputies.endsBeforeStart')
})
