import { expect, test } from 'vitest'
import type { TargetChange, TargetRequest } from '#sdk/target/target.ts'
import { auditedCall } from './audited-call.ts'

const created: TargetChange = { subject: 'entry', action: 'add', attribute: 'uid', value: 'ada' }

function recording() {
  const changes: TargetChange[] = []
  const request = { audit: (change) => void changes.push(change) } as TargetRequest
  return { changes, request }
}

test('the mark of a change whose audit entry the target wrote itself is passed on', async () => {
  const { changes, request } = recording()
  await auditedCall(
    request,
    () => [created],
    async ({ audit }) => audit({ ...created, audited: true }),
  )
  expect(changes).toEqual([{ ...created, audited: true }])
})

test('the requested change is recorded when the target reports none', async () => {
  const { changes, request } = recording()
  await auditedCall(
    request,
    () => [created],
    async () => {},
  )
  expect(changes).toEqual([created])
})

test('nothing is recorded when the call fails without a report', async () => {
  const { changes, request } = recording()
  const call = auditedCall(
    request,
    () => [created],
    () => Promise.reject(new Error('away')),
  )
  await expect(call).rejects.toThrow('away')
  expect(changes).toEqual([])
})
