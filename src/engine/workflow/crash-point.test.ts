import { expect, test } from 'vitest'
import { chaosLease, crashHook, noCrash } from '#engine/workflow/crash-point.ts'

test('nothing but the harness can make a process crash or let go early', () => {
  const point = { GATEHOUSE_CHAOS_POINT: 'after-claim', GATEHOUSE_CHAOS_LEASE_MILLIS: '5' }
  for (const environment of [{}, point, { ...point, GATEHOUSE_CHAOS: 'true' }, { GATEHOUSE_CHAOS: '1' }]) {
    expect(crashHook(environment)).toBe(noCrash)
    expect(chaosLease(environment)).toEqual({})
  }
  expect(crashHook({ GATEHOUSE_CHAOS: '1', GATEHOUSE_CHAOS_POINT: 'after-lunch' })).toBe(noCrash)
  expect(crashHook({ ...point, GATEHOUSE_CHAOS: '1' })).not.toBe(noCrash)
  expect(chaosLease({ ...point, GATEHOUSE_CHAOS: '1' }, 2)).toEqual({ leaseMillis: 10 })
  expect(chaosLease({ GATEHOUSE_CHAOS: '1', GATEHOUSE_CHAOS_LEASE_MILLIS: 'x' })).toEqual({})
})
