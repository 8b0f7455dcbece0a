import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { lockInstance } from './instance-lock.ts'

let dataFolder: string
beforeEach(() => {
  dataFolder = mkdtempSync(join(tmpdir(), 'gatehouse-lock-'))
})
afterEach(() => rmSync(dataFolder, { recursive: true, force: true }))

const held = { code: 'CONFLICT', message: expect.stringContaining('another gateway uses') }
const module = new URL('instance-lock.ts', import.meta.url).href
const take = (waitMillis: number) =>
  `const { lockInstance } = await import(${JSON.stringify(module)})
   await lockInstance({ dataFolder: ${JSON.stringify(dataFolder)}, waitMillis: ${waitMillis} })
   console.log('held')`

test('a second gateway is refused until the first has ended', async () => {
  const first = await lockInstance({ dataFolder })
  await expect(lockInstance({ dataFolder, waitMillis: 0 })).rejects.toMatchObject(held)
  // The refusal left the first one's lock in place.
  await expect(lockInstance({ dataFolder, waitMillis: 0 })).rejects.toMatchObject(held)
  await first.close?.()
  const second = await lockInstance({ dataFolder, waitMillis: 0 })
  await second.close?.()
})

test('a lock that cannot be used is named, with what to do', async () => {
  const lock = join(dataFolder, 'gatehouse.db.lock')
  writeFileSync(lock, 'not an SQLite file, but a text that is longer than the header of one: '.repeat(5))
  await expect(lockInstance({ dataFolder })).rejects.toMatchObject({
    message: `${lock} cannot be used: file is not a database. Delete it`,
  })
  rmSync(lock)
  mkdirSync(lock)
  await expect(lockInstance({ dataFolder })).rejects.toMatchObject({
    message: expect.stringMatching(
      /^\S+\.lock cannot be used: unable to open database file\. Check that this user can/,
    ),
  })
})

test('a data folder below a file is refused with its path', async () => {
  const file = join(dataFolder, 'file')
  writeFileSync(file, '')
  const below = { dataFolder: join(file, 'data') }
  await expect(lockInstance(below)).rejects.toMatchObject({
    message: expect.stringContaining('cannot be used: a part of the path is not a folder'),
  })
})

test('waits for a gateway that is shutting down', async () => {
  const first = await lockInstance({ dataFolder })
  setTimeout(() => void first.close?.(), 150)
  const second = await lockInstance({ dataFolder, waitMillis: 10_000 })
  await second.close?.()
})

test('a killed process releases its lock', { timeout: 30_000 }, async () => {
  const other = spawn(process.execPath, ['--input-type=module', '-e', `${take(0)}; setInterval(() => {}, 1000)`])
  try {
    await once(other.stdout, 'data')
    await expect(lockInstance({ dataFolder, waitMillis: 0 })).rejects.toMatchObject(held)
  } finally {
    other.kill('SIGKILL')
  }
  await once(other, 'exit')
  const mine = await lockInstance({ dataFolder, waitMillis: 0 })
  expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', take(0)], { stdio: 'pipe' })).toThrow(
    /another gateway uses/,
  )
  await mine.close?.()
})

test('commands may use the database meanwhile, and only its owner can read the lock', async () => {
  const lock = await lockInstance({ dataFolder })
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger })
  await storage.ready()
  await storage.close()
  expect(readdirSync(dataFolder)).toEqual(['gatehouse.db', 'gatehouse.db.lock'])
  expect(statSync(join(dataFolder, 'gatehouse.db.lock')).mode & 0o777).toBe(0o600)
  await lock.close?.()
})

test('a database in another folder is locked there, and a missing folder is created', async () => {
  const url = `sqlite:${join(dataFolder, 'elsewhere', 'own.db')}`
  const first = await lockInstance({ url, dataFolder })
  await expect(lockInstance({ url, dataFolder, waitMillis: 0 })).rejects.toMatchObject(held)
  const other = await lockInstance({ dataFolder, waitMillis: 0 })
  await first.close?.()
  await other.close?.()
})

test('gateways on PostgreSQL do not exclude each other', async () => {
  const url = 'postgres://nobody@127.0.0.1/nothing'
  await lockInstance({ url, dataFolder })
  await lockInstance({ url, dataFolder, waitMillis: 0 })
})
