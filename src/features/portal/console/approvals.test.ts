import { expect, test } from 'vitest'
import { openMain, someone } from '#testing/modules/main-fixture.ts'
import { byLogin, someApproval } from '#testing/workflows/some-approval.ts'
import type { ApprovalAssignment, OpenApprovalFilter } from '#workflows/approvals/desk-requests.ts'

const admin = someone('root', ['people', 'admins'])
const operator = someone('olga', ['people', 'admins', 'operators'])
const now = Date.UTC(2030, 0, 10)

async function open() {
  const asked: OpenApprovalFilter[] = []
  const assigned: ApprovalAssignment[] = []
  const one = someApproval({ id: 'a-1', data: { attributes: { mail: ['secret@example.com'] } } })
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)', operators: 'filter;(groups=operators)' },
    now: () => now,
    approvals: {
      listOpen: async (filter) => {
        asked.push(filter)
        return { approvals: [{ ...one, approvers: ['chief'], hasMore: false }], next: 'a-1' }
      },
      assign: async (assignment) => {
        assigned.push(assignment)
        return { ...one, version: 2, approvers: [byLogin('deputy')] }
      },
    },
  })
  return { send, asked, assigned }
}

test('open approvals are listed by workflow, approver and age, without what they are about', async () => {
  const { send, asked } = await open()
  const { body, text } = await send('GET', '/admin/approvals?workflow=w&approver=boss&overdue=3d', undefined, admin)
  expect(body).toMatchObject({ approvals: [{ id: 'a-1', approvers: ['chief'], escalation: 0 }], next: 'a-1' })
  expect(text).not.toContain('secret@example.com')
  const overdueSince = new Date(now - 3 * 24 * 3_600_000)
  expect(asked).toEqual([{ workflow: 'w', approver: 'boss', overdueSince, limit: 100 }])
  await expect(send('GET', '/admin/approvals?overdue=late', undefined, admin)).rejects.toMatchObject({
    code: 'BAD_REQUEST',
  })
})

test('operators reassign an approval with a reason, and are named', async () => {
  const { send, assigned } = await open()
  const change = { version: 1, to: 'deputy', reason: 'away' }
  const reassign = (body: unknown, caller = operator) => send('POST', '/admin/approvals/a-1/reassign', body, caller)
  await expect(reassign(change, admin)).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  for (const bad of [
    { ...change, reason: '' },
    { ...change, reason: ' \n' },
    { ...change, to: undefined },
    { ...change, by: 'x' },
    { to: 'x' },
  ]) {
    await expect(reassign(bad)).rejects.toMatchObject({ code: 'BAD_REQUEST' })
  }
  expect(assigned).toEqual([])
  expect((await reassign(change)).body).toEqual({ id: 'a-1', version: 2, approvers: ['deputy'] })
  expect(assigned).toMatchObject([{ ...change, approval: 'a-1', by: { login: 'olga', identity: operator.identity } }])
})
