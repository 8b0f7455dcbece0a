import { expect, test } from 'vitest'
import { readWorkload, subjectOf } from './workload.ts'

test('a login of a service account has a namespace and a name', () => {
  const workload = { namespace: 'shop', serviceAccount: 'cart' }
  expect(readWorkload('system:serviceaccount:shop:cart')).toEqual(workload)
  expect(subjectOf(workload)).toBe('system:serviceaccount:shop:cart')
  for (const login of ['ada', 'system:serviceaccount:shop', 'system:serviceaccount:a:b:c', '']) {
    expect(readWorkload(login)).toBeUndefined()
  }
  expect(subjectOf({ namespace: 'shop' })).toBeUndefined()
})
