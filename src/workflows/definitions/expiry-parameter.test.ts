import { describe, expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { startWorkflows } from '#testing/workflows/workflow-fixture.ts'
import { runOf } from '#workflows/runs/workflows.ts'

const tasks = [
  { taskType: 'addGroup', name: 'vault', expiresAt: '$accessEnds$' },
  { taskType: 'watch' },
  { taskType: 'provision', target: 'store', sync: true },
]
const day = 86_400_000

/** The clock of the fixture is at 2026-01-02T03:04:05Z. */
async function start(required = false) {
  const seen: { end: unknown; timed: unknown }[] = []
  const watch = ({ request, user }: TaskContext) => {
    seen.push({ end: request.get('accessEnds'), timed: user.timedGroups })
    return next
  }
  const { run } = await startWorkflows({
    workflows: {
      offers: tasks,
      plain: [{ taskType: 'watch' }],
      calls: [{ taskType: 'callWorkflow', name: 'offers' }],
    },
    accessEnds: { offers: { required, longest: { months: 0, millis: 30 * day } } },
    targets: { store: new MemoryTarget() },
    tasks: { watch },
  })
  return {
    seen,
    ask: (accessEnds?: string) => run('offers', { params: accessEnds === undefined ? {} : { accessEnds } }),
    run,
  }
}

describe('a run', () => {
  test('gets the expiry as a time, until which tasks grant access', async () => {
    const { seen, ask } = await start()
    await ask('2026-01-10')
    const at = new Date('2026-01-10T23:59:59Z')
    expect(seen).toEqual([{ end: at.toISOString(), timed: [{ name: 'vault', expiry: { at } }] }])
  })

  test('without one grants access that does not expire', async () => {
    const { seen, ask } = await start()
    await ask()
    await ask(' ')
    expect(seen.map(({ timed }) => timed)).toEqual([undefined, undefined])
    expect(seen.map(({ end }) => end)).toEqual([undefined, ''])
  })

  test("that another workflow calls can't bypass a required expiry", async () => {
    const { seen, run } = await start(true)
    for (const params of [{}, { accessEnds: ' ' }, { accessEnds: 'never' }]) {
      await expect(run('calls', { params })).rejects.toMatchObject({
        code: 'BAD_REQUEST',
        publicText: 'End date is required.',
      })
    }
    expect(seen).toEqual([])
    await run('calls', { params: { accessEnds: '2026-01-10' } })
    expect(seen).toHaveLength(1)
    const optional = await start()
    await optional.run('calls', {})
    expect(optional.seen).toHaveLength(1)
  })

  test.each([
    ['2026-03-10', 'End date is later than allowed.'],
    ['2026-01-01', 'End date is not in the future.'],
    ['never', 'End date is not a date or time.'],
    [undefined, 'End date is required.'],
    ['', 'End date is required.'],
  ])('with %j does not begin, for any caller', async (end, publicText) => {
    const { seen, ask } = await start(true)
    await expect(async () => await ask(end)).rejects.toMatchObject({ code: 'BAD_REQUEST', publicText })
    expect(seen).toEqual([])
  })

  test('of a workflow without an expiry passes the parameter unchanged', async () => {
    const { seen, run } = await start()
    await run('plain', { params: { accessEnds: 'never' } })
    expect(seen.map(({ end }) => end)).toEqual(['never'])
  })
})

describe('a stored run', () => {
  const endOf = (params: Record<string, string>) => {
    const user = { userID: 'u', attributes: new Attributes(), groups: [] }
    const call = { head: { workflow: 'w', requester: 'c' }, params, user }
    return runOf(call, { name: 'w', hash: 'h', lists: new Map() }, new Map()).head.accessEnds
  }

  test('has the requested expiry', () => {
    expect(endOf({ a: 'b', accessEnds: '2026-01-10T23:59:59.000Z' })).toEqual(new Date('2026-01-10T23:59:59Z'))
  })

  test('has none if none was requested', () => {
    expect(endOf({})).toBeUndefined()
    expect(endOf({ accessEnds: '' })).toBeUndefined()
    expect(endOf({ accessEnds: 'never' })).toBeUndefined()
  })
})
