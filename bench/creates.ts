import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { peoplePath } from './configuration.ts'
import { quick } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { startQueryRelay } from './query-relay.ts'
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
  const relay = await startQueryRelay(database.url)
  try {
    await client.connect()
    const gateway = await startMeasured(config, join(folder, 'creates-postgres'), relay.url)
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
