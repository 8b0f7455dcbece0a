import { describe, expect, test } from 'vitest'
import { silentLogger } from '#kernel/logger.ts'
import type { TargetRequest } from '#sdk/target/target.ts'
import type { Grant } from '#sdk/workflow/grant.ts'
import type { WorkflowUser } from '#sdk/workflow/workflow-task.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { runTask, type TaskRun } from '#testing/workflows/run-task.ts'
import { issuesOf, type TaskSpec } from '#testing/workflows/workflow-fixture.ts'

const now = new Date('2026-01-02T03:04:05Z')
const request = (): TargetRequest => ({
  workflow: { id: 'run-1', name: 'w' },
  idempotencyKey: 'run-1/1',
  requestor: 'asker',
  params: {},
  log: silentLogger,
  audit() {},
})

async function run(
  spec: TaskSpec,
  user: Partial<WorkflowUser>,
  store = new MemoryTarget(),
  params = {},
): Promise<TaskRun> {
  const host = fakeModuleHost({ targets: { store }, now: () => now.getTime() })
  return await runTask(spec, { user, host, request: params, forTarget: request })
}

const provision = (more: TaskSpec = {}): TaskSpec => ({ taskType: 'provision', target: 'store', sync: true, ...more })
const addGroup = (more: TaskSpec = {}): TaskSpec => ({ taskType: 'addGroup', name: 'vault', ...more })
const access = { target: 'store', subject: 'jjackson' }

describe('fields', () => {
  test('constants are checked, and fields exclude each other', () => {
    expect(
      issuesOf([
        addGroup({ expiresAfter: 'soon' }),
        provision({ expiresAt: '8h' }),
        addGroup({ expiresAfter: '8h', expiresAt: '$until$' }),
        provision({ expiresAfter: '$for$' }),
      ]),
    ).toEqual([
      '0.expiresAfter: "expiresAfter" must be a length of time such as 8h, 30d or P30D',
      '1.expiresAt: "expiresAt" must be an ISO 8601 time',
      '2.expiresAt: either "expiresAfter" or "expiresAt", not both',
    ])
  })
})

describe('an account', () => {
  test('expires after the configured time', async () => {
    expect((await run(provision({ expiresAfter: 'P1D' }), {})).grants).toEqual([
      { ...access, kind: 'user', name: 'jjackson', expires: { inMillis: 86_400_000 } },
    ])
    const until = { until: '2026-02-01T00:00:00Z' }
    expect((await run(provision({ expiresAt: '$until$' }), {}, new MemoryTarget(), until)).grants).toEqual([
      { ...access, kind: 'user', name: 'jjackson', expires: { at: new Date(until.until) } },
    ])
    expect((await run(provision({ expiresAt: '$until$' }), {})).grants).toEqual([])
    expect((await run(provision(), {})).grants).toEqual([])
  })

  test.each(['2026-01-02T03:04:05Z', '2025-01-01', 'nonsense', '2999-01-01'])(
    'that would expire at "%s" is not granted at all',
    async (until) => {
      const store = new MemoryTarget()
      const tried = run(provision({ expiresAt: '$until$' }), {}, store, { until })
      await expect(tried).rejects.toMatchObject({ code: 'BAD_REQUEST' })
      expect(store.calls).toEqual([])
    },
  )
})

describe('an expiry date that the requester chose', () => {
  const at = (day: number): Date => new Date(Date.UTC(2026, 1, day))
  const held = (name: string, expires: Date, kind: Grant['kind'] = 'group'): Grant => ({
    id: name,
    target: 'store',
    subject: 'jjackson',
    kind,
    name,
    granted: now,
    expires,
    state: 'active',
  })
  /** A run of the workflow "w", which gave these grants before, with two groups and the chosen day. */
  async function choose(grants: readonly Grant[], chosen: Date | undefined, expiresAt = at(10)) {
    const store = new MemoryTarget()
    const groups = ['vault', 'safe']
    const timedGroups = groups.map((name) => ({ name, expiry: { at: expiresAt } }))
    const host = fakeModuleHost({
      targets: { store },
      now: () => now.getTime(),
      grants: { through: async (workflow, login) => (workflow === 'w' && login === 'jjackson' ? grants : []) },
    })
    const options = { host, user: { groups, timedGroups }, forTarget: request }
    const done = runTask(provision(), { ...options, ...(chosen === undefined ? {} : { accessEnds: chosen }) })
    return {
      store,
      result: await done.then(
        ({ grants }) => grants.length,
        ({ code }: { code: string }) => code,
      ),
    }
  }

  test('is refused if the workflow gave all of the access for longer, and nothing is written', async () => {
    const { store, result } = await choose([held('Vault', at(11)), held('safe', at(12))], at(10))
    expect({ result, calls: store.calls }).toEqual({ result: 'CONFLICT', calls: [] })
  })

  test.each([
    ['a part ends earlier', [held('vault', at(11)), held('safe', at(9))], at(10), at(10)],
    ['a part is new', [held('vault', at(11)), held('safe', at(12), 'user')], at(10), at(10)],
    ['it repeats the step that gave it', [held('vault', at(10)), held('safe', at(10))], at(10), at(10)],
    ['the task has another date', [held('vault', at(11)), held('safe', at(12))], at(10), at(9)],
    ['nothing is there', [], at(10), at(10)],
  ] as const)('is accepted if %s', async (_, grants, chosen, expiresAt) => {
    expect((await choose(grants, chosen, expiresAt)).result).toBe(2)
  })

  test('of the configuration may be earlier, as in OpenUnison', async () => {
    expect((await choose([held('vault', at(11)), held('safe', at(12))], undefined)).result).toBe(2)
  })
})

describe('a membership', () => {
  test('gets its expiry by addGroup and is granted by the provision that writes it', async () => {
    const { user, grants } = await run(addGroup({ expiresAfter: '8h' }), { keepGroups: true })
    expect(grants).toEqual([])
    const store = new MemoryTarget([{ userID: 'jjackson', groups: ['staff'] }])
    expect((await run(provision(), user, store)).grants).toEqual([
      { ...access, kind: 'group', name: 'vault', expires: { inMillis: 8 * 3_600_000 } },
    ])
    expect(store.stored('jjackson')?.groups).toEqual(['staff', 'vault'])
  })

  test('that is removed again, or granted permanently, does not expire', async () => {
    const { user } = await run(addGroup({ expiresAfter: '8h' }), { keepGroups: true })
    const removed = await run(addGroup({ name: 'VAULT', remove: 'true', expiresAfter: '8h' }), user)
    expect((await run(provision(), removed.user)).grants).toEqual([])
    const again = await run(addGroup({ expiresAfter: '8h' }), { keepGroups: true })
    const kept = await run(addGroup({ name: 'Vault' }), again.user)
    expect((await run(provision(), kept.user)).grants).toEqual([])
  })

  test('is not granted by a task that does not list the group', async () => {
    const { user } = await run(addGroup({ expiresAfter: '8h' }), { keepGroups: true })
    expect((await run(provision({ groups: ['staff'] }), user)).grants).toEqual([])
    expect((await run(provision({ groups: ['VAULT'] }), user)).grants).toMatchObject([{ name: 'vault' }])
  })

  test('is not granted if the user’s groups no longer contain it', async () => {
    const { user } = await run(addGroup({ expiresAfter: '8h' }), { groups: ['staff'] })
    expect((await run(provision(), { ...user, groups: ['staff'] })).grants).toEqual([])
    expect((await run(provision(), user)).grants).toMatchObject([{ name: 'vault' }])
  })

  test('has the new name if groups are renamed', async () => {
    const { user } = await run(addGroup({ expiresAfter: '8h' }), { groups: [] })
    const map = { taskType: 'customTask', className: 'tasks.MapGroups', params: { map: ['safe=vault'] } }
    const mapped = await run(map, user)
    expect((await run(provision(), mapped.user)).grants).toMatchObject([{ name: 'safe' }])
  })
})
