import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { dumpKey, loadDump, rowsOf } from '../upgrades/dump.ts'

const config = 'examples/quickstart'
const program = process.env['GATEHOUSE_PROGRAM'] ?? ''
const nextMigration = '9000_next.sql'
const versions = readdirSync('test/upgrades').filter((name) => /^\d+\.\d+\.\d+$/.test(name))
/** Tables whose rows no later gateway changes. */
const durable = ['collections', 'entries', 'attributes', 'memberships', 'definitions', 'steps', 'audit', 'portal_marks']

let folder = ''
/** The next release: this one, and a migration that it does not know. */
let next = ''
/** A next release whose migration takes a while. PostgreSQL notices only at its end that its client was killed. */
let slow = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-upgrade-'))
  next = release('next', (migrations) => cpSync('test/upgrades/next', migrations, { recursive: true }))
  slow = release('slow', (migrations) => {
    const half = 'create table half (id bigint);'
    const forever = 'insert into half with recursive n (i) as (select 1 union all select i + 1 from n) select i from n;'
    writeFileSync(join(migrations, 'sqlite', '9000_slow.sql'), `${half}\n${forever}\n`)
    writeFileSync(join(migrations, 'postgres', '9000_slow.sql'), `${half}\nselect pg_sleep(4);\n`)
  })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A copy of the program, as an archive of a release unpacks. */
function release(name: string, change: (migrations: string) => void): string {
  const copy = join(folder, name)
  cpSync(dirname(dirname(program)), copy, { recursive: true, verbatimSymlinks: true })
  change(join(copy, 'migrations'))
  return join(copy, 'bin/gatehouse')
}

interface Outcome {
  readonly code: number
  readonly output: string
}

async function run(which: string, ...args: string[]): Promise<Outcome> {
  const options = { env: { ...process.env, ...dumpKey } }
  return await promisify(execFile)(which, args, options).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    (error) => ({ code: error.code, output: error.stdout + error.stderr }),
  )
}

/** One database, made from the dump of a release. */
class Upgrade {
  readonly url: string
  readonly #before = new Map<string, readonly object[]>()
  #count = 0

  private constructor(url: string) {
    this.url = url
  }

  static async load(version: string, dialect: 'sqlite' | 'postgres', url: string): Promise<Upgrade> {
    const upgrade = new Upgrade(url)
    await loadDump(`test/upgrades/${version}/${dialect}.sql`, url)
    for (const table of durable) upgrade.#before.set(table, await rowsOf(url, table))
    return upgrade
  }

  start(which: string): Promise<GatewayProcess> {
    const dataFolder = join(folder, `data-${++this.#count}-${Math.random().toString(36).slice(2)}`)
    const args = ['--database', this.url]
    return startGatewayProcess({ config, program: which, dataFolder, args, environment: dumpKey })
  }

  command(which: string, ...args: string[]): Promise<Outcome> {
    return run(which, ...args, '--database', this.url, '--data', join(folder, 'no-data'))
  }

  /** Every row of the dump is as it was, and its users, open approval and audit work. */
  async readBack(gateway: GatewayProcess): Promise<void> {
    for (const [table, before] of this.#before) {
      expect(before.length, table).toBeGreaterThan(0)
      const columns = Object.keys(before[0] ?? {}).join(', ')
      const after = new Set((await rowsOf(this.url, table, columns)).map((row) => JSON.stringify(row)))
      expect(before.filter((row) => !after.has(JSON.stringify(row)))).toEqual([])
    }
    const [ada, grace] = [await PortalPerson.logIn(gateway, 'ada'), await PortalPerson.logIn(gateway, 'grace')]
    expect((await ada.get('/main/user')).text).toContain('Ada King')
    const { approvals } = (await grace.get('/main/approvals')).json
    expect(approvals).toHaveLength(1)
    const decision = { approved: true, reason: 'fine' }
    expect((await grace.send('PUT', `/main/approvals/${approvals[0].approval}`, decision)).status).toBe(200)
    await until(async () => (await ada.get('/main/user')).json.groups.includes('vault'), 60_000)
    expect(await this.command(next, 'audit', 'verify')).toMatchObject({
      code: 0,
      output: expect.stringContaining('all unchanged'),
    })
  }
}

/** A SCIM client that creates users, one after the other, until it is stopped. */
class ScimLoad {
  readonly created: string[] = []
  readonly failures: string[] = []
  readonly #running: Promise<void>
  #isStopped = false

  private constructor(gateway: GatewayProcess, token: string, prefix: string) {
    this.#running = (async () => {
      for (let i = 0; !this.#isStopped; i++) {
        const userName = `${prefix}-${i}`
        const response = await scim(gateway, token, '/Users', { userName })
        if (response.status === 201) this.created.push(userName)
        else this.failures.push(`${userName}: ${response.status} ${response.text}`)
      }
    })()
  }

  static async start(gateway: GatewayProcess, prefix: string): Promise<ScimLoad> {
    return new ScimLoad(gateway, await gateway.token('--subject', 'idp', '--ttl', '600'), prefix)
  }

  async more(count = 10): Promise<void> {
    const goal = this.created.length + count
    await until(async () => this.created.length >= goal || this.failures.length > 0, 60_000)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    expect(this.failures).toEqual([])
  }
}

async function scim(gateway: GatewayProcess, token: string, path: string, body?: object) {
  const response = await fetch(`${gateway.url}/scim/people${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((error: Error) => error)
  if (response instanceof Error) return { status: 0, text: response.message }
  return { status: response.status, text: await response.text() }
}

/** The users that a gateway does not return. */
async function missing(gateway: GatewayProcess, users: readonly string[]): Promise<string[]> {
  const token = await gateway.token('--subject', 'idp')
  const absent: string[] = []
  for (const user of users) {
    const filter = encodeURIComponent(`userName eq "${user}"`)
    const { text } = await scim(gateway, token, `/Users?filter=${filter}`)
    if (JSON.parse(text).totalResults !== 1) absent.push(user)
  }
  return absent
}

async function expectRefusal(upgrade: Upgrade): Promise<void> {
  const place = ['--listen', '127.0.0.1:0', '--metrics', 'off']
  expect(await upgrade.command(program, 'serve', '--config', config, ...place)).toMatchObject({
    code: 3,
    output: expect.stringMatching(/does not know the migration 9000_next\.sql.*a newer version.*\(SCHEMA_NEWER\)/),
  })
}

const sqliteUrl = (name: string): string => {
  mkdirSync(join(folder, name))
  return `sqlite:${join(folder, name, 'gatehouse.db')}`
}

describe.each(versions)('a database of %s', (version) => {
  test('SQLite: the next release takes over what its predecessor wrote until it stopped', async () => {
    const upgrade = await Upgrade.load(version, 'sqlite', sqliteUrl(`upgrade-${version}`))
    const old = await upgrade.start(program)
    const load = await ScimLoad.start(old, 'before')
    await load.more()
    expect(await upgrade.command(next, 'migrate', '--dry-run')).toEqual({
      code: 0,
      output: expect.stringContaining(`Would run ${nextMigration}\nNothing was changed`),
    })
    expect(await upgrade.command(next, 'migrate')).toMatchObject({
      code: 1,
      output: expect.stringContaining('another gateway uses'),
    })
    expect(await upgrade.command(next, 'audit', 'verify')).toMatchObject({
      code: 3,
      output: expect.stringContaining('SCHEMA_OLDER'),
    })
    const backup = join(folder, `backup-${version}.db`)
    expect(await upgrade.command(next, 'backup', backup)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/Schema: \d{4}_\w+\.sql\nAudit: \d+ records, .*all unchanged/),
    })
    expect(await run(next, 'restore', backup, '--data', join(folder, `restored-${version}`))).toMatchObject({
      code: 0,
      output: expect.stringContaining(`Migrated: ${nextMigration}`),
    })
    await load.more()
    await load.stop()
    await old.stop()
    const gateway = await upgrade.start(next)
    try {
      expect(await missing(gateway, load.created)).toEqual([])
      await upgrade.readBack(gateway)
    } finally {
      await gateway.stop()
    }
    await expectRefusal(upgrade)
  })

  test.skipIf(postgresUrl() === '')(
    'PostgreSQL: a replica of this release and one of the next serve together while the tables change',
    async () => {
      const upgrade = await Upgrade.load(version, 'postgres', await freshSchema())
      const old = await upgrade.start(program)
      const gateways = [old]
      try {
        const onOld = await ScimLoad.start(old, 'old')
        await onOld.more()
        // Two at once: one of them migrates, the other waits for it.
        gateways.push(...(await Promise.all([upgrade.start(next), upgrade.start(next)])))
        const [, first, second] = gateways
        if (first === undefined || second === undefined) throw new Error('two replicas are needed')
        // A line of the log may arrive after the gateway is ready.
        const migrated = () => [first, second].filter((one) => one.output().includes(nextMigration)).length
        await expect.poll(migrated, { timeout: 20_000 }).toBe(1)
        const onNext = await ScimLoad.start(first, 'next')
        await Promise.all([onOld.more(), onNext.more()])
        await Promise.all([onOld.stop(), onNext.stop()])
        expect(await missing(old, onNext.created)).toEqual([])
        expect(await missing(second, onOld.created)).toEqual([])
        await expectRefusal(upgrade)
        await old.stop()
        await upgrade.readBack(second)
      } finally {
        for (const gateway of gateways) await gateway.stop()
      }
    },
  )
})

describe('a killed migration leaves the database as it was', () => {
  const [version = ''] = versions

  /** Kills `migrate` once it is in the middle, then runs the migration of another release. */
  async function killed(upgrade: Upgrade, isInside: () => Promise<boolean>): Promise<void> {
    const args = ['migrate', '--database', upgrade.url, '--data', join(folder, 'no-data')]
    const child = spawn(slow, args, { env: { ...process.env, ...dumpKey }, stdio: 'ignore' })
    const ended = once(child, 'exit')
    await until(isInside, 60_000)
    child.kill('SIGKILL')
    await ended
    expect(await upgrade.command(program, 'migrate')).toMatchObject({
      code: 0,
      output: expect.stringContaining('Nothing to do'),
    })
    await expect(rowsOf(upgrade.url, 'half')).rejects.toThrow()
    expect(await upgrade.command(next, 'migrate')).toMatchObject({
      code: 0,
      output: expect.stringContaining(`Ran ${nextMigration}`),
    })
  }

  test('SQLite', async () => {
    const url = sqliteUrl('killed')
    const log = `${url.slice('sqlite:'.length)}-wal`
    await killed(
      await Upgrade.load(version, 'sqlite', url),
      async () => existsSync(log) && statSync(log).size > 1_000_000,
    )
  })

  test.skipIf(postgresUrl() === '')('PostgreSQL', async () => {
    const url = await freshSchema()
    const sleeping = `select from pg_stat_activity where query like '%pg_sleep(4)%' and wait_event = 'PgSleep'`
    await killed(await Upgrade.load(version, 'postgres', url), async () => (await runSql(url, sleeping)).length > 0)
  })
})
