import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#storage/open.ts'
import { PgBossWakeUp } from '#storage/runs/pg-boss-wake-up.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/postgres.ts'
import { newRun } from '#testing/storage/workflow-stores.ts'
import { recordingLogger } from '#testing/workflow-fixture.ts'

describe.skipIf(postgresUrl() === '')('waking by pg-boss', () => {
  const open = async (schema: string, log = recordingLogger()) => {
    const url = await freshSchema()
    const wake = new PgBossWakeUp(url, log, schema)
    const storage = openStorage({ url, clock: systemClock, log: silentLogger, wake })
    onTestFinished(async () => {
      await wake.close()
      await storage.close()
      await runSql(url, `drop schema if exists ${schema} cascade`)
    })
    await storage.ready()
    return { url, wake, storage, log }
  }

  test('runs are stored before it is started and after it is closed', async () => {
    const { wake, storage } = await open('boss_test_closed')
    await storage.runs.start(newRun('early'))
    await wake.start(() => {})
    await storage.runs.start(newRun('in time'))
    await wake.close()
    await storage.runs.start(newRun('late'))
    expect((await storage.runs.list({ limit: 10 })).runs.length).toBe(3)
  })

  test('when its schema is gone, one commit fails and can be retried, and later ones send no job', async () => {
    const { url, wake, storage, log } = await open('boss_test_gone')
    await wake.start(() => {})
    // pg-boss uses its tables meanwhile, so that PostgreSQL may end this statement as a deadlock.
    await expect.poll(() => runSql(url, 'drop schema if exists boss_test_gone cascade')).toEqual([])
    await expect(storage.runs.start(newRun('one'))).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    expect(await storage.runs.get('one')).toBeUndefined()
    await storage.runs.start(newRun('one'))
    expect(await storage.runs.get('one')).toBeDefined()
    expect(log.lines.filter(({ level }) => level === 'warn').length).toBe(1)
  })

  test('two processes that start it concurrently are both woken', async () => {
    const { url, wake, storage } = await open('boss_test_two')
    const other = new PgBossWakeUp(url, silentLogger, 'boss_test_two')
    onTestFinished(() => other.close())
    let heard = 0
    await Promise.all([
      wake.start(() => {}),
      other.start(() => {
        heard++
      }),
    ])
    // The process that polls first gets the job, so it takes several until both have got one.
    for (let i = 0; i < 100 && heard === 0; i++) {
      await storage.runs.start(newRun(`run-${i}`))
      await delay(100)
    }
    expect(heard).toBeGreaterThan(0)
  })

  test('start rejects when the database cannot be reached, and leaves nothing open', async () => {
    const wake = new PgBossWakeUp('postgres://nobody@127.0.0.1:1/none', silentLogger)
    await expect(wake.start(() => {})).rejects.toThrow()
    await wake.close()
  })
})
