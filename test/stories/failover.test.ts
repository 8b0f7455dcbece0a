import { writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { databaseProbe } from '#cli/doctor/database-probe.ts'
import { PostgresClient } from '#database/postgres.ts'
import type { SqlQuery } from '#database/sql-client.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { PostgresDatabase } from '#protocols/sql/postgres-database.ts'
import { openStorage } from '#server/composition/stores.ts'
import { temporaryFolder } from '#testing/databases/databases.ts'
import { postgresPrograms } from '#testing/databases/debian-postgres.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { PostgresPair } from '#testing/databases/postgres-pair.ts'
import { newRun } from '#testing/databases/workflow-stores.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { freshCertificate } from '#testing/gateway/test-certificates.ts'
import { missingPart } from '#testing/run/missing-part.ts'
import { recordingLogger } from '#testing/workflows/workflow-fixture.ts'
import { NotifyWakeUp } from '#workflows/store/notify-wake-up.ts'

if (postgresPrograms === undefined) missingPart("Debian's PostgreSQL", 'the package postgresql is not installed')

const long = 60_000
/** Another table for each test. */
let tables = 0

const query = (sql: string): SqlQuery<{ port: number; count: number; waiting: number }> => ({
  sql,
  params: [],
  name: undefined,
})
const ownPort = query('select inet_server_port() as port')
const portOf = (url: string): number => Number(new URL(url).port)

/** The hosts of an address in another order, or others. */
const withHosts = (url: string, hosts: readonly string[]): string => url.replace(/@[^/]+\//, `@${hosts.join(',')}/`)
const hostOf = (url: string): string => new URL(url).host

function open(url: string): PostgresClient {
  const client = new PostgresClient(url, silentLogger)
  onTestFinished(() => client.close())
  return client
}

/** A relay that keeps back what the server reports about itself, and its address. */
async function startPooler(url: string): Promise<string> {
  const relay = createServer((client) => {
    const server = connect(portOf(url), '127.0.0.1')
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on('error', () => other.destroy()).on('close', () => other.destroy())
    }
    client.pipe(server)
    let rest = Buffer.alloc(0)
    server.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      // A type, and a length that counts itself.
      while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
        const message = rest.subarray(0, 1 + rest.readUInt32BE(1))
        rest = rest.subarray(message.length)
        if (!/^S....(?:in_hot_standby|default_transaction_read_only)\0/s.test(message.toString('latin1')))
          client.write(message)
      }
    })
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void relay.close())
  return `127.0.0.1:${(relay.address() as AddressInfo).port}`
}

/** Repeats what fails while no server can be written. */
async function eventually<T>(work: () => Promise<T>, millis = long): Promise<T> {
  const results: T[] = []
  await until(async () => {
    await work().then(
      (value) => void results.push(value),
      () => {},
    )
    return results.length > 0
  }, millis)
  return results[0] as T
}

describe.skipIf(postgresPrograms === undefined)('a PostgreSQL with a synchronous standby', () => {
  let pair: PostgresPair
  beforeAll(async () => {
    pair = await PostgresPair.start(postgresPrograms ?? '', { synchronous: true })
  })
  afterAll(() => pair.stop())

  const freshTable = async (): Promise<string> => {
    const name = `things${tables++}`
    await runSql(pair.primaryUrl, `create table ${name} (id int primary key)`)
    return name
  }

  test('the primary is found, wherever it is in the address', async () => {
    const primary = hostOf(pair.primaryUrl)
    const standby = hostOf(pair.standbyUrl)
    for (const hosts of [
      [primary, standby],
      [standby, primary],
    ]) {
      const rows = await open(withHosts(pair.url, hosts)).query(ownPort)
      expect(rows).toEqual([{ port: portOf(pair.primaryUrl) }])
    }
    const anyServer = `${withHosts(pair.url, [standby, primary])}?target_session_attrs=any`
    expect(await open(anyServer).query(ownPort)).toEqual([{ port: portOf(pair.standbyUrl) }])
  })

  test('the user and password of a target replace those of an address with several hosts', async () => {
    const { username, password } = new URL(pair.primaryUrl)
    const hosts = [hostOf(pair.standbyUrl), hostOf(pair.primaryUrl)].join(',')
    const target = new PostgresDatabase({
      url: `postgres://nobody:wrong@${hosts}/postgres`,
      user: username,
      password: decodeURIComponent(password),
      timeoutMillis: 20_000,
      maxConnections: 2,
      onIdleLoss: () => {},
    })
    onTestFinished(() => target.close())
    expect(await target.query({ sql: 'select inet_server_port() as port', params: [] })).toEqual([
      { port: String(portOf(pair.primaryUrl)) },
    ])
  })

  test('the primary is also found behind poolers that do not pass on what a server reports', async () => {
    const hosts = [await startPooler(pair.standbyUrl), await startPooler(pair.primaryUrl)]
    const url = withHosts(pair.url, hosts)
    expect(await open(url).query(ownPort)).toEqual([{ port: portOf(pair.primaryUrl) }])
    const target = new PostgresDatabase({ url, timeoutMillis: 20_000, maxConnections: 2, onIdleLoss: () => {} })
    onTestFinished(() => target.close())
    const port = { sql: 'select inet_server_port() as port', params: [] }
    expect(await target.query(port)).toEqual([{ port: String(portOf(pair.primaryUrl)) }])
  })

  test('a wrong password is reported, and not tried at each server', async () => {
    const client = open(pair.url.replace(/:[^:@]+@/, ':wrong@'))
    await expect(client.query(ownPort)).rejects.toThrow(/^password authentication failed/)
  })

  test('a server that accepts connections and is silent is passed over', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => void sockets.add(socket.on('error', () => {})))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      silent.close()
    })
    const hosts = [`127.0.0.1:${(silent.address() as AddressInfo).port}`, hostOf(pair.primaryUrl)]
    const client = open(withHosts(pair.url, hosts))
    expect(await client.query(ownPort)).toEqual([{ port: portOf(pair.primaryUrl) }])
    const before = sockets.size
    await Promise.all(Array.from({ length: 5 }, () => client.query(ownPort)))
    expect(sockets.size).toBe(before)
  })

  test('without a primary the error has the reason of each server', async () => {
    const hosts = ['127.0.0.1:1', hostOf(pair.standbyUrl)]
    await expect(open(withHosts(pair.url, hosts)).query(ownPort)).rejects.toMatchObject({
      code: 'TARGET_UNREACHABLE',
      retryAfter: 5,
      message: expect.stringMatching(
        /^no server .* 127\.0\.0\.1:1: .*ECONNREFUSED.*; 127\.0\.0\.1:\d+: .* is a standby$/,
      ),
    })
    const log = recordingLogger()
    const one = new PostgresClient(`${pair.standbyUrl}?target_session_attrs=primary`, log)
    onTestFinished(() => one.close())
    await expect(one.query(ownPort)).rejects.toMatchObject({ message: `${hostOf(pair.standbyUrl)} is a standby` })
    expect(log.lines).toEqual([])
  })

  test('a commit that no standby has is not acknowledged when its wait is ended', async () => {
    const table = await freshTable()
    const client = open(pair.url)
    await client.transaction((tx) => tx.run(query(`insert into ${table} values (1)`)))
    await pair.holdReplication()
    onTestFinished(() => pair.resumeReplication())
    const waiting = client.transaction((tx) => tx.run(query(`insert into ${table} values (2)`)))
    const refused = expect(waiting).rejects.toMatchObject({ code: 'TARGET_UNREACHABLE' })
    await until(async () => {
      const rows = await runSql(
        pair.primaryUrl,
        `select pg_cancel_backend(pid) as ended from pg_stat_activity where wait_event = 'SyncRep'`,
      )
      return rows.length > 0
    }, long)
    await refused
    await pair.resumeReplication()
    expect(await client.transaction((tx) => tx.run(query(`insert into ${table} values (3)`)))).toBe(1)
  })

  test('the doctor says that commits wait', async () => {
    expect(await databaseProbe(pair.url, '').run(new AbortController().signal)).toContainEqual({
      level: 'ok',
      seen: 'a commit waits for a synchronous standby',
    })
  })

  test('storage, wake-ups and reports continue at the promoted standby, and what was acknowledged is there', async () => {
    const storages = [0, 1].map(() => {
      const wake = new NotifyWakeUp(pair.url, silentLogger)
      const storage = openStorage({ url: pair.url, clock: systemClock, log: silentLogger, wake })
      onTestFinished(async () => {
        await wake.close()
        await storage.close()
      })
      return { wake, storage }
    })
    const [one, two] = storages
    if (one === undefined || two === undefined) throw new Error('no storage')
    await one.storage.ready()
    await two.storage.ready()
    let heard = 0
    await one.wake.start(() => {})
    await two.wake.start(() => void heard++)
    const acknowledged: string[] = []
    let isOver = false
    const load = Array.from({ length: 8 }, async (_, sender) => {
      for (let n = 0; !isOver; n++) {
        const id = `run-${sender}-${n}`
        const isStored = await one.storage.runs.start(newRun(id, { resource: `user ${id}` })).then(
          () => true,
          () => false,
        )
        if (isStored) acknowledged.push(id)
      }
    })
    for (const _ of [1, 2]) {
      const before = acknowledged.length
      await until(async () => acknowledged.length > before + 20, long)
      await pair.failOver(100)
      await pair.addStandby()
    }
    const after = acknowledged.length
    await until(async () => acknowledged.length > after + 20, long)
    isOver = true
    await Promise.all(load)
    const found = await Promise.all(acknowledged.map((id) => two.storage.runs.get(id)))
    expect(found.filter((run) => run === undefined)).toEqual([])
    const before = heard
    await eventually(() => one.storage.runs.start(newRun('woken', { resource: 'user woken' })))
    await until(async () => heard > before, long)
    const report = await eventually(() =>
      two.storage.reports.run({ parts: ['select inet_server_port()'], values: [], limit: 1, timeoutMillis: 20_000 }),
    )
    expect(await report.next()).toEqual([[String(portOf(pair.primaryUrl))]])
    await report.close?.()
    expect(pair).toMatchObject({ kills: 2, promotions: 2 })
  })
})

describe.skipIf(postgresPrograms === undefined)('a PostgreSQL with an asynchronous standby', () => {
  const certificate = freshCertificate()
  let pair: PostgresPair
  beforeAll(async () => {
    pair = await PostgresPair.start(postgresPrograms ?? '', { synchronous: false, certificate })
  })
  afterAll(() => pair.stop())

  test('the certificate of each server must have its own name', async () => {
    const authority = join(temporaryFolder(), 'ca.pem')
    writeFileSync(authority, certificate.authority)
    const port = portOf(pair.primaryUrl)
    const tls = `?sslmode=verify-full&sslrootcert=${authority}`
    const other = `localhost:${port}`
    const client = open(`${withHosts(pair.url, [other, hostOf(pair.primaryUrl)])}${tls}`)
    const encrypted = query('select count(*)::int as count from pg_stat_ssl where ssl and pid = pg_backend_pid()')
    expect(await client.query(encrypted)).toEqual([{ count: 1 }])
    const wrong = open(`${withHosts(pair.url, [other, other])}${tls}`)
    await expect(wrong.query(ownPort)).rejects.toThrow(/localhost:\d+: Hostname\/IP does not match/)
  })

  test('the doctor warns, also when the role may not see who follows', async () => {
    const signal = new AbortController().signal
    const warning = {
      level: 'warning',
      seen: 'it has a standby, but no synchronous one: a failover loses answered changes',
      advice: expect.stringContaining('synchronous_standby_names'),
    }
    await runSql(pair.primaryUrl, `create role plain login password 'plain'`)
    const plain = pair.primaryUrl.replace(/\/\/[^@]+@/, '//plain:plain@')
    for (const url of [pair.url, pair.primaryUrl, plain]) {
      expect(await databaseProbe(url, '').run(signal)).toContainEqual(warning)
    }
    await runSql(pair.primaryUrl, 'alter role plain set synchronous_commit = off')
    expect(await databaseProbe(plain, '').run(signal)).toContainEqual(
      expect.objectContaining({ seen: expect.stringMatching(/^synchronous_commit is off/) }),
    )
  })

  test('connections to a server that became read-only are left for the promoted one, although only reads come', async () => {
    await runSql(pair.primaryUrl, 'create table things (id int primary key)')
    const client = open(pair.url)
    const old = pair.primaryUrl
    const poolers = [await startPooler(old), await startPooler(pair.standbyUrl)]
    const behind = open(withHosts(pair.url, poolers))
    const slowly = query('select inet_server_port() as port from pg_sleep(0.2)')
    const portsOf = async (reader: PostgresClient): Promise<number[]> => {
      const rows = await Promise.all(Array.from({ length: 5 }, () => reader.query(slowly)))
      return [...new Set(rows.flat().map(({ port }) => port))]
    }
    expect(await portsOf(behind)).toEqual([portOf(old)])
    const insert = (id: number) => client.transaction((tx) => tx.run(query(`insert into things values (${id})`)))
    await Promise.all([1, 2, 3, 4].map(insert))
    expect(await client.query(ownPort)).toEqual([{ port: portOf(old) }])
    await runSql(old, 'alter system set default_transaction_read_only = on')
    await runSql(old, 'select pg_reload_conf()')
    await pair.promote()
    await until(async () => (await client.query(ownPort))[0]?.port === portOf(pair.primaryUrl), long)
    expect(await portsOf(client)).toEqual([portOf(pair.primaryUrl)])
    expect(await insert(5)).toBe(1)
    // Nothing was written, so the transaction is repeated at the other server.
    expect(await behind.transaction((tx) => tx.run(query('insert into things values (6)')))).toBe(1)
    expect(await portsOf(behind)).toEqual([portOf(pair.primaryUrl)])
  })
})

const silence = { timeout: 400_000, skip: postgresPrograms === undefined }

test('a primary that becomes silent is left for the promoted standby by all connections', silence, async () => {
  const pair = await PostgresPair.start(postgresPrograms ?? '', { synchronous: false })
  onTestFinished(() => pair.stop())
  const openStores = () => {
    const wake = new NotifyWakeUp(pair.url, silentLogger)
    const storage = openStorage({ url: pair.url, clock: systemClock, log: silentLogger, wake })
    onTestFinished(async () => {
      await wake.close()
      await storage.close()
    })
    return { wake, storage }
  }
  const [one, two] = [openStores(), openStores()]
  await one.storage.ready()
  await two.storage.ready()
  let heard = 0
  await one.wake.start(() => {})
  await two.wake.start(() => void heard++)
  const report = (timeoutMillis: number) =>
    two.storage.reports.run({ parts: ['select inet_server_port()'], values: [], limit: 1, timeoutMillis })
  await (await report(20_000)).close?.()
  await Promise.all(Array.from({ length: 8 }, (_, i) => one.storage.runs.get(`none-${i}`)))
  await pair.silencePrimary()
  const underWay = [one.storage.runs.get('none'), report(5_000)].map((work) => work.catch((error: unknown) => error))
  await pair.promote()
  // Five seconds for a connection, and 45 for a statement that waits for its answer.
  await eventually(() => one.storage.runs.start(newRun('silent', { resource: 'user silent' })), 150_000)
  await Promise.all(underWay)
  expect(await (await eventually(() => report(20_000), 150_000)).next()).toEqual([[String(portOf(pair.primaryUrl))]])
  const before = heard
  await until(async () => {
    await one.storage.runs.start(newRun(`woken-${Math.random()}`, { resource: 'user woken' }))
    return heard > before
  }, 150_000)
})
