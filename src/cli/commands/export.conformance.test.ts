import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { readAddress } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage } from '#server/composition/stores.ts'
import { kinds } from '#server/move/export-format.ts'
import { connectTo, temporaryFolder } from '#testing/databases/databases.ts'
import { createUser, user } from '#testing/databases/directory-writes.ts'
import { fillMoved } from '#testing/databases/moved-data.ts'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { type CommandResult, runCommand } from '#testing/gateway/command.ts'

type Dialect = 'sqlite' | 'postgres'

const secretKey = (): string => randomBytes(32).toString('base64')
const useKey = (key: string): void => void vi.stubEnv('GATEHOUSE_SECRET_KEY', key)

afterEach(() => void vi.unstubAllEnvs())

/** The options that name a new database without tables. */
async function newDatabase(
  dialect: Dialect,
): Promise<{ readonly url: string; readonly args: string[]; readonly data: string }> {
  const data = temporaryFolder()
  if (dialect === 'sqlite') return { url: `sqlite:${join(data, 'gatehouse.db')}`, args: ['--data', data], data }
  const url = await freshSchema()
  return { url, args: ['--data', data, '--database', url], data }
}

/** All rows of the tables that an export covers, and of those that follow from them. */
async function contents(url: string, isEarlier = false): Promise<Record<string, string[]>> {
  const { dialect, address } = readAddress(url)
  const read = async (table: string): Promise<object[]> => {
    if (dialect === 'postgres') return await runSql(url, `select * from ${table}`)
    const database = new DatabaseSync(address)
    const statement = database.prepare(`select * from ${table}`)
    // Numbers of attributes may be larger than those of JavaScript.
    statement.setReadBigInts(true)
    const rows = statement.all()
    database.close()
    return rows
  }
  const found: Record<string, string[]> = {}
  const moved = Object.values(kinds).filter(({ isNewer = false }) => !isNewer || !isEarlier)
  for (const table of [...moved.map((kind) => kind.table), 'attributes']) {
    const texts = (await read(table)).map((row) =>
      JSON.stringify(
        Object.entries(row)
          .map(([name, value]) => [name, value === null ? null : String(value)])
          .sort(),
      ),
    )
    found[table] = texts.sort()
  }
  return found
}

/** Without the entry that an import adds, and the head of its chain. */
function moved({ audit = [], audit_chains: _chains, ...others }: Record<string, string[]>): Record<string, string[]> {
  return { ...others, audit: audit.filter((row) => !row.includes('the export of')) }
}

const databases: readonly Dialect[] = postgresUrl() === '' ? ['sqlite'] : ['sqlite', 'postgres']
const routes = databases.flatMap((from) => databases.map((to) => [from, to] as const))

const succeed = async (...args: string[]): Promise<CommandResult> => {
  const result = await runCommand(args)
  expect(result).toMatchObject({ code: 0, stderr: '' })
  return result
}

describe('an export is imported', () => {
  test.each(routes)('from %s to %s and back, with an audit that verifies', async (from, to) => {
    useKey(secretKey())
    const [one, two, three] = [await newDatabase(from), await newDatabase(to), await newDatabase(from)]
    await fillMoved(one.url)
    const [file, back] = [join(one.data, 'one.jsonl'), join(one.data, 'two.jsonl')]
    const { stdout } = await succeed('export', file, ...one.args)
    expect(stdout).toMatch(
      /Users and groups: 6, memberships: 5, grants: 2, second factors: 1, .*: 1, finished runs: 2, audit records: 33/,
    )
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await succeed('import', file, ...two.args)
    const source = await contents(one.url)
    const target = await contents(two.url)
    expect(moved(target)).toEqual(moved(source))
    for (const { table } of Object.values(kinds)) expect(source[table], table).not.toEqual([])
    await succeed('audit', 'verify', ...two.args)
    await succeed('export', back, ...two.args)
    await succeed('import', back, ...three.args)
    await succeed('audit', 'verify', ...three.args)
    expect(moved(await contents(three.url))).toEqual(moved(source))
  })

  test.each(databases)('%s continues behind what was imported', async (to) => {
    useKey(secretKey())
    const [one, two] = [await newDatabase('sqlite'), await newDatabase(to)]
    await fillMoved(one.url)
    const file = join(one.data, 'one.jsonl')
    await succeed('export', file, ...one.args)
    await succeed('import', file, ...two.args)
    const storage = openStorage({ url: two.url, clock: systemClock, log: silentLogger })
    const people = storage.userDirectory({ name: 'people' })
    await createUser(people, user('new', { mail: ['new@example.com'] }, ['inner']))
    expect((await people.lookupUserByLogin('STRAßE'))?.userID).toBe('straße')
    const found = await people.searchUsers({ offset: 0, limit: 20 })
    expect([found.total, found.items.map(({ userID }) => userID)]).toEqual([5, ['Ada', 'bob', '0042', 'straße', 'new']])
    await storage.runs.start(newRun('r3', { state: { state: 'completed' } }))
    await people.close()
    await storage.close()
  })
})

describe('an export refuses', () => {
  test('unfinished runs and mails, unless they are left out', async () => {
    useKey(secretKey())
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    const storage = openStorage({ url: one.url, clock: systemClock, log: silentLogger })
    await storage.runs.start(newRun('waits', { state: { state: 'waiting' } }))
    await storage.close()
    const file = join(one.data, 'one.jsonl')
    expect(await runCommand(['export', file, ...one.args])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/not finished: 1 runs .*--leave-unfinished. Nothing was written/),
    })
    expect(readdirSync(one.data).filter((name) => name.includes('jsonl'))).toEqual([])
    expect((await succeed('export', file, '--leave-unfinished', ...one.args)).stdout).toContain('1 unfinished runs')
    expect(readFileSync(file, 'utf8')).not.toContain('waits')
    expect(await runCommand(['export', file, ...one.args])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('exists'),
    })
  })

  test('nothing while a gateway uses the file, and says what that means', async () => {
    useKey(secretKey())
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    const lock = await lockInstance({ dataFolder: one.data, waitMillis: 0 })
    const file = join(one.data, 'one.jsonl')
    expect(await runCommand(['export', file, ...one.args])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('a gateway uses the database: what changes from now on is not in the file'),
    })
    expect(await runCommand(['import', file, ...one.args])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('another gateway uses'),
    })
    await lock.close?.()
    expect(await runCommand(['import', '--openunison', file, '--out', join(one.data, 'out')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is an export of Gatehouse: run "gatehouse import'),
    })
  })

  test('a gateway without its key', async () => {
    useKey(secretKey())
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    useKey('')
    expect(await runCommand(['export', join(one.data, 'x'), ...one.args])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('set GATEHOUSE_SECRET_KEY'),
    })
  })
})

/** The key of both files that never change. */
const oldKey = Buffer.alloc(32, 9).toString('base64')

describe.each(databases)('what was written before is imported into %s:', (to) => {
  test.each(databases)("main's database of before the first release, of %s", async (from) => {
    useKey(oldKey)
    const [one, two] = [await newDatabase(from), await newDatabase(to)]
    const client = connectTo(one.url)
    await client.migrate((_, runScript) => runScript(readFileSync(`test/upgrades/main-1319b973/${from}.sql`, 'utf8')))
    await client.close()
    const file = join(one.data, 'one.jsonl')
    expect(await runCommand(['export', file, ...one.args])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not finished: 1 runs (1 approvals are open)'),
    })
    await succeed('export', file, '--leave-unfinished', ...one.args)
    await succeed('import', file, ...two.args)
    await succeed('audit', 'verify', ...two.args)
    const [before, after] = [await contents(one.url, true), await contents(two.url)]
    for (const table of ['collections', 'entries', 'attributes', 'memberships', 'grants', 'audit'] as const) {
      expect(moved(after)[table], table).toEqual(moved(before)[table])
    }
    expect(after['entries']?.length).toBeGreaterThan(5)
    expect(after['runs']).toHaveLength(1)
  })

  test('an export of format 1', async () => {
    useKey(oldKey)
    const two = await newDatabase(to)
    const { stdout } = await succeed('import', 'test/upgrades/export-format-1.jsonl', ...two.args)
    expect(stdout).toMatch(/Users and groups: 6, memberships: 5, grants: 2, .*: 1, finished runs: 2, audit records: 33/)
    await succeed('audit', 'verify', ...two.args)
    const found = await contents(two.url)
    for (const { table, isNewer = false } of Object.values(kinds)) {
      if (!isNewer) expect(found[table], table).not.toEqual([])
    }
  })
})

/** Changes of a valid export, and what the import says. */
const hostile: readonly (readonly [name: string, change: (text: string) => string | Buffer, message: RegExp])[] = [
  ['an empty file', () => '', /is empty/],
  ['another file', () => '{"some":"json"}\n', /is not an export of Gatehouse/],
  ['YAML', () => 'kind: Target\n', /is not an export of Gatehouse/],
  ['a newer format', (text) => text.replace('"format":1', '"format":2'), /format 2, which this version does not know/],
  ['a header with more', (text) => text.replace('"format":1', '"format":1,"tenant":"x"'), /its header has "tenant"/],
  ['no end', (text) => text.slice(0, text.lastIndexOf('{"end"')), /was cut off: it has no end/],
  ['half of it', (text) => text.slice(0, text.length / 2), /was cut off in line \d+/],
  ['a changed letter', (text) => text.replace('bob@example.com', 'eve@example.com'), /the hash does not match/],
  ['a row less', (text) => text.replace(/\["grant".*\n/, ''), /the hash does not match/],
  [
    'a row twice',
    (text) => text.replace(/(\["entry".*\n)/, '$1$1'),
    /lines \d+ to \d+ have rows of the kind "entry" that/,
  ],
  [
    'a user with the login of another',
    (text) => text.replace('"name":"bob"', '"name":"ADA"'),
    /the kind "entry" that exclude each other/,
  ],
  [
    'an unknown kind',
    (text) => text.replace('["grant"', '["shell"'),
    /the kind "shell", which this version does not know/,
  ],
  [
    'an unknown field',
    (text) => text.replace('["grant",{', '["grant",{"sudo":1,'),
    /the field "sudo", which this version/,
  ],
  ['a missing field', (text) => text.replace(/"nameKey":"[^"]*",/, ''), /"nameKey" must be a text/],
  [
    'a number of another type',
    (text) => text.replace(/"granted":\d+/, '"granted":1.5'),
    /"granted" must be a whole number/,
  ],
  ['NUL in a text', (text) => text.replace('"subject":"bob"', '"subject":"b\\u0000b"'), /"subject" must be a text/],
  [
    'other attributes',
    (text) => text.replace(/"attributes":"\[\[/, '"attributes":"[{},['),
    /are not a list of names and values/,
  ],
  [
    'rows out of order',
    (text) => text.replace(/(\["entry"[^\n]*\n)((?:.*\n)*)(\["grant"[^\n]*\n)/, '$3$1$2'),
    /is not in order/,
  ],
  ['something after the end', (text) => `${text}${text.split('\n')[1]}\n`, /line \d+ comes after the end/],
  ['bytes that are no text', (text) => Buffer.from(text.replace('bob', '\xff\xfe'), 'latin1'), /is not UTF-8 text/],
  ['prototype', (text) => text.replace('["grant",', '["__proto__",'), /which this version does not know/],
]

describe.each(databases)('an import into %s refuses, and leaves nothing', (to) => {
  /** An export, and its text. */
  async function exported(): Promise<{ readonly file: string; readonly text: string }> {
    useKey(secretKey())
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    const file = join(one.data, 'one.jsonl')
    await succeed('export', file, ...one.args)
    return { file, text: readFileSync(file, 'utf8') }
  }

  /** The import fails with the message, and the database is as new. */
  async function refused(file: string, message: RegExp): Promise<void> {
    const two = await newDatabase(to)
    expect(await runCommand(['import', file, ...two.args])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(message),
    })
    if (to === 'sqlite') return expect(existsSync(join(two.data, 'gatehouse.db'))).toBe(false)
    const client = connectTo(two.url)
    const sql = 'select relname from pg_class where relnamespace = current_schema()::regnamespace'
    expect(await client.query({ sql, params: [], name: undefined })).toEqual([])
  }

  test('hostile files', { timeout: 240_000 }, async () => {
    const { file, text } = await exported()
    for (const [name, change, message] of hostile) {
      const changed = change(text)
      expect(changed === text, name).toBe(false)
      writeFileSync(file, changed)
      await refused(file, message)
    }
  })

  test('a line of a gigabyte, an absent file and a folder', async () => {
    const { file, text } = await exported()
    await refused(`${file}.absent`, /does not exist/)
    await refused(temporaryFolder(), /is a folder, not a file/)
    truncateSync(file, 2 ** 30)
    await refused(file, /line \d+ is longer than 67108864 bytes/)
    writeFileSync(file, text.split('\n')[0] ?? '')
    await refused(file, /cut off in line 1/)
  })

  test('another key, and none', async () => {
    const { file, text } = await exported()
    useKey(secretKey())
    await refused(file, /needs the key \S+, and this installation has \S+: set GATEHOUSE_SECRET_KEY/)
    const [, other = ''] =
      /installation has (\S+):/.exec((await runCommand(['import', file, '--data', temporaryFolder()])).stderr) ?? []
    // The header decides which key signs, so a forged one names a key that is here, and corrects the hash.
    const { createHash } = await import('node:crypto')
    const lines = text.replace(/"key":"[^"]*"/, `"key":"${other}"`).split('\n')
    const body = `${lines.slice(0, -2).join('\n')}\n`
    const sum = createHash('sha256').update(body).digest('base64url')
    writeFileSync(file, `${body}${lines.at(-2)?.replace(/"sha256":"[^"]*"/, `"sha256":"${sum}"`)}\n`)
    await refused(file, /the signature is not valid/)
    useKey('')
    await refused(file, /this installation has none: set/)
  })

  test('an audit that was changed, and one with another key', async () => {
    useKey(secretKey())
    const auditKey = secretKey()
    vi.stubEnv('GATEHOUSE_AUDIT_KEY', auditKey)
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    const file = join(one.data, 'one.jsonl')
    await succeed('export', file, ...one.args)
    vi.stubEnv('GATEHOUSE_AUDIT_KEY', '')
    await refused(file, /the audit is sealed with the key \S+, which is not here: set GATEHOUSE_AUDIT_KEY/)
    const database = new DatabaseSync(readAddress(one.url).address)
    database.exec("update audit set requestor = 'mallory' where chain_seq = 3 and chain = 0")
    database.close()
    await succeed('export', file, '--replace', ...one.args)
    vi.stubEnv('GATEHOUSE_AUDIT_KEY', auditKey)
    await refused(file, /the audit is not valid: changed \(chain 0, record 3\)/)
  })

  test('secrets of another key', async () => {
    const [old, current] = [secretKey(), secretKey()]
    useKey(old)
    const one = await newDatabase('sqlite')
    await fillMoved(one.url)
    useKey(`${current},${old}`)
    const file = join(one.data, 'one.jsonl')
    await succeed('export', file, ...one.args)
    useKey(current)
    await refused(file, /secrets in it are encrypted with the key \S+, which is not here/)
    useKey(`${current},${old}`)
    await succeed('import', file, ...(await newDatabase(to)).args)
  })

  test('a database with data', async () => {
    const { file } = await exported()
    const two = await newDatabase(to)
    await fillMoved(two.url)
    const before = await contents(two.url)
    expect(await runCommand(['import', file, ...two.args])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the database is not empty: its table collections has rows/),
    })
    expect(await contents(two.url)).toEqual(before)
  })
})
