import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import { NotifyWakeUp } from './notify-wake-up.ts'

/** A relay to the database whose open connections stop to pass anything on, without an end. */
async function startFreezingRelay(url: string) {
  const address = new URL(url)
  const to = { host: address.hostname, port: Number(address.port) }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(to)
    for (const socket of [client, behind]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
    }
    client.pipe(behind)
    behind.pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  address.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause()
  }
  return { url: address.href, freeze }
}

describe.skipIf(postgresUrl() === '')('waking by NOTIFY', () => {
  const open = async (url: string, log = recordingLogger()) => {
    const wake = new NotifyWakeUp(url, log)
    const storage = openStorage({ url, clock: systemClock, log: silentLogger, wake })
    onTestFinished(async () => {
      await wake.close()
      await storage.close()
    })
    await storage.ready()
    return { wake, storage, log }
  }
  const counter = () => {
    const heard = { count: 0 }
    return { heard, wake: () => void heard.count++ }
  }
  /** With a name for its connections, so that the connections of no other test are ended. */
  const named = (url: string, name: string): string => {
    const address = new URL(url)
    address.searchParams.set('application_name', name)
    return address.href
  }

  test('runs are stored before it is started and after it is closed', async () => {
    const { wake, storage } = await open(await freshSchema())
    await storage.runs.start(newRun('early'))
    await wake.start(() => {})
    await storage.runs.start(newRun('in time'))
    await wake.close()
    await storage.runs.start(newRun('late'))
    expect((await storage.runs.list({ limit: 10 })).runs.length).toBe(3)
  })

  test('every process is woken, the one that stored the run directly', async () => {
    const url = await freshSchema()
    const [one, two, three] = [await open(url), await open(url), await open(url)]
    const heard = [one, two, three].map(() => counter())
    await Promise.all([one, two, three].map(({ wake }, i) => wake.start(heard[i]?.wake ?? (() => {}))))
    const before = heard[0]?.heard.count ?? 0
    await one.storage.runs.start(newRun('a'))
    expect(heard[0]?.heard.count).toBeGreaterThan(before)
    await expect.poll(() => heard[1]?.heard.count, { timeout: 20_000 }).toBeGreaterThan(0)
    await expect.poll(() => heard[2]?.heard.count, { timeout: 20_000 }).toBeGreaterThan(0)
  })

  test('a notification within the pause after another one is sent at its end', async () => {
    const url = await freshSchema()
    const [one, two] = [await open(url), await open(url)]
    const { heard, wake } = counter()
    await one.wake.start(() => {})
    await two.wake.start(wake)
    await one.storage.runs.start(newRun('a'))
    await expect.poll(() => heard.count, { timeout: 20_000 }).toBeGreaterThan(0)
    const first = heard.count
    await one.storage.runs.start(newRun('b'))
    await expect.poll(() => heard.count, { timeout: 20_000 }).toBeGreaterThan(first)
  })

  test('a lost connection is opened again, and wakes for what was missed', async () => {
    const plain = await freshSchema()
    const { wake, storage, log } = await open(named(plain, 'lost wake-up'))
    const { heard, wake: note } = counter()
    await wake.start(note)
    const connections = "from pg_stat_activity where application_name = 'lost wake-up' and query like 'listen %'"
    expect(await runSql(plain, `select pg_terminate_backend(pid) as ended ${connections}`)).toEqual([{ ended: true }])
    await expect.poll(() => heard.count, { timeout: 20_000 }).toBeGreaterThan(0)
    expect(log.lines.some(({ level }) => level === 'warn')).toBe(true)
    const before = heard.count
    const other = await open(plain)
    await other.wake.start(() => {})
    await other.storage.runs.start(newRun('after'))
    await expect.poll(() => heard.count, { timeout: 20_000 }).toBeGreaterThan(before)
    expect(await storage.runs.get('after')).toBeDefined()
  })

  test('a connection that no longer answers is opened again, and does not delay the end', async () => {
    const plain = await freshSchema()
    const relay = await startFreezingRelay(plain)
    const { heard, wake: note } = counter()
    const wake = new NotifyWakeUp(relay.url, silentLogger)
    await wake.start(note)
    relay.freeze()
    wake.committed()
    expect(heard.count).toBe(1)
    await expect.poll(() => heard.count, { timeout: 40_000 }).toBe(2)
    const other = await open(plain)
    await other.wake.start(() => {})
    await other.storage.runs.start(newRun('after'))
    await expect.poll(() => heard.count, { timeout: 20_000 }).toBeGreaterThan(2)
    relay.freeze()
    await wake.close()
  })

  test('start rejects when the database cannot be reached, and leaves nothing open', async () => {
    const wake = new NotifyWakeUp('postgres://nobody@127.0.0.1:1/none', silentLogger)
    await expect(wake.start(() => {})).rejects.toThrow()
    await wake.close()
  })
})
