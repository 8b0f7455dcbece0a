import { expect, test } from 'vitest'
import type { ApprovalSummary } from '#contract/main-requests.ts'
import { openApprovals, withoutApprovals } from './open-approvals.ts'
import { fieldValue, periodProblem } from './period.ts'

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
})
const pages = { pages: [{ approvals: [approval('1'), approval('2')] }, { approvals: [approval('2')] }], pageParams: [] }

test('each approval is listed once, and goes when it is decided', () => {
  expect(openApprovals(pages).map((one) => one.approval)).toEqual(['1', '2'])
  expect(openApprovals(withoutApprovals(pages, new Set(['2']))).map((one) => one.approval)).toEqual(['1'])
  expect(openApprovals(undefined)).toEqual([])
})

test('a period has a deputy, and ends after it starts', () => {
  const period = { deputy: 'grace', starts: '2026-01-01T10:00', ends: '2026-01-02T10:00' }
  expect(periodProblem(period)).toBe(undefined)
  expect(periodProblem({ ...period, deputy: '' })).toBe('deputies.whoRequired')
  expect(periodProblem({ ...period, ends: '' })).toBe('deputies.timeRequired')
  expect(periodProblem({ ...period, ends: period.starts })).toBe('deputies.endsBeforeStart')
})

test('a moment goes through the field of a browser and back', () => {
  const at = new Date('2026-03-29T12:34:00Z')
  expect(new Date(fieldValue(at)).getTime()).toBe(at.getTime())
})
