import { execFileSync } from 'node:child_process'
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockInstance } from '#database/instance-lock.ts'
import { systemClock } from '#kernel/clock.ts'
import { type LogFields, silentLogger } from '#kernel/logger.ts'
import { openSigningKey } from '#keys/key-source.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { openDataFolder, protectGivenKey } from './private-files.ts'
import { openStorage } from './stores.ts'

let folder: string
let lines: { readonly message: string; readonly fields: LogFields | undefined }[]
const log = { warn: (message: string, fields?: LogFields) => void lines.push({ message, fields }) }
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const file = (name: string, mode: number): string => {
  const path = join(folder, name)
  writeFileSync(path, 'x')
  chmodSync(path, mode)
  return path
}
/** The owner that files report, and a system that rejects changes by others than their owner. */
const ownedBy = (uid: number, own = 1000) => ({
  uid: own,
  lstat: (path: string) => Object.assign(lstatSync(path), { uid }),
  chmod: () => {
    throw Object.assign(new Error('EPERM: operation not permitted, chmod'), { code: 'EPERM' })
  },
})

beforeEach(() => {
  folder = join(temporaryFolder(), 'data')
  lines = []
})
const umask = process.umask()
afterEach(() => void process.umask(umask))

test('a data folder that others can enter is closed, with its keys and database, and one line names what was open', () => {
  mkdirSync(join(folder, 'keys'), { recursive: true })
  chmodSync(folder, 0o777)
  chmodSync(join(folder, 'keys'), 0o755)
  const open = ['gatehouse.db', 'gatehouse.db-wal', 'gatehouse.db-shm', 'gatehouse.db.lock', 'keys/a.jwk', 'keys/b.key']
  for (const name of open) file(name, 0o644)
  const other = file('published.json', 0o644)
  openDataFolder(folder, { log })
  expect(modeOf(folder)).toBe('700')
  expect(modeOf(join(folder, 'keys'))).toBe('700')
  expect(open.map((name) => modeOf(join(folder, name)))).toEqual(open.map(() => '600'))
  // Other files are in the closed folder, and keep their mode.
  expect(modeOf(other)).toBe('644')
  expect(lines).toHaveLength(1)
  expect(lines[0]?.message).toContain('other users could access')
  expect(lines[0]?.fields?.['paths']).toEqual(
    expect.arrayContaining([
      `${folder} (0777)`,
      `${join(folder, 'keys')} (0755)`,
      `${join(folder, 'keys/a.jwk')} (0644)`,
    ]),
  )
})

test('a private data folder stays unchanged, without a line', () => {
  mkdirSync(folder, { mode: 0o700 })
  file('gatehouse.db', 0o400)
  openDataFolder(folder, { log })
  expect(modeOf(join(folder, 'gatehouse.db'))).toBe('400')
  expect(lines).toEqual([])
})

test('an absent folder is created on request only', () => {
  openDataFolder(folder, { log })
  expect(() => statSync(folder)).toThrow('ENOENT')
  openDataFolder(folder, { log, create: true })
  expect(modeOf(folder)).toBe('700')
})

test('new files are private from the start with any umask', async () => {
  process.umask(0)
  openDataFolder(folder, { log, create: true })
  await openSigningKey(join(folder, 'keys'), 'made')
  const lock = await lockInstance({ dataFolder: folder })
  const storage = openStorage({ dataFolder: folder, clock: systemClock, log: silentLogger })
  await storage.ready()
  expect(modeOf(join(folder, 'keys'))).toBe('700')
  for (const name of ['keys/made.jwk', 'gatehouse.db', 'gatehouse.db-wal', 'gatehouse.db-shm', 'gatehouse.db.lock']) {
    expect({ name, mode: modeOf(join(folder, name)) }).toEqual({ name, mode: '600' })
  }
  await storage.close()
  await lock.close?.()
  expect(lines).toEqual([])
})

test('a data folder or file of another user is rejected if others can access it, and named', () => {
  mkdirSync(folder, { mode: 0o700 })
  chmodSync(folder, 0o750)
  expect(() => openDataFolder(folder, { log, system: ownedBy(4711) })).toThrow(
    `${folder}: other users can access it (mode 0750), and its mode cannot be changed here`,
  )
  chmodSync(folder, 0o700)
  const database = file('gatehouse.db', 0o660)
  expect(() => openDataFolder(folder, { log, system: ownedBy(4711) })).toThrow(`${database}: other users can access it`)
  expect(() => openDataFolder(folder, { log, system: ownedBy(4711) })).toThrow(`Run "chmod 600 ${database}"`)
})

test('a read-only file system and one without modes are rejected too', () => {
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  const { uid } = statSync(folder)
  expect(() => openDataFolder(folder, { log, system: ownedBy(uid, uid) })).toThrow('EPERM')
  const system = { uid, lstat: lstatSync, chmod: () => {} }
  expect(() => openDataFolder(folder, { log, system })).toThrow('the file system does not keep modes')
})

test('the root of a mounted volume belongs to the platform: it is reported, and its content is closed', () => {
  mkdirSync(folder)
  chmodSync(folder, 0o777)
  const database = file('gatehouse.db', 0o660)
  const { uid } = statSync(folder)
  const system = {
    uid,
    lstat: (path: string) => {
      const found = lstatSync(path)
      return path === folder ? Object.assign(found, { uid: 0, dev: found.dev + 1 }) : found
    },
    chmod: (path: string, mode: number) => (path === folder ? ownedBy(0).chmod() : chmodSync(path, mode)),
  }
  openDataFolder(folder, { log, system })
  expect(modeOf(database)).toBe('600')
  expect(lines.map(({ message }) => message)).toEqual([
    expect.stringContaining('volume'),
    expect.stringContaining('other users could access'),
  ])
})

test('our own symbolic link is followed to its file; one of another user is rejected', () => {
  mkdirSync(join(folder, 'keys'), { recursive: true, mode: 0o700 })
  const elsewhere = join(temporaryFolder(), 'sealing.key')
  writeFileSync(elsewhere, 'x')
  chmodSync(elsewhere, 0o644)
  const link = join(folder, 'keys', 'workflow-secret.key')
  symlinkSync(elsewhere, link)
  const system = {
    uid: statSync(folder).uid,
    lstat: (path: string) => (path === link ? Object.assign(lstatSync(path), { uid: 4711 }) : lstatSync(path)),
    chmod: chmodSync,
  }
  expect(() => openDataFolder(folder, { log, system })).toThrow(`${link}: belongs to user 4711`)
  expect(modeOf(elsewhere)).toBe('644')
  openDataFolder(folder, { log })
  expect(modeOf(elsewhere)).toBe('600')
})

test('anything but a file or folder is rejected, and keeps its mode, also behind a link', () => {
  mkdirSync(join(folder, 'keys'), { recursive: true })
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', ['-m', '666', pipe])
  symlinkSync(pipe, join(folder, 'keys', 'workflow-secret.key'))
  expect(() => openDataFolder(folder, { log })).toThrow(`${pipe}: is not a file`)
  expect(modeOf(pipe)).toBe('666')
})

test('a private file of another user in our folder is rejected, even if it can be read', () => {
  mkdirSync(join(folder, 'keys'), { recursive: true, mode: 0o700 })
  const planted = file('keys/development-issuer.jwk', 0o600)
  const { uid } = statSync(folder)
  const lstat = (path: string) => (path === planted ? Object.assign(lstatSync(path), { uid: 4711 }) : lstatSync(path))
  expect(() => openDataFolder(folder, { log, system: { uid, lstat, chmod: chmodSync } })).toThrow(
    `${planted}: belongs to user 4711`,
  )
})

test('the files of a database in another folder are closed, and its folder is not', () => {
  mkdirSync(folder)
  chmodSync(folder, 0o755)
  const database = file('people.db', 0o644)
  file('people.db-wal', 0o644)
  const data = join(folder, 'data')
  openDataFolder(data, { log, databaseUrl: `sqlite:${database}` })
  expect([modeOf(database), modeOf(`${database}-wal`), modeOf(folder)]).toEqual(['600', '600', '755'])
  expect(lines).toHaveLength(1)
  openDataFolder(data, { log, databaseUrl: `sqlite:${join(folder, 'absent.db')}` })
  openDataFolder(data, { log, databaseUrl: 'postgres://db.example.com/gatehouse' })
  expect(lines).toHaveLength(1)
})

test('our own configured key is closed; one of the platform is used, with a line if others can read it', () => {
  mkdirSync(folder)
  const key = file('tls.key', 0o644)
  protectGivenKey(key, { log })
  expect(modeOf(key)).toBe('600')
  expect(lines).toHaveLength(1)

  lines = []
  chmodSync(key, 0o644)
  protectGivenKey(key, { log, system: ownedBy(0) })
  expect(lines).toEqual([
    { message: expect.stringContaining('other users can read a private key'), fields: { path: key, mode: '0644' } },
  ])
  expect(readFileSync(key, 'utf8')).toBe('x')

  // A Secret that is mounted for the group of the process, as with defaultMode 0440 and fsGroup.
  lines = []
  chmodSync(key, 0o440)
  protectGivenKey(key, { log, system: ownedBy(0) })
  expect(lines).toEqual([])
})

test('a mounted Secret is a link to a link, which is followed', () => {
  mkdirSync(join(folder, '..2026'), { recursive: true })
  const key = file('..2026/tls.key', 0o644)
  symlinkSync('..2026', join(folder, '..data'))
  symlinkSync('..data/tls.key', join(folder, 'tls.key'))
  protectGivenKey(join(folder, 'tls.key'), { log, system: ownedBy(0) })
  expect(lines).toHaveLength(1)
  protectGivenKey(join(folder, 'tls.key'), { log })
  expect(modeOf(key)).toBe('600')
})

test('a log file that a running gateway removes at the same time is ignored', () => {
  mkdirSync(folder, { mode: 0o700 })
  const wal = file('gatehouse.db-wal', 0o644)
  const chmod = (path: string): void => {
    rmSync(path)
    throw Object.assign(new Error('ENOENT: no such file or directory, chmod'), { code: 'ENOENT' })
  }
  openDataFolder(folder, { log, system: { uid: statSync(folder).uid, lstat: lstatSync, chmod } })
  expect(() => statSync(wal)).toThrow('ENOENT')
  expect(lines).toEqual([])
})
