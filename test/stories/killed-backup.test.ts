import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { openStorage } from '#server/composition/stores.ts'
import { type DebianPostgres, postgresPrograms, startDebianPostgres } from '#testing/databases/debian-postgres.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { auditRow } from '#testing/databases/workflow-stores.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { missingPart } from '#testing/run/missing-part.ts'

const config = 'examples/call-workflow'
const long = 60_000

if (postgresPrograms === undefined) missingPart("Debian's PostgreSQL", 'the package postgresql is not installed')

const start = (...args: string[]): ChildProcess => spawn(gatehouse, args, { stdio: 'ignore' })

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Runs to its end. */
async function run(...args: string[]): Promise<{ readonly code: number; readonly output: string }> {
  const { code, stdout, stderr } = await runCommand(args)
  return { code, output: stdout + stderr }
}

/** A gateway that refuses to start. */
async function serve(...place: string[]): Promise<{ readonly code: number; readonly output: string }> {
  const args = ['serve', '--config', config, '--listen', '127.0.0.1:0', '--metrics', '127.0.0.1:0', ...place]
  return await promisify(execFile)(gatehouse, args, { timeout: long }).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  )
}

const addSession = `insert into sessions (id, application, user_id, user_key, data, created, touched, idle_seconds, expires)
  values ('session', 'portal', 'ada', 'ada', '{}', 1, 1, 1, 9000000000000)`

/** A database with audit records and a key for them. */
async function fill(dataFolder: string, url?: string): Promise<void> {
  const auditKeys = await loadAuditKeys({ environment: {}, dataFolder }, 'gateway')
  const place = url === undefined ? { dataFolder } : { url }
  const storage = openStorage({ ...place, clock: systemClock, log: silentLogger, auditKeys })
  try {
    await storage.audit.authenticate()
    for (let i = 0; i < 20; i++) await storage.audit.append([auditRow(`row-${i}`)])
  } finally {
    await storage.close()
  }
}

describe('a killed backup or restore of SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-killed-'))
  const data = join(folder, 'data')
  const whole = join(folder, 'whole.db')
  const rows = 40_000

  beforeAll(async () => {
    await fill(data)
    const database = new DatabaseSync(join(data, 'gatehouse.db'))
    database.exec(addSession)
    // Some time passes while it is copied and checked.
    database.exec(`create table filler as with recursive numbers(n) as
      (select 1 union all select n + 1 from numbers where n < ${rows}) select n, hex(randomblob(400)) as text from numbers`)
    database.close()
    expect(await run('backup', whole, '--data', data, '--keys')).toMatchObject({ code: 0 })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const query = (file: string, sql: string): unknown => {
    const database = new DatabaseSync(file, { readOnly: true })
    try {
      return Object.values(database.prepare(sql).get() ?? {})[0]
    } finally {
      database.close()
    }
  }
  const expectWhole = (file: string): void => {
    expect(query(file, 'select count(*) from filler')).toBe(rows)
    expect(query(file, 'select count(*) from sessions')).toBe(0)
    // The records, and the entry of the restore.
    expect(query(file, 'select count(*) from audit')).toBe(21)
  }

  /** From the first trace of the work until its end. */
  async function timeOf(child: ChildProcess, hasBegun: () => boolean): Promise<number> {
    await untilBegun(child, hasBegun)
    const began = performance.now()
    await ended(child)
    expect(child.exitCode).toBe(0)
    return performance.now() - began
  }
  async function killAfter(millis: number, child: ChildProcess, hasBegun: () => boolean): Promise<void> {
    await untilBegun(child, hasBegun)
    await delay(millis)
    child.kill('SIGKILL')
    await ended(child)
  }
  async function untilBegun(child: ChildProcess, hasBegun: () => boolean): Promise<void> {
    while (!hasBegun() && child.exitCode === null) await delay(1)
  }
  /** Parts of the time, with the first and the last instant. */
  const stages = [0, 0.3, 0.6, 1]

  test('what a killed backup leaves is refused by restore, or is whole', async () => {
    const place = join(folder, 'backups')
    const file = join(place, 'backup.db')
    const hasBegun = (): boolean => readdirSync(place).length > 0
    const backup = (): ChildProcess => {
      rmSync(place, { recursive: true, force: true })
      mkdirSync(place)
      return start('backup', file, '--data', data, '--keys')
    }
    const millis = await timeOf(backup(), hasBegun)
    let refused = 0
    for (const part of stages) {
      await killAfter(part * millis, backup(), hasBegun)
      const left = readdirSync(place).filter((name) => !name.endsWith('-journal'))
      // A file with the name of the backup is complete, and any other begins with a dot.
      expect(left.filter((name) => name !== 'backup.db').every((name) => name.startsWith('.backup.db.'))).toBe(true)
      for (const name of left) {
        // With what SQLite wrote beside it, and as an operator would try it without that.
        const journal = join(place, `${name}-journal`)
        for (const alone of existsSync(journal) ? [false, true] : [true]) {
          if (alone) rmSync(journal, { force: true })
          const fresh = join(folder, 'fresh')
          cpSync(join(data, 'keys'), join(fresh, 'keys'), { recursive: true })
          const { code, output } = await run('restore', join(place, name), '--data', fresh)
          if (code === 0) expectWhole(join(fresh, 'gatehouse.db'))
          else {
            expect(name).not.toBe('backup.db')
            expect(output).toMatch(/is not complete|damaged|is not a database of Gatehouse/)
            refused++
          }
          rmSync(fresh, { recursive: true, force: true })
        }
      }
    }
    expect(refused).toBeGreaterThan(0)
  })

  test('a killed restore is refused by serve until it is repeated, or is whole', async () => {
    const fresh = join(folder, 'restored')
    const hasBegun = (): boolean => existsSync(fresh) && readdirSync(fresh).some((name) => name.startsWith('.restore-'))
    const restore = (): ChildProcess => {
      rmSync(fresh, { recursive: true, force: true })
      return start('restore', whole, '--data', fresh)
    }
    const millis = await timeOf(restore(), hasBegun)
    let refused = 0
    for (const part of stages) {
      await killAfter(part * millis, restore(), hasBegun)
      if (!existsSync(join(fresh, 'gatehouse.db'))) {
        const { code, output } = await serve('--data', fresh)
        expect(code).toBe(1)
        expect(output).toMatch(/a restore to .* has not finished.*run .?"gatehouse restore.?" again/)
        expect(existsSync(join(fresh, 'gatehouse.db'))).toBe(false)
        refused++
        expect(await run('restore', whole, '--data', fresh)).toMatchObject({ code: 0 })
      }
      expectWhole(join(fresh, 'gatehouse.db'))
      expect(existsSync(join(fresh, 'keys/workflow-secret.key'))).toBe(true)
    }
    expect(refused).toBeGreaterThan(0)
    const gateway = await startGatewayProcess({ config, dataFolder: fresh })
    await gateway.stop()
  })
})

describe.skipIf(postgresPrograms === undefined)('a killed backup or restore of PostgreSQL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-killed-'))
  let server: DebianPostgres
  beforeAll(async () => {
    server = await startDebianPostgres(postgresPrograms ?? '')
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Kills a restore that waits for a lock on a table. */
  async function killWhenItWaits(url: string, lock: string, place: readonly string[]): Promise<void> {
    const holder = new Client({ connectionString: url })
    await holder.connect()
    try {
      await holder.query(`begin; lock table ${lock}`)
      const child = start('restore', '--yes', ...place)
      await until(async () => {
        if (child.exitCode !== null) throw new Error(`the restore ended with ${child.exitCode}`)
        return (await runSql(url, 'select 1 from pg_locks where not granted')).length > 0
      }, long)
      child.kill('SIGKILL')
      await ended(child)
    } finally {
      await holder.end()
    }
  }

  test('gateways refuse the database until the restore is repeated', async () => {
    const url = await server.create('unfinished')
    const data = join(folder, 'unfinished')
    const place = ['--database', url, '--data', data]
    await fill(data, url)
    await runSql(url, addSession)
    const sessions = async (): Promise<number> => (await runSql(url, 'select id from sessions')).length
    for (const [lock, left] of [
      ['sessions in access exclusive mode', 1],
      ['audit in share mode', 0],
    ] as const) {
      await killWhenItWaits(url, lock, place)
      await until(async () => (await sessions()) === left, long)
      expect(await serve(...place)).toMatchObject({
        code: 3,
        output: expect.stringMatching(
          /a restore of this database did not finish.*gatehouse restore --yes.*RESTORE_UNFINISHED/,
        ),
      })
    }
    expect(await run('audit', 'verify', ...place)).toMatchObject({
      output: expect.stringContaining('RESTORE_UNFINISHED'),
    })
    expect(await run('restore', '--yes', ...place)).toMatchObject({ code: 0 })
    // The commit of a killed restore that waited for the audit was sent with its record, so that may be there too.
    const records = await runSql(url, `select id from audit where changes like '%"database"%'`)
    expect([1, 2]).toContain(records.length)
    expect(await run('audit', 'verify', ...place)).toMatchObject({ code: 0 })
    const gateway = await startGatewayProcess({ config, dataFolder: data, args: ['--database', url] })
    await gateway.stop()
  })

  test('a dump that was cut off is refused, and an empty database is not finished', async () => {
    const url = await server.create('dumped')
    const data = join(folder, 'dumped')
    await fill(data, url)
    const [dump, cut] = [join(folder, 'dump'), join(folder, 'cut')]
    const tool = (name: string, ...args: string[]) => promisify(execFile)(join(postgresPrograms ?? '', name), args)
    await tool('pg_dump', '--format=custom', `--file=${dump}`, url)
    const bytes = readFileSync(dump)
    const target = await server.create('cut')
    const load = (file: string) =>
      tool('pg_restore', '--no-owner', '--exit-on-error', '--single-transaction', `--dbname=${target}`, file)
    const restore = () => run('restore', '--yes', '--database', target, '--data', data)
    for (const part of [0, 0.2, 0.5, 0.8, 0.95]) {
      writeFileSync(cut, bytes.subarray(0, Math.floor(part * bytes.length)))
      await expect(load(cut)).rejects.toThrow()
      expect(await runSql(target, `select 1 from pg_tables where schemaname = 'public'`)).toEqual([])
    }
    expect(await restore()).toMatchObject({ code: 1, output: expect.stringContaining('has no tables of Gatehouse') })
    expect(await runSql(target, `select 1 from pg_tables where schemaname = 'public'`)).toEqual([])
    await load(dump)
    expect(await restore()).toMatchObject({ code: 0 })
  })
})
