import { expect, test } from 'vitest'
import { auditedCall } from '#modules/shared/tasks/audited-call.ts'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'

const created: TargetChange = { subject: 'entry', action: 'add', attribute: 'uid', value: 'ada' }

function recording() {
  const calls: (readonly [TargetChange, boolean | undefined])[] = []
  const request = { audit: (change, written) => void calls.push([change, written]) } as TargetRequest
  return { calls, request }
}

test('a change whose audit entry the target wrote itself is not recorded again', async () => {
  const { calls, request } = recording()
  await auditedCall(
    request,
    () => [created],
    async ({ audit }) => audit(created, true),
  )
  expect(calls).toEqual([[created, true]])
})

test('the requested change is recorded when the target reports none', async () => {
  const { calls, request } = recording()
  await auditedCall(
    request,
    () => [created],
    async () => {},
  )
  expect(calls).toEqual([[created, undefined]])
})

test('nothing is recorded when the call fails without a report', async () => {
  const { calls, request } = recording()
  const call = auditedCall(
    request,
    () => [created],
    () => Promise.reject(new Error('away')),
  )
  await expect(call).rejects.toThrow('away')
  expect(calls).toEqual([])
})
