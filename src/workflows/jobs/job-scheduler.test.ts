import { describe, expect, test } from 'vitest'
import { statement } from '#database/statement.ts'
import { silentLogger } from '#kernel/logger.ts'
import { readSchedule } from '#kernel/schedule.ts'
import type { Job, JobContext } from '#sdk/job/job.ts'
import { memoryDatabase } from '#testing/databases/memory-database.ts'
import { JobRunStore } from '#workflows/store/job-run-store.ts'
import { JobScheduler, type ScheduledJob } from './job-scheduler.ts'

const minute = 60_000
const start = Date.UTC(2025, 2, 10, 12, 0, 30)

/** One database, and a clock that the test sets for all. */
function world() {
  const time = { now: start }
  const database = memoryDatabase(() => new Date(time.now))
  const store = new JobRunStore(database)
  const outcomes: string[] = []
  const process = (jobs: readonly ScheduledJob[], own: { now: number } = time, times = {}) =>
    new JobScheduler(
      jobs,
      {
        store,
        worker: `w${Math.random()}`,
        clock: () => new Date(own.now),
        log: silentLogger,
        meter: { ended: (job, outcome) => void outcomes.push(`${job} ${outcome}`) },
      },
      { sweepMillis: 0, graceMillis: 20, drainMillis: 20, ...times },
    )
  return { time, database, store, outcomes, process }
}

function everyMinute(run: Job['run'], more: Partial<ScheduledJob> = {}): ScheduledJob {
  const fields = { seconds: '0', minutes: '*', hours: '*', dayOfMonth: '*', month: '*', dayOfWeek: '?', year: '*' }
  const schedule = readSchedule(fields, 'UTC', (field, message) => {
    throw new Error(`${field} ${message}`)
  })
  if (schedule === undefined) throw new Error('no schedule')
  return { name: 'tidy', schedule, timeoutMillis: minute, job: { run }, ...more }
}

/** A job that records its runs. */
function recorded() {
  const runs: string[] = []
  const run = async ({ due, attempt }: JobContext) => {
    runs.push(`${due.toISOString().slice(11, 19)} ${attempt}`)
    return {}
  }
  return { runs, run }
}

const never = new Promise<never>(() => {})

test('runs each due time once in all processes, and no past times of a new job', async () => {
  const { time, process, outcomes } = world()
  const { runs, run } = recorded()
  const processes = [1, 2, 3].map(() => process([everyMinute(run)]))
  for (let i = 0; i < 5; i++) {
    await Promise.all(processes.map((one) => one.turn()))
    await Promise.all(processes.map((one) => one.turn()))
    await Promise.all(processes.map((one) => one.idle()))
    time.now += minute
  }
  expect(runs).toEqual(['12:01:00 1', '12:02:00 1', '12:03:00 1', '12:04:00 1'])
  expect(outcomes).toEqual(Array(4).fill('tidy done'))
})

test('catches up the latest due time after a downtime', async () => {
  const { time, process } = world()
  const { runs, run } = recorded()
  const before = process([everyMinute(run)])
  await before.turn()
  time.now += minute
  await before.turn()
  await before.close()
  time.now += 10 * minute
  const again = process([everyMinute(run)])
  await again.turn()
  await again.idle()
  await again.turn()
  expect(runs).toEqual(['12:01:00 1', '12:11:00 1'])
})

test('does not overlap runs of a job, in this process or another', async () => {
  const { time, process } = world()
  const { runs, run } = recorded()
  const gate = Promise.withResolvers<void>()
  const slow = async (context: JobContext) => {
    await run(context)
    if (runs.length === 1) await gate.promise
    return {}
  }
  const times = { leaseMillis: 60 * minute }
  const [one, two] = [process([everyMinute(slow)], time, times), process([everyMinute(slow)], time, times)]
  await one.turn()
  await two.turn()
  for (let i = 0; i < 3; i++) {
    time.now += minute / 2
    for (const row of await Promise.all([one.turn(), two.turn()])) expect(row).toBeGreaterThan(0)
  }
  expect(runs).toEqual(['12:01:00 1'])
  gate.resolve()
  await one.idle()
  await Promise.all([one.turn(), two.turn()])
  await Promise.all([one.idle(), two.idle()])
  expect(runs).toEqual(['12:01:00 1', '12:02:00 1'])
})

test('begins no run early when the clock is ahead of the database, and runs it later', async () => {
  const { time, process } = world()
  const { runs, run } = recorded()
  const ahead = { now: time.now }
  const one = process([everyMinute(run)], ahead)
  await one.turn()
  ahead.now += minute
  expect(await one.turn()).toBe(1000)
  expect(runs).toEqual([])
  time.now += minute
  await one.turn()
  expect(runs).toEqual(['12:01:00 1'])
})

test('repeats no run after the clock was set back', async () => {
  const { time, process } = world()
  const { runs, run } = recorded()
  const local = { now: time.now }
  const one = process([everyMinute(run)], local)
  await one.turn()
  for (const step of [minute, minute, -90 * minute, minute, 0]) {
    local.now += step
    time.now = Math.max(time.now, local.now)
    await one.turn()
    await one.idle()
  }
  expect(runs).toEqual(['12:01:00 1', '12:02:00 1'])
})

describe('a worker that died', () => {
  test('is replaced by one worker, which gets the number of the attempt', async () => {
    const { time, store, process } = world()
    const { runs, run } = recorded()
    await store.begin({ job: 'tidy', due: new Date(start - 30_000) }, 'dead', minute)
    const processes = [1, 2].map(() => process([everyMinute(run)]))
    await Promise.all(processes.map((one) => one.turn()))
    expect(runs).toEqual([])
    time.now += minute
    await Promise.all(processes.map((one) => one.turn()))
    await Promise.all(processes.map((one) => one.idle()))
    expect(runs).toEqual(['12:00:00 2'])
    await Promise.all(processes.map((one) => one.turn()))
    expect(runs).toEqual(['12:00:00 2', '12:01:00 1'])
  })

  test('is replaced a limited number of times', async () => {
    const { time, store, process, outcomes } = world()
    const { runs, run } = recorded()
    const due = new Date(start - 30_000)
    for (let i = 0; i < 3; i++) {
      await store.begin({ job: 'tidy', due }, 'dead', minute)
      time.now += minute
    }
    const one = process([everyMinute(run)])
    await one.turn()
    await one.idle()
    expect((await store.list('tidy', 1))[0]).toMatchObject({ state: 'failed', error: 'each of its runners has died' })
    expect(outcomes).toEqual(['tidy failed'])
    expect(runs).toEqual([])
  })

  test('leaves a run that fails after a day if its job is no longer configured', async () => {
    const { time, store, process } = world()
    await store.begin({ job: 'gone', due: new Date(start - 30_000) }, 'dead', minute)
    const one = process([everyMinute(recorded().run)])
    time.now += minute
    await one.turn()
    expect((await store.list('gone', 1))[0]?.state).toBe('running')
    time.now += 25 * 60 * minute
    await one.turn()
    expect((await store.list('gone', 1))[0]?.state).toBe('failed')
  })
})

describe('failures', () => {
  test('records and counts a failed run, and runs the next due time', async () => {
    const { time, store, process, outcomes } = world()
    const one = process([everyMinute(() => Promise.reject(new Error('no luck')))])
    await one.turn()
    for (let i = 0; i < 2; i++) {
      time.now += minute
      await one.turn()
      await one.idle()
    }
    expect(outcomes).toEqual(['tidy failed', 'tidy failed'])
    expect((await store.list('tidy', 5)).map(({ state, error }) => `${state} ${error}`)).toEqual([
      'failed no luck',
      'failed no luck',
    ])
  })

  test('aborts a run that takes too long, and gives it up if it does not end', async () => {
    const { time, store, process } = world()
    const reported: boolean[] = []
    const stuck = ({ signal }: JobContext) => {
      signal.addEventListener('abort', () => reported.push(true))
      return never
    }
    const one = process([everyMinute(stuck, { timeoutMillis: 10 })])
    await one.turn()
    time.now += minute
    await one.turn()
    await one.idle()
    expect(reported).toEqual([true])
    expect((await store.list('tidy', 1))[0]).toMatchObject({ state: 'failed', error: 'it took longer than 0.01 s' })
  })

  test('aborts a run that another worker has claimed, and does not record its end', async () => {
    const { time, database, store, process, outcomes } = world()
    const one = process([everyMinute(() => never)], undefined, { leaseMillis: 30 })
    await one.turn()
    time.now += minute
    await one.turn()
    await database.transaction((tx) => statement('update job_runs set fence = fence + 1').run(tx, {}))
    await one.idle()
    expect((await store.list('tidy', 1))[0]?.state).toBe('running')
    expect(outcomes).toEqual(['tidy left'])
  })

  test('waits for runs when it is closed, then leaves them to another process', async () => {
    const { time, store, process, outcomes } = world()
    const closed: string[] = []
    const job: Job = { run: () => never, close: () => void closed.push('closed') }
    const one = process([everyMinute(job.run, { job })])
    await one.turn()
    time.now += minute
    await one.turn()
    await one.close()
    expect((await store.list('tidy', 1))[0]?.state).toBe('running')
    expect(outcomes).toEqual(['tidy left'])
    expect(closed).toEqual(['closed'])
    time.now += minute
    await one.turn()
    expect(await store.list('tidy', 5)).toHaveLength(1)
  })

  test('retries to record the end of a run', async () => {
    const { time, store, process } = world()
    const end = store.end.bind(store)
    let failures = 2
    store.end = (claim, error) => (failures-- > 0 ? Promise.reject(new Error('down')) : end(claim, error))
    const { runs, run } = recorded()
    const one = process([everyMinute(run)], time, { leaseMillis: 100 })
    await one.turn()
    time.now += minute
    await one.turn()
    await one.idle()
    expect((await store.list('tidy', 1))[0]?.state).toBe('done')
    expect(runs).toHaveLength(1)
  })

  test('retries after a database failure, and runs other jobs meanwhile', async () => {
    const { time, store, process } = world()
    const { runs, run } = recorded()
    const failing = everyMinute(run, { name: 'failing' })
    const list = store.list.bind(store)
    store.list = (job, limit) => (job === 'failing' ? Promise.reject(new Error('down')) : list(job, limit))
    const one = process([failing, everyMinute(run)])
    await one.turn()
    time.now += minute
    expect(await one.turn()).toBe(1000)
    expect(runs).toEqual(['12:01:00 1'])
    await one.idle()
    store.list = list
    await one.turn()
    time.now += minute
    await one.turn()
    expect(runs).toHaveLength(3)
  })
})

test('runs in the background once started, and sleeps until the next due time', async () => {
  const { process, time } = world()
  const one = process([everyMinute(recorded().run)])
  expect(await one.turn()).toBe(5000)
  time.now += 29_000
  expect(await one.turn()).toBe(1000)
  const { runs, run } = recorded()
  const real = { now: Date.now() - 1000, asked: 0 }
  const latest = () => {
    real.asked++
    return new Date(real.now)
  }
  const fast = new JobScheduler(
    [everyMinute(run, { schedule: { next: () => new Date(real.now), latest } })],
    {
      store: new JobRunStore(memoryDatabase()),
      worker: 'w',
      clock: () => new Date(),
      log: silentLogger,
      meter: { ended() {} },
    },
    { idleMillis: 5 },
  ).start()
  await expect.poll(() => real.asked).toBeGreaterThan(1)
  expect(runs).toEqual([])
  real.now = Date.now()
  await expect.poll(() => runs.length).toBe(1)
  await fast.close()
})
