import { setTimeout as delay } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { silentLogger } from '#kernel/logger.ts'
import { next, type TaskContext } from '#sdk/workflow/workflow-task.ts'
import { onEachDatabase } from '#testing/databases/databases.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { type DurableProcess, dyingStore, openDurable } from '#testing/workflows/durable-fixture.ts'
import type { FixtureOptions } from '#testing/workflows/workflow-fixture.ts'
import { subjectQueue } from '#workflows/steps/workflow-services.ts'
import { NotifyWakeUp } from '#workflows/store/notify-wake-up.ts'
import type { RunWakeUp } from '#workflows/store/wake-up.ts'
import { InProcessWakeUp } from '#workflows/store/wake-up.ts'
import { RunWorker } from './run-worker.ts'

const asynchronous = { asynchronous: true } as const
/** So that a worker can only hear a wake-up call. */
const noSweep = { sweepMillis: 600_000 }

/** Three processes on PostgreSQL; on SQLite one, whose three workers share the call. */
async function openFleet(url: string, options: Omit<FixtureOptions, 'services'>): Promise<DurableProcess[]> {
  if (readAddress(url).dialect === 'sqlite') {
    const process = await openDurable(url, options, { wake: new InProcessWakeUp() })
    return [process, process, process]
  }
  const open = async (): Promise<DurableProcess> => {
    const wake = new NotifyWakeUp(url, silentLogger)
    const process = await openDurable(url, options, { wake })
    onTestFinished(() => wake.close())
    return process
  }
  return [await open(), await open(), await open()]
}

/** Starts the workers, and the calls to them. */
async function startWorkers(workers: readonly { worker: RunWorker; wake: RunWakeUp }[]): Promise<void> {
  const byWake = new Map<RunWakeUp, RunWorker[]>()
  for (const { worker, wake } of workers) {
    byWake.set(wake, [...(byWake.get(wake) ?? []), worker])
    worker.start()
    onTestFinished(() => worker.close())
  }
  await Promise.all(Array.from(byWake, ([wake, all]) => wake.start(() => all.forEach((one) => void one.wake()))))
}

const workerOf = (process: DurableProcess, limits = {}, changed = {}): { worker: RunWorker; wake: RunWakeUp } => ({
  worker: new RunWorker({ ...process.services, ...changed }, (work) => work(process.workflows), limits),
  wake: process.wake,
})

onEachDatabase('the dispatcher', (freshUrl) => {
  test('wakes a worker for runs that another process started, and for runs that a commit makes ready', async () => {
    const ran: string[] = []
    const tasks = {
      note: ({ request }: TaskContext) => {
        ran.push(String(request.get('n')))
        return next
      },
    }
    const options = { workflows: { w: [{ taskType: 'note' }] }, tasks }
    const [one, , three] = await openFleet(await freshUrl(), options)
    if (one === undefined || three === undefined) throw new Error('no fleet')
    await startWorkers([workerOf(three, noSweep)])
    if (one.wake !== three.wake) await one.wake.start(() => {})
    const ids: string[] = []
    // Of one subject, so that each but the first becomes claimable by the end of the previous one.
    for (const n of ['1', '2', '3']) ids.push((await one.run('w', { ...asynchronous, params: { n } })).id)
    for (const id of ids) await one.settled(id, 'completed')
    expect(ran).toEqual(['1', '2', '3'])
  })

  test('does not notify about a rollback', async () => {
    const [one] = await openFleet(await freshUrl(), { workflows: {} })
    if (one === undefined) throw new Error('no fleet')
    let wakes = 0
    await one.wake.start(() => {
      wakes++
    })
    const run = newRun('same')
    await one.storage.runs.start(run)
    await expect.poll(() => wakes, { timeout: 5_000 }).toBeGreaterThan(0)
    await delay(1_500)
    const before = wakes
    await expect(one.storage.runs.start(run)).rejects.toMatchObject({ code: 'CONFLICT' })
    await delay(1_500)
    expect(wakes).toBe(before)
  })

  test('three workers, one killed: every run is executed, and its effect happens once', async () => {
    const effects = new Map<string, number>()
    const tasks = {
      effect: ({ forTarget }: TaskContext) => {
        const { idempotencyKey } = forTarget('store')
        effects.set(idempotencyKey, (effects.get(idempotencyKey) ?? 0) + 1)
        return next
      },
    }
    const options = { workflows: { w: [{ taskType: 'effect' }, { taskType: 'effect' }] }, tasks }
    const fleet = await openFleet(await freshUrl(), options)
    const [one, two, three] = fleet
    if (one === undefined || two === undefined || three === undefined) throw new Error('no fleet')
    // Only the lease of the killed one ends: a busy machine renews short ones too late.
    const limits = { leaseMillis: 30_000, sweepMillis: 200, drainMillis: 1 }
    const dying = { runs: dyingStore(three.storage.runs, 'before-commit'), subjects: subjectQueue() }
    const ids: string[] = []
    const start = async (n: number): Promise<void> => {
      ids.push((await one.run('w', { ...asynchronous, userID: `user${n}` })).id)
    }
    for (let n = 0; n < 20; n++) await start(n)
    await startWorkers([workerOf(three, { ...limits, leaseMillis: 600, atOnce: 5 }, dying)])
    await expect.poll(() => effects.size, { timeout: 5_000 }).toBeGreaterThan(0)
    await startWorkers([workerOf(one, limits), workerOf(two, limits)])
    for (let n = 20; n < 60; n++) await start(n)
    for (const id of ids) await one.settled(id, 'completed')
    // What the killed one had begun came again under the same key, by which a target recognizes it.
    expect([...effects.keys()].sort()).toEqual(ids.flatMap((id) => [`${id}/1`, `${id}/2`]).sort())
    const twice = [...effects.values()].filter((count) => count > 1)
    expect(twice.length).toBeLessThanOrEqual(5)
    for (const id of ids) expect((await one.storage.runs.steps(id)).length).toBe(2)
  })
})
