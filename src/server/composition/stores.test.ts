import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { openStorage, type Storage } from './stores.ts'

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'gatehouse-open-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

function storageIn(options: { url?: string; dataFolder?: string }): Storage {
  const storage = openStorage({ ...options, clock: systemClock, log: silentLogger })
  onTestFinished(() => storage.close())
  return storage
}

const alice = { userID: 'alice', attributes: Attributes.from({ mail: ['a@x.org'] }), groups: [] }

test('stored data survives a restart', async () => {
  const dataFolder = folder()
  const first = storageIn({ dataFolder })
  await first.ready()
  const before = first.userDirectory({ name: 'people' })
  await createUser(before, alice)
  await before.close()
  await first.close()
  const again = storageIn({ dataFolder }).userDirectory({ name: 'people' })
  expect((await again.lookupUserByLogin('alice'))?.attributes.first('mail')).toBe('a@x.org')
  await again.close()
})

test('only the owner can read the database', async () => {
  const dataFolder = join(folder(), 'data')
  await storageIn({ dataFolder }).ready()
  const modes = ['.', 'gatehouse.db', 'gatehouse.db-wal'].map((name) => statSync(join(dataFolder, name)).mode & 0o77)
  expect(modes).toEqual([0, 0, 0])
})

test('a directory in another database has its own users', async () => {
  const storage = storageIn({ dataFolder: folder() })
  const own = storage.userDirectory({ name: 'people' })
  const other = storage.userDirectory({ name: 'people', url: `sqlite:${join(folder(), 'other.db')}` })
  await createUser(other, alice)
  expect(await own.lookupUserByLogin('alice')).toBeUndefined()
  await Promise.all([own.close(), other.close()])
})

test('a database stays open for a directory that is still in use', async () => {
  const storage = storageIn({ dataFolder: folder() })
  const [first, second] = [storage.userDirectory({ name: 'a' }), storage.userDirectory({ name: 'a' })]
  await createUser(first, alice)
  await first.close()
  await first.close()
  await storage.close()
  expect(await second.lookupUserByLogin('alice')).toBeDefined()
  await second.close()
  await expect(async () => second.lookupUserByLogin('alice')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
})

test('a database that does not answer fails each use, not the opening', async () => {
  const storage = storageIn({ url: 'postgres://nobody:secret@127.0.0.1:1/none' })
  await expect(storage.ready()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE', retryAfter: 5 })
  const directory = storage.userDirectory({ name: 'people' })
  await expect(directory.lookupUserByLogin('alice')).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  await expect(createUser(directory, alice)).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
  await directory.close()
})

test('rejects a file that is not a database or cannot be created', async () => {
  const path = folder()
  mkdirSync(join(path, 'gatehouse.db'))
  await expect(storageIn({ dataFolder: path }).ready()).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
})

test('addresses are read strictly, links to one file are one file, and an error does not repeat the address', () => {
  const path = folder()
  symlinkSync(path, join(path, 'link'))
  expect(readAddress(`sqlite:${path}/link/a.db`)).toEqual(readAddress(`sqlite://${path}/a.db`))
  expect(readAddress('postgresql://host/db').dialect).toBe('postgres')
  for (const bad of ['mysql://u:hunter2@host/db', 'hunter2', 'sqlite:']) {
    expect(() => readAddress(bad)).toThrow(/^a database address starts with postgres:\/\/ or sqlite:$/)
  }
  expect(() => openStorage({ clock: systemClock, log: silentLogger })).toThrow(/data folder/)
})
