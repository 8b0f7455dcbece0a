import { expect, test } from 'vitest'
import type { RequestApproval, RequestDetails, RequestStep } from '#features/portal/contract/main-requests.ts'
import { timelineOf } from './timeline.ts'

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 12, minute)).toISOString()
const step = (id: number, taskType: string, minute: number, outcome = 'next'): RequestStep => ({
  id,
  taskType,
  attempt: 1,
  started: at(minute),
  ended: at(minute),
  outcome,
})
const approval = (more: Partial<RequestApproval>): RequestApproval => ({
  id: 'a',
  label: 'Vault',
  status: 'open',
  opened: at(1),
  escalation: 0,
  approvers: ['grace'],
  ...more,
})
const details = (more: Partial<RequestDetails>): RequestDetails => ({
  id: 'r',
  name: 'vault',
  label: 'Vault',
  state: 'waiting',
  subject: 'ada',
  requestor: 'ada',
  created: at(0),
  updated: at(1),
  mayCancel: true,
  timeline: [],
  approvals: [],
  messages: [],
  mayAnswer: false,
  ...more,
})
const kinds = (of: RequestDetails): string[] => timelineOf(of).map(({ kind }) => kind)

test('the first entry shows who submitted the request in the name of another user', () => {
  expect(timelineOf(details({}))[0]).toMatchObject({ by: { requestor: 'ada' } })
  expect(timelineOf(details({ caller: 'svc' }))[0]).toMatchObject({ by: { requestor: 'ada', caller: 'svc' } })
})

test('pending approvals come last, with their approvers', () => {
  expect(kinds(details({ approvals: [approval({})], timeline: [step(1, 'notifyUser', 2)] }))).toEqual([
    'submitted',
    'step',
    'holding',
  ])
})

test('decisions and steps are in chronological order', () => {
  const decided = approval({ status: 'approved', decision: { at: at(5), by: 'grace' } })
  const done = details({
    state: 'completed',
    ended: at(7),
    approvals: [decided],
    timeline: [step(1, 'approval', 1, 'wait'), step(2, 'addGroup', 5), step(3, 'provision', 6)],
  })
  expect(kinds(done)).toEqual(['submitted', 'opened', 'decided', 'step', 'ended'])
})

test('steps that only prepare are shown when they fail', () => {
  expect(kinds(details({ timeline: [step(1, 'mapping', 1), step(2, 'mapping', 2, 'failed')] }))).toEqual([
    'submitted',
    'step',
  ])
})

test('the cancellation is at the end, once', () => {
  const cancelled = details({
    state: 'cancelled',
    ended: at(3),
    cancel: { by: 'ada', reason: 'no longer' },
    approvals: [approval({ status: 'cancelled', decision: { at: at(3) } })],
  })
  expect(kinds(cancelled)).toEqual(['submitted', 'opened', 'cancelled'])
  expect(kinds({ ...cancelled, cancel: { by: 'Ada' } })).toContain('cancelled')
  expect(kinds({ ...cancelled, cancel: { by: 'linus' } })).toEqual(['submitted', 'opened', 'stopped'])
  expect(kinds({ ...cancelled, caller: 'svc', cancel: { by: 'svc' } })).toContain('cancelled')
})

test('a request with an expiry date shows it', () => {
  expect(timelineOf(details({ accessEnds: at(9) }))[0]).toMatchObject({ kind: 'submitted', until: at(9) })
})
