import { expect, test, vi } from 'vitest'
import { GatewayError } from '#kernel/errors.ts'
import { hasLookups, type LookupTarget, type Target } from '#sdk/target/target.ts'
import { TargetHealth } from './target-health.ts'

class Crm {
  readonly #name = 'crm'
  fail: GatewayError | undefined
  readonly groupHasOwnId = true

  async lookupUserByLogin(login: string): Promise<undefined> {
    if (this.fail !== undefined) throw this.fail
    if (login === this.#name) throw new Error('not reached')
  }

  async findUser(): Promise<undefined> {
    await this.lookupUserByLogin('')
  }
}

const at = new Date('2030-01-01T00:00:00Z')
const health = () => new TargetHealth(() => at, { incidentsByTarget: async () => new Map([['crm', 2]]) })

test('counts failures of the system behind a target, and not refusals of a value', async () => {
  const watcher = health()
  const crm = new Crm()
  const watched = watcher.watch('crm', 'targets.Crm', crm as unknown as Target) as LookupTarget
  expect(hasLookups(watched)).toBe(true)
  expect(watched.groupHasOwnId).toBe(true)
  expect(await watched.lookupUserByLogin('ada')).toBeUndefined()
  crm.fail = new GatewayError('CONFLICT', 'taken')
  await expect(watched.lookupUserByLogin('ada')).rejects.toMatchObject({ code: 'CONFLICT' })
  crm.fail = new GatewayError('TARGET_UNREACHABLE', 'connect ECONNREFUSED')
  await expect(watched.lookupUserByLogin('ada')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  crm.fail = undefined
  expect(await watcher.list()).toMatchObject([
    {
      name: 'crm',
      className: 'targets.Crm',
      health: 'up',
      failures: 1,
      lastFailure: { time: at, code: 'TARGET_UNREACHABLE', message: 'connect ECONNREFUSED' },
      incidents: 2,
    },
  ])
})

test('a target that fails the check is down, and one without lookups is unchecked', async () => {
  const watcher = health()
  const crm = new Crm()
  crm.fail = new GatewayError('TARGET_UNREACHABLE', 'connect ECONNREFUSED')
  watcher.watch('crm', 'targets.Crm', crm as unknown as Target)
  watcher.watch('log', 'targets.Log', { findUser: async () => undefined } as unknown as Target)
  expect(await watcher.list()).toMatchObject([
    { name: 'crm', health: 'down', problem: 'connect ECONNREFUSED', failures: 0 },
    { name: 'log', health: 'unchecked', incidents: 0 },
  ])
})

test('a check ends even if the target never answers, and is not repeated at once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const watcher = health()
    const lookupUserByLogin = vi.fn(() => new Promise<undefined>(() => {}))
    watcher.watch('crm', 'targets.Crm', { lookupUserByLogin } as unknown as Target)
    const lists = [watcher.list(), watcher.list()]
    await vi.advanceTimersByTimeAsync(3_000)
    for (const list of lists) {
      expect(await list).toMatchObject([{ health: 'down', problem: 'no answer within 3000 ms' }])
    }
    expect(lookupUserByLogin).toHaveBeenCalledTimes(1)
  } finally {
    vi.useRealTimers()
  }
})
