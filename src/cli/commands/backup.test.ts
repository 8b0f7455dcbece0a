import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
// Loaded here, since the first load takes longer than a test may.
import './backup.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { openDatabase } from '#server/open-database.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { auditRow, newRun } from '#testing/databases/workflow-stores.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { restoreCommand } from './restore.ts'

const open = async (dataFolder: string): Promise<Storage> =>
  openStorage({
    dataFolder,
    clock: systemClock,
    log: silentLogger,
    auditKeys: await loadAuditKeys({ environment: {}, dataFolder }, 'gateway'),
  })

async function use<T>(dataFolder: string, work: (storage: Storage) => Promise<T>): Promise<T> {
  const storage = await open(dataFolder)
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

const addUser = async (storage: Storage, userID: string): Promise<void> => {
  const people = storage.userDirectory({ name: 'people' })
  await createUser(people, { userID, attributes: Attributes.from({ uid: [userID] }), groups: [] })
  await people.close()
}
const hasUser = async (storage: Storage, login: string): Promise<boolean> => {
  const people = storage.userDirectory({ name: 'people' })
  const found = await people.lookupUserByLogin(login)
  await people.close()
  return found !== undefined
}

/** The data folder of a gateway: its key, a user, three audit records, a queued run and mail, a session. */
async function installation(): Promise<{ readonly data: string; readonly folder: string }> {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  await use(data, async (storage) => {
    await storage.audit.authenticate()
    for (const id of ['one', 'two', 'three']) await storage.audit.append([auditRow(id)])
    await addUser(storage, 'ada')
    await storage.runs.start(newRun('run'))
    await storage.mails.add([{ id: 'mail', recipient: 'a@example.com', subject: 'Hello', text: 'text' }])
  })
  sql(
    join(data, 'gatehouse.db'),
    `insert into sessions (id, application, user_id, user_key, data, created, touched, idle_seconds, expires)
     values ('session', 'portal', 'ada', 'ada', '{}', 1, 1, 1, 9999999999999)`,
  )
  return { data, folder }
}

function sql(file: string, text: string): Readonly<Record<string, unknown>>[] {
  const database = new DatabaseSync(file)
  try {
    return database.prepare(text).all()
  } finally {
    database.close()
  }
}

const backup = (data: string, file: string, ...more: string[]) => runCommand(['backup', file, '--data', data, ...more])
const restore = (file: string, data: string, ...more: string[]) =>
  runCommand(['restore', file, '--data', data, ...more])

test('a backup of a database in use is restored with everything that was committed before it', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  const running = await open(data)
  await running.ready()
  await addUser(running, 'in-the-log')
  const made = await backup(data, file, '--keys')
  await addUser(running, 'later')
  await running.close()
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(made.stdout).toMatch(/Wrote .*backup\.db: \d+ bytes, \d+ rows, the state of 20/)
  expect(made.stdout).toContain('Schema: 0001_initial.sql\nAudit: 3 records, up to record 3 of chain 0, all unchanged')
  expect(made.stdout).toContain('Keys in the backup: workflow-secret.key.')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder).sort()).toEqual(['backup.db', 'data'])

  const restored = await restore(file, fresh, '--by', 'operator')
  expect(restored).toMatchObject({ code: 0, stderr: '' })
  expect(restored.stdout).toContain('Ended 1 session, and 0 records of issuers')
  expect(restored.stdout).toContain('The gateway will continue 1 run and send 1 mail,')
  expect(restored.stdout).toContain('No anchors were given')
  expect(restored.stdout).toContain('users who were deactivated and passwords that were changed since the backup')
  expect(restored.stdout).toContain(`Restored to ${fresh}: start the gateway`)
  expect(readdirSync(fresh).sort()).toEqual(['gatehouse.db', 'gatehouse.db.lock', 'keys'])
  expect(readFileSync(join(fresh, 'keys/workflow-secret.key'))).toEqual(
    readFileSync(join(data, 'keys/workflow-secret.key')),
  )
  for (const name of ['gatehouse.db', 'keys/workflow-secret.key']) {
    expect(statSync(join(fresh, name)).mode & 0o777).toBe(0o600)
  }
  await use(fresh, async (storage) => {
    expect(await hasUser(storage, 'ada')).toBe(true)
    expect(await hasUser(storage, 'in-the-log')).toBe(true)
    expect(await hasUser(storage, 'later')).toBe(false)
    expect(await storage.audit.verify()).toMatchObject({ checked: 4, authenticated: true, problems: [] })
    expect((await storage.audit.list({ limit: 1 })).rows[0]).toMatchObject({
      requestor: 'operator',
      kind: 'audit',
      action: 'replace',
      attribute: 'database',
      value: expect.stringMatching(/^the backup of 20/),
    })
  })
  const tables = sql(join(fresh, 'gatehouse.db'), "select name from sqlite_schema where name like 'backup%'")
  expect(tables).toEqual([])
  expect(sql(join(fresh, 'gatehouse.db'), 'select id from sessions')).toEqual([])
})

test('programs get the result of a backup and of a restore, and no document beside a backup on standard output', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  const json = ['--output', 'json']
  const backup = await runCommand(['backup', file, '--data', data, '--keys', ...json])
  expect(JSON.parse(backup.stdout)).toMatchObject({ file, rows: expect.any(Number), keys: expect.any(Array) })
  const migrated = await runCommand(['migrate', '--data', data, ...json])
  expect(JSON.parse(migrated.stdout)).toMatchObject({ pending: [], ran: [] })
  const restored = await runCommand(['restore', file, '--data', fresh, ...json])
  expect(JSON.parse(restored.stdout)).toMatchObject({ data: fresh, ended: { sessions: expect.any(Number) }, lost: [] })
  const stream = await runCommand(['backup', '-', '--data', data, ...json])
  expect([stream.code, stream.stdout]).toEqual([2, ''])
})

test('a backup to standard output is the same file, with the messages elsewhere, and leaves nothing in the folder', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  const made = spawnSync('bin/gatehouse', ['backup', '-', '--data', data, '--keys'], { maxBuffer: 64 << 20 })
  expect(made.status).toBe(0)
  expect(made.stderr.toString()).toMatch(/^Wrote to standard output: \d+ bytes, \d+ rows/)
  expect(made.stderr.toString()).toContain(`: ${made.stdout.length} bytes`)
  writeFileSync(file, made.stdout)
  expect((await restore(file, fresh)).code).toBe(0)
  await use(fresh, async (storage) => expect(await hasUser(storage, 'ada')).toBe(true))
  const cut = spawnSync('bash', ['-c', `bin/gatehouse backup - --data '${data}' | head -c 9; echo "\${PIPESTATUS[0]}"`])
  expect(cut.stdout.toString()).toBe('SQLite fo141\n')
  expect(readdirSync(data).filter((name) => name.startsWith('.'))).toEqual([])
  writeFileSync(file, made.stdout.subarray(0, 65_536))
  expect((await restore(file, join(folder, 'other'))).code).toBe(1)
})

test('without --keys, the output names the keys, and a restore needs them', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  expect((await backup(data, file)).stdout).toContain('Not in the backup: keys/workflow-secret.key.')
  const refused = await restore(file, fresh)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(
    /no key: key \S+ is required[\s\S]*put the keys\/ of that gateway[\s\S]*Nothing was changed/,
  )
  expect(readdirSync(fresh)).toEqual(['gatehouse.db.lock'])
  cpSync(join(data, 'keys'), join(fresh, 'keys'), { recursive: true })
  expect((await restore(file, fresh)).code).toBe(0)
})

test('a lost key: the data is restored on request, and the output says that the audit has no entry', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file)
  const restored = await restore(file, fresh, '--unverified')
  expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('no audit entry was written') })
  expect(sql(join(fresh, 'gatehouse.db'), 'select count(*) as records from audit')).toEqual([{ records: 3 }])
})

test('an existing file stays unless it is to be replaced, and a failed backup leaves nothing', async () => {
  const { data, folder } = await installation()
  const file = join(folder, 'backup.db')
  writeFileSync(file, 'precious')
  expect(await backup(data, file)).toMatchObject({ code: 1, stderr: expect.stringContaining('add --replace') })
  expect(readFileSync(file, 'utf8')).toBe('precious')
  expect((await backup(data, file, '--replace')).code).toBe(0)
  expect(sql(file, "select value from backup_info where name = 'version'")).toHaveLength(1)

  const other = join(folder, 'other.db')
  writeFileSync(join(data, 'gatehouse.db'), 'not a database, but long enough to be opened as a file')
  expect((await backup(data, other)).code).toBe(1)
  expect(await backup(data, join(folder, 'absent/other.db'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not exist; create it first'),
  })
  expect(await backup(data, join(data, 'gatehouse.db'), '--replace')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is the database itself'),
  })
  expect(readdirSync(folder).sort()).toEqual(['backup.db', 'data'])
})

test('of backups to the same new file at the same time, one is made and the others fail', async () => {
  const { data, folder } = await installation()
  const file = join(folder, 'backup.db')
  const results = await Promise.all([1, 2, 3, 4].map(() => backup(data, file, '--keys')))
  const [made, ...others] = results.sort((a, b) => a.code - b.code)
  expect(made).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`: ${statSync(file).size} bytes`) })
  for (const other of others) {
    expect(other).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('was created meanwhile') })
  }
  expect(readdirSync(folder).sort()).toEqual(['backup.db', 'data'])
  expect(statSync(file).nlink).toBe(1)
  expect((await restore(file, join(folder, 'fresh'))).code).toBe(0)
})

test('a changed audit is copied, reported with exit code 1, and restored only on request', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  sql(join(data, 'gatehouse.db'), "update audit set requestor = 'mallory' where chain_seq = 2")
  const made = await backup(data, file, '--keys')
  expect(made).toMatchObject({ code: 1, stderr: expect.stringMatching(/changed: chain 0, record 2[\s\S]*true copy/) })
  expect(await restore(file, fresh)).toMatchObject({ code: 1, stderr: expect.stringContaining('use another backup') })
  expect(existsSync(join(fresh, 'gatehouse.db'))).toBe(false)
  expect((await restore(file, fresh, '--unverified')).code).toBe(0)
})

test('PostgreSQL is referred to pg_dump', async () => {
  const file = join(temporaryFolder(), 'backup.db')
  const refused = await runCommand(['backup', file, '--database', 'postgres://nowhere/gatehouse'])
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/pg_dump.*docs\/guides\/backup-and-restore\.md/),
  })
  expect(existsSync(file)).toBe(false)
  expect(await runCommand(['restore', file, '--database', 'postgres://nowhere/gatehouse'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('use pg_restore'),
  })
  expect(await runCommand(['restore', '--database', 'postgres://nowhere/gatehouse'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('add --yes'),
  })
})

test('a restore refuses a running gateway, a folder with files and a damaged backup, and puts nothing in place', async () => {
  const { data, folder } = await installation()
  const file = join(folder, 'backup.db')
  await backup(data, file, '--keys')
  expect(await restore(file, data)).toMatchObject({ code: 1, stderr: expect.stringContaining('is not empty') })
  const lock = await lockInstance({ dataFolder: data })
  expect(await restore(file, data)).toMatchObject({ code: 1, stderr: expect.stringContaining('another gateway uses') })
  await lock.close?.()
  expect(await restore(join(folder, 'absent.db'), join(folder, 'fresh'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('absent.db does not exist'),
  })

  const bytes = readFileSync(file)
  const damaged = {
    text: Buffer.from('this is a text'),
    cut: bytes.subarray(0, bytes.length - 8192),
    overwritten: Buffer.concat([bytes.subarray(0, 40_960), Buffer.alloc(8192, 0x55), bytes.subarray(49_152)]),
  }
  for (const [name, content] of Object.entries(damaged)) {
    const [bad, fresh] = [join(folder, `${name}.db`), join(folder, name)]
    writeFileSync(bad, content)
    expect(await restore(bad, fresh), name).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(new RegExp(`restore: ${bad} .*damaged`)),
    })
    expect(readdirSync(fresh), name).toEqual(['gatehouse.db.lock'])
  }
})

test('a backup whose key files would be written elsewhere is refused', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  sql(file, "update backup_files set path = 'keys/../../escaped'")
  expect(await restore(file, fresh)).toMatchObject({ code: 1, stderr: expect.stringContaining('never writes') })
  expect(existsSync(join(folder, 'escaped'))).toBe(false)
})

test('a backup of a newer version is refused with exit code 3', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  sql(file, "insert into schema_migrations values ('0999_later.sql', 'hash', 1)")
  expect(await restore(file, fresh)).toMatchObject({ code: 3, stderr: expect.stringContaining('SCHEMA_NEWER') })
  expect(existsSync(join(fresh, 'gatehouse.db'))).toBe(false)
})

test('records that anchors have and the backup lacks are reported and audited', async () => {
  const { data, folder } = await installation()
  const [file, anchors] = [join(folder, 'backup.db'), join(folder, 'anchors.jsonl')]
  const anchor = async (): Promise<void> => {
    const line = JSON.stringify(await use(data, ({ audit }) => audit.anchor()))
    writeFileSync(anchors, `${line}\n`, { flag: 'a' })
  }
  await anchor()
  await backup(data, file, '--keys')
  const same = await restore(file, join(folder, 'same'), '--anchor', anchors)
  expect(same).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('has every record') })
  await use(data, ({ audit }) => audit.append([auditRow('four')]))
  await use(data, ({ audit }) => audit.append([auditRow('five')]))
  await anchor()
  const fresh = join(folder, 'fresh')
  const restored = await restore(file, fresh, '--anchor', anchors)
  const lost = 'chain 0: records 4 to 5 are in anchors and not in the backup'
  expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining(lost) })
  const [entry] = (await use(fresh, ({ audit }) => audit.list({ limit: 1 }))).rows
  expect(entry?.reason).toContain(lost)
})

test('what a killed restore left is removed', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  mkdirSync(join(fresh, '.restore-killed'), { recursive: true })
  writeFileSync(join(fresh, '.restore-killed/gatehouse.db'), 'half')
  expect((await restore(file, fresh)).code).toBe(0)
  expect(readdirSync(fresh).sort()).toEqual(['gatehouse.db', 'gatehouse.db.lock', 'keys'])
})

test('a folder whose restore was killed is refused until a restore finishes there', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  mkdirSync(join(fresh, '.restore-killed'), { recursive: true })
  const refused = /a restore to .*fresh has not finished.*run "gatehouse restore" again, or delete .*\.restore-killed/
  expect(() => openStorage({ dataFolder: fresh, clock: systemClock, log: silentLogger })).toThrow(refused)
  const scope = new Scope()
  const options = { dataFolder: fresh, databaseUrl: undefined, environment: {}, log: silentLogger }
  await expect(openDatabase(options, scope)).rejects.toThrow(refused)
  await scope.close()
  expect(existsSync(join(fresh, 'keys/workflow-secret.key'))).toBe(false)
  expect((await restore(file, fresh)).code).toBe(0)
  await use(fresh, async (storage) => expect(await hasUser(storage, 'ada')).toBe(true))
})

test('a restore that was killed after it put its keys in place can be repeated, and other keys are kept', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  mkdirSync(join(fresh, '.restore-killed'), { recursive: true })
  cpSync(join(data, 'keys'), join(fresh, 'keys'), { recursive: true })
  const key = join(fresh, 'keys/workflow-secret.key')
  const own = readFileSync(key)
  writeFileSync(key, 'another')
  expect(await restore(file, fresh)).toMatchObject({ code: 1, stderr: expect.stringContaining('move it away first') })
  expect(readFileSync(key, 'utf8')).toBe('another')
  writeFileSync(key, own)
  expect((await restore(file, fresh)).code).toBe(0)
  expect(readdirSync(fresh).sort()).toEqual(['gatehouse.db', 'gatehouse.db.lock', 'keys'])
})

test('a file that was cut off while it was written is refused', async () => {
  const { data, folder } = await installation()
  const file = join(folder, 'backup.db')
  await backup(data, file, '--keys')
  writeFileSync(`${file}-journal`, 'a transaction that did not end')
  expect(await restore(file, join(folder, 'fresh'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('backup.db is not complete'),
  })
  writeFileSync(join(folder, 'empty.db'), '')
  expect(await restore(join(folder, 'empty.db'), join(folder, 'fresh'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not a database of Gatehouse'),
  })
})

test('a backup never replaces the database or its logs, also through links', async () => {
  const { data, folder } = await installation()
  symlinkSync(data, join(folder, 'link'))
  const before = statSync(join(data, 'gatehouse.db')).ino
  for (const name of ['gatehouse.db', 'gatehouse.db-wal', 'gatehouse.db-journal', 'gatehouse.db.lock']) {
    for (const place of ['data', 'link']) {
      expect(await backup(join(folder, 'link'), join(folder, place, name), '--replace'), name).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('is the database itself'),
      })
    }
  }
  expect(statSync(join(data, 'gatehouse.db')).ino).toBe(before)
  expect(readdirSync(data).sort()).toEqual(['gatehouse.db', 'keys'])
  expect((await backup(data, join(data, 'gatehouse.db-monday'))).code).toBe(0)
})

test.each([
  ['create trigger keep before delete on sessions begin select raise(ignore); end', 'trigger keep'],
  ['create view more as select * from sessions', 'view more'],
  ['create virtual table pages using fts5(text)', 'table pages'],
])('a backup with %s is refused', async (text, found) => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  sql(file, text)
  expect(await restore(file, fresh, '--unverified')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`contains the ${found}, which Gatehouse did not create`),
  })
  expect(existsSync(join(fresh, 'gatehouse.db'))).toBe(false)
})

const edit = (file: string, ...texts: readonly string[]): void => {
  const database = new DatabaseSync(file, { defensive: false })
  try {
    for (const text of texts) database.exec(text)
  } finally {
    database.close()
  }
}

test.each([
  [
    'a virtual table in another spelling',
    'create virtual table pages using fts5(text)',
    "update sqlite_schema set sql = 'create  virtual table pages using fts5(text)' where name = 'pages'",
    'table pages',
  ],
  [
    'a table of the gateway that ignores new rows',
    'create table other (id)',
    "update sqlite_schema set sql = replace(sql, 'primary key', 'primary key on conflict ignore') where name = 'sessions'",
    'table sessions',
  ],
])('a backup with %s is refused', async (_what, prepare, disguise, found) => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  edit(file, prepare, `pragma writable_schema = on; ${disguise}`)
  const { code, stderr } = await restore(file, fresh, '--unverified')
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(found) })
  expect(existsSync(join(fresh, 'gatehouse.db'))).toBe(false)
})

test('tables of other programs are copied and restored, whatever their names', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  sql(join(data, 'gatehouse.db'), 'create table "a ""quoted"" name" (id integer)')
  expect((await backup(data, file, '--keys')).code).toBe(0)
  expect((await restore(file, fresh)).code).toBe(0)
})

test('texts of a backup do not reach the terminal as control characters', async () => {
  const { data, folder } = await installation()
  const file = join(folder, 'backup.db')
  await backup(data, file, '--keys')
  sql(file, "update backup_info set value = char(27) || '[2J' where name = 'version'")
  sql(file, "update audit set id = char(27) || '[2J' where chain_seq = 2")
  const { stdout, stderr } = await restore(file, join(folder, 'fresh'))
  expect(stdout).toContain('made by an unknown version')
  expect(stderr).toContain('record 2, row \ufffd[2J')
  expect(stdout + stderr).not.toContain('\u001b')
})

test('a pipe is refused, not waited for', async () => {
  const folder = temporaryFolder()
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  expect(await restore(pipe, join(folder, 'fresh'))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('pipe is not a file'),
  })
})

test('a restore whose last changes stay in the log of the database fails', async () => {
  const { data, folder } = await installation()
  const [file, fresh] = [join(folder, 'backup.db'), join(folder, 'fresh')]
  await backup(data, file, '--keys')
  const errors: string[] = []
  let reader: DatabaseSync | undefined
  const code = await restoreCommand([file, '--data', fresh], {
    stdout: (line) => {
      if (!line.startsWith('Ended')) return
      // As a program that looks at each new file: SQLite leaves the log to the last connection.
      const [staging = ''] = readdirSync(fresh).filter((name) => name.startsWith('.restore-'))
      reader = new DatabaseSync(join(fresh, staging, 'gatehouse.db'), { readOnly: true })
      reader.exec('begin; select count(*) from sessions')
    },
    stderr: (line) => void errors.push(line),
  })
  reader?.close()
  expect(errors.join()).toContain('could not be completed')
  expect(code).toBe(1)
  expect(readdirSync(fresh)).toEqual(['gatehouse.db.lock'])
})

test('keys of an earlier backup are not in a backup without --keys', async () => {
  const { data, folder } = await installation()
  const [file, fresh, later] = [join(folder, 'backup.db'), join(folder, 'fresh'), join(folder, 'later.db')]
  const key = readFileSync(join(data, 'keys/workflow-secret.key'), 'utf8').trim()
  await backup(data, file, '--keys')
  expect(readFileSync(file).includes(key)).toBe(true)
  expect((await restore(file, fresh)).code).toBe(0)
  expect(readFileSync(join(fresh, 'gatehouse.db')).includes(key)).toBe(false)
  expect((await backup(fresh, later)).code).toBe(0)
  expect(readFileSync(later).includes(key)).toBe(false)
})

test('a database that was copied from a backup by hand has backups too, without its keys', async () => {
  const { data, folder } = await installation()
  const [file, later] = [join(folder, 'backup.db'), join(folder, 'later.db')]
  const key = readFileSync(join(data, 'keys/workflow-secret.key'), 'utf8').trim()
  await backup(data, file, '--keys')
  cpSync(file, join(data, 'gatehouse.db'))
  expect(await backup(data, later)).toMatchObject({ code: 0, stderr: '' })
  expect(readFileSync(later).includes(key)).toBe(false)
})
