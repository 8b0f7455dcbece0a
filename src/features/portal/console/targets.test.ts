import { expect, test } from 'vitest'
import { openMain, someone } from '#testing/modules/main-fixture.ts'
import type { TargetStatus } from '#workflows/targets/target-status.ts'

const admin = someone('root', ['people', 'admins'])
const since = new Date('2030-01-01T00:00:00Z')
const status = (name: string, more: Partial<TargetStatus> = {}): TargetStatus => ({
  name,
  className: 'targets.Ldap',
  health: 'up',
  millis: 3,
  failures: 0,
  since,
  incidents: 0,
  ...more,
})

test('targets are listed with their health, their last failure and their incidents', async () => {
  const lastFailure = { time: since, code: 'TARGET_UNREACHABLE', message: 'connect ECONNREFUSED' }
  const { send } = await openMain({
    params: { administrators: 'filter;(groups=admins)' },
    readTargets: async () => [
      status('crm', { health: 'down', problem: 'no answer', failures: 4, lastFailure, incidents: 2 }),
      status('mail'),
    ],
  })
  await expect(send('GET', '/admin/targets')).rejects.toMatchObject({ code: 'ACCESS_DENIED' })
  const { body } = await send('GET', '/admin/targets', undefined, admin)
  expect(body.targets).toEqual([
    {
      name: 'crm',
      className: 'targets.Ldap',
      health: 'down',
      millis: 3,
      problem: 'no answer',
      failures: 4,
      since: since.toISOString(),
      lastFailure: { ...lastFailure, time: since.toISOString() },
      incidents: 2,
    },
    expect.objectContaining({ name: 'mail', health: 'up' }),
  ])
  const found = await send('GET', '/admin/targets?q=MAI', undefined, admin)
  expect(found.body.targets).toMatchObject([{ name: 'mail' }])
})
