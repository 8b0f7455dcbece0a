import { describe, expect, test } from 'vitest'
import { type LogFields, silentLogger } from '#kernel/logger.ts'
import { MemoryRateLimits } from '#kernel/rate-limit.ts'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import { AdmissionAudit } from './admission-audit.ts'
import type { PodAdmission } from './pod-admission.ts'

const admission: PodAdmission = {
  requestId: 'r-1',
  namespace: 'shop',
  serviceAccount: 'cart',
  pod: 'cart-',
  owner: 'ReplicaSet/cart-5d9',
  decision: 'injected',
  endpoints: ['aws'],
  reasons: [],
}

describe('the audit of admissions', () => {
  const rows: AuditEntry[] = []
  const clock = () => new Date(0)
  const rateLimits = new MemoryRateLimits(clock)
  const audit = new AdmissionAudit({
    audit: { append: async (some) => void rows.push(...some) },
    rateLimits,
    clock,
    log: silentLogger,
  })

  test('has one compact row for a pod', async () => {
    await audit.record(admission)
    await audit.record({ ...admission, decision: 'refused', endpoints: [], reasons: ['no annotation'] })
    expect(rows).toMatchObject([
      {
        kind: 'pod',
        action: 'add',
        value: 'injected',
        subject: 'system:serviceaccount:shop:cart',
        target: 'sts.injector',
      },
      { kind: 'pod', action: 'refuse', value: 'refused', requestId: 'r-1' },
    ])
    expect(rows.map(({ reason = '' }) => JSON.parse(reason) as unknown)).toEqual([
      { pod: 'cart-', owner: 'ReplicaSet/cart-5d9', endpoints: ['aws'] },
      { pod: 'cart-', owner: 'ReplicaSet/cart-5d9', endpoints: [], why: 'no annotation' },
    ])
    for (const row of rows) expect(JSON.stringify(row).length).toBeLessThan(500)
  })

  test('is limited, and counts what it leaves out', async () => {
    for (let i = 0; i < 600; i++) await audit.record(admission)
    expect(rows).toHaveLength(500)
  })

  test('does not wait for a store that does not answer', async () => {
    const never = new AdmissionAudit({
      audit: { append: () => new Promise(() => {}) },
      rateLimits: new MemoryRateLimits(clock),
      clock,
      log: silentLogger,
    })
    await expect(never.record(admission)).resolves.toBeUndefined()
  })

  test('logs what a failing store did not accept', async () => {
    const logged: unknown[] = []
    const log = { ...silentLogger, error: (_: string, fields?: LogFields) => void logged.push(fields) }
    const append = async (): Promise<never> => Promise.reject(new Error('full'))
    await new AdmissionAudit({ audit: { append }, rateLimits: new MemoryRateLimits(clock), clock, log }).record(
      admission,
    )
    expect(logged).toMatchObject([{ pod: 'cart-', decision: 'injected', err: new Error('full') }])
  })
})
