import { readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { startPostgres } from '#testing/embedded-postgres.ts'
import { until } from '#testing/gateway-process.ts'
import { peoplePath } from './configuration.ts'
import { quick } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { QueryCount } from './query-count.ts'
import { scimRequests } from './requests.ts'

export interface CreateFigures {
  readonly database: 'SQLite' | 'PostgreSQL'
  readonly connections: number
  /** Of one create, on average. */
  readonly statements: number
  readonly commits: number
  /** SQLite: to the disk, 0 on a file system in memory. PostgreSQL: of its write-ahead log. */
  readonly bytes: number
}

interface Totals {
  readonly statements: number
  readonly commits: number
  readonly bytes: number
}

const creates = quick ? 50 : 500

/** What one SCIM create costs the database: alone, and with others at the same time, which share commits. */
export async function measureCreates(folder: string, config: string): Promise<readonly CreateFigures[]> {
  return [...(await onSqlite(folder, config)), ...(await onPostgres(folder, config))]
}

async function onSqlite(folder: string, config: string): Promise<CreateFigures[]> {
  const file = join(folder, 'statements.json')
  const preload = pathToFileURL(resolve('bench/count-statements.ts')).href
  const environment = { NODE_OPTIONS: `--import=${preload}`, BENCH_STATEMENTS: file }
  const gateway = await startMeasured(config, join(folder, 'creates-sqlite'), undefined, 'idp', [], environment)
  const totals = async (): Promise<Totals> => {
    rmSync(file, { force: true })
    process.kill(gateway.pid, 'SIGUSR2')
    let counted = ''
    await until(async () => {
      counted = readIfThere(file)
      return counted !== ''
    }, 20_000)
    return { ...(JSON.parse(counted) as Omit<Totals, 'bytes'>), bytes: gateway.writtenBytes() }
  }
  try {
    return await count('SQLite', gateway, totals)
  } finally {
    await gateway.stop()
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

async function onPostgres(folder: string, config: string): Promise<CreateFigures[]> {
  const database = await startPostgres({ durable: true })
  const client = new pg.Client(database.url)
  const relay = await startQueryRelay(Number(new URL(database.url).port))
  try {
    await client.connect()
    const url = new URL(database.url)
    url.port = String(relay.port)
    const gateway = await startMeasured(config, join(folder, 'creates-postgres'), url.href)
    const totals = async (): Promise<Totals> => {
      const { rows } = await client.query<{ bytes: string }>(
        `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') as bytes`,
      )
      return { ...relay.counted(), bytes: Number(rows[0]?.bytes) }
    }
    try {
      return await count('PostgreSQL', gateway, totals)
    } finally {
      await gateway.stop()
    }
  } finally {
    await client.end()
    relay.close()
    await database.stop()
  }
}

async function count(
  database: CreateFigures['database'],
  gateway: MeasuredGateway,
  totals: () => Promise<Totals>,
): Promise<CreateFigures[]> {
  const requests = scimRequests(gateway, peoplePath)
  const create = async (connections: number, most: number): Promise<number> => {
    let sent = 0
    const until = (): boolean => sent++ >= most
    const load = { port: gateway.port, connections, seconds: 120, request: requests.create, expectedStatus: 201 }
    return (await runLoad({ ...load, until })).count
  }
  await create(4, creates)
  const figures: CreateFigures[] = []
  for (const connections of [1, 16]) {
    const before = await totals()
    const made = await create(connections, creates)
    const after = await totals()
    const each = (name: keyof Totals): number => (after[name] - before[name]) / made
    figures.push({
      database,
      connections,
      statements: each('statements'),
      commits: each('commits'),
      bytes: each('bytes'),
    })
  }
  return figures
}

/** A relay in front of PostgreSQL that counts what passes. */
async function startQueryRelay(to: number) {
  const counts: QueryCount[] = []
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(to, '127.0.0.1')
    const queries = new QueryCount()
    counts.push(queries)
    for (const socket of [client, behind]) {
      socket.setNoDelay(true)
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (bytes) => queries.add(bytes))
    client.pipe(behind)
    behind.pipe(client)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const sum = (name: 'statements' | 'commits'): number => counts.reduce((all, one) => all + one[name], 0)
  return {
    port: (server.address() as AddressInfo).port,
    counted: () => ({ statements: sum('statements'), commits: sum('commits') }),
    close: (): void => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
