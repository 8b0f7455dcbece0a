import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { bulkPeople, createDirectory, groupsOfUser } from '#testing/databases/bulk-people.ts'
import { type EmbeddedDatabase, startPostgres } from '#testing/databases/embedded-postgres.ts'
import { peoplePath, writeConfiguration } from './configuration.ts'
import { startMeasured } from './gateway.ts'
import { measureManyTenants } from './many-tenants.ts'
import { connections } from './paired.ts'
import { printPlans } from './plans.ts'
import { PostgresCosts } from './postgres-costs.ts'
import { costOf, databaseText, type RequestCost } from './request-cost.ts'
import { type RequestMaker, scimRequests, someIds } from './requests.ts'
import { number, rate, row, say } from './table.ts'
import { measureTokenCosts } from './token-costs.ts'

/** What the curves are continued to. */
const extrapolated = 10_000_000
const replicas = [1, 3, 10]
const since = Date.UTC(2026, 0, 1)

interface StoredBytes {
  readonly user: number
  readonly group: number
  readonly membership: number
}

/** Costs by kind of request and size of the directory. */
type Curves = Map<string, Map<number, RequestCost>>

export async function measureCapacity(folder: string, quickstart: string, sizes: readonly number[]): Promise<void> {
  const config = writeConfiguration(join(folder, 'capacity'), quickstart)
  const curves: Curves = new Map()
  let stored: StoredBytes | undefined
  for (const users of sizes.filter((size) => size > 0)) {
    const largest = users === Math.max(...sizes)
    storedRows('SQLite', users, await onSqlite(folder, users, largest))
    stored = await onPostgres(folder, config, users, curves, largest)
  }
  if (stored !== undefined) extrapolate(curves, stored)
  await measureTokenCosts(folder)
  await measureManyTenants(folder, quickstart)
}

const groupsFor = (users: number): number => Math.max(10, Math.ceil(users / 100))

function storedRows(database: string, users: number, { user, group, membership }: StoredBytes): void {
  const others = `group ${number(group)}, membership ${number(membership)} bytes`
  row(`stored user, ${database}, ${number(users)} users`, `${number(user)} bytes`, others)
}

async function onSqlite(folder: string, users: number, largest: boolean): Promise<StoredBytes> {
  const dataFolder = join(folder, `capacity-${users}`)
  await createDirectory({ dataFolder }, 'people')
  const file = join(dataFolder, 'gatehouse.db')
  const database = new DatabaseSync(file)
  try {
    const fill = async (statements: readonly string[]): Promise<number> => {
      const bytes = (): number => {
        database.exec('pragma wal_checkpoint(truncate)')
        return statSync(file).size
      }
      const before = bytes()
      database.exec(`begin; ${statements.join(';')}; commit`)
      return bytes() - before
    }
    const stored = await storedBytes(users, fill)
    if (largest) await printPlans(`sqlite:${file}`, users, since, 'SQLite')
    return stored
  } finally {
    database.close()
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

async function storedBytes(
  users: number,
  fill: (statements: readonly string[]) => Promise<number>,
): Promise<StoredBytes> {
  const groups = groupsFor(users)
  const rows = bulkPeople('people', users, groups, since)
  const user = (await fill(rows.users)) / users
  const group = (await fill(rows.groups)) / groups
  return { user, group, membership: (await fill(rows.memberships)) / (users * groupsOfUser) }
}

async function onPostgres(
  folder: string,
  config: string,
  users: number,
  curves: Curves,
  largest: boolean,
): Promise<StoredBytes> {
  const database = await startPostgres({ durable: true })
  const costs = await PostgresCosts.open(database.url)
  try {
    await createDirectory({ url: database.url }, 'people')
    // Without the checks of foreign keys, which take most of the time.
    await costs.run('set session_replication_role = replica')
    const started = performance.now()
    const stored = await storedBytes(users, async (statements) => {
      const tables = ['entries', 'attributes', 'memberships', 'collection_sizes']
      const before = await costs.bytes(...tables)
      await costs.run(...statements, 'analyze')
      return (await costs.bytes(...tables)) - before
    })
    await costs.run('vacuum analyze', 'checkpoint')
    say(`\nmade ${number(users)} users on PostgreSQL in ${((performance.now() - started) / 1000).toFixed(1)} s`)
    storedRows('PostgreSQL', users, stored)
    await measureRequests(folder, config, users, database, costs, curves)
    if (largest) await printPlans(database.url, users, since, 'PostgreSQL')
    return stored
  } finally {
    await costs.close()
    await database.stop()
  }
}

async function measureRequests(
  folder: string,
  config: string,
  users: number,
  { url }: EmbeddedDatabase,
  costs: PostgresCosts,
  curves: Curves,
): Promise<void> {
  const gateway = await startMeasured(config, join(folder, 'capacity-data'), url)
  try {
    const requests = scimRequests(gateway, peoplePath)
    const ids = await someIds(gateway, peoplePath, users)
    const kinds: readonly (readonly [string, RequestMaker, number])[] = [
      ['GET by id', requests.byId(ids), 200],
      ['filter userName eq', requests.byLogin(users), 200],
      ['page of 100', requests.page, 200],
      ['PATCH active', requests.active(ids), 200],
      ['create', requests.create, 201],
    ]
    for (const [name, request, status] of kinds) {
      const tables = { directory: ['entries', 'attributes'], audit: ['audit', 'audit_contexts'] } as const
      const bytes: number[] = []
      for (const names of Object.values(tables)) bytes.push(await costs.bytes(...names))
      const { cost, count } = await costOf(gateway, costs, connections, request, status)
      row(`${name}, ${number(users)} users`, rate(cost.perSecond, cost.gatewayMicros), databaseText(cost))
      curves.set(name, (curves.get(name) ?? new Map<number, RequestCost>()).set(users, cost))
      if (name !== 'create') continue
      const grown: string[] = []
      for (const [what, names] of Object.entries(tables)) {
        const each = ((await costs.bytes(...names)) - (bytes[grown.length] ?? 0)) / count
        grown.push(`${what} ${number(each)}`)
      }
      row(`stored by a create, ${number(users)} users`, `${grown.join(', ')} bytes`)
    }
    row(`resident memory of the gateway, ${number(users)} users`, `${number(gateway.residentMegabytes())} MB`)
  } finally {
    await gateway.stop()
  }
}

/** Continues the curves, and divides cores by CPU times. */
function extrapolate(curves: Curves, { user, group, membership }: StoredBytes): void {
  const label = `${number(extrapolated)} users, extrapolated`
  const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`
  const bytes = extrapolated * (user + groupsOfUser * membership) + groupsFor(extrapolated) * group
  row(`PostgreSQL, ${label}`, gigabytes(bytes), `${number(groupsFor(extrapolated))} groups`)
  for (const [name, bySize] of curves) {
    const [[large, last] = [0, undefined], [small, previous] = [0, undefined]] = [...bySize].sort(([a], [b]) => b - a)
    if (last === undefined) continue
    if (previous !== undefined) {
      // The cost of a look-up in a B-tree grows with the logarithm of its size. A curve that falls is noise.
      const steps = Math.log(extrapolated / large) / Math.log(large / small)
      const at = (one: number, before: number): number => one + Math.max(0, one - before) * steps
      const gatewayMicros = at(last.gatewayMicros, previous.gatewayMicros)
      const databaseMicros = at(last.databaseMicros, previous.databaseMicros)
      row(`${name}, ${label}`, `${number(gatewayMicros)} µs CPU`, databaseText({ ...last, databaseMicros }))
    }
    const carried = replicas.map((count) => rate((count * 1_000_000) / last.gatewayMicros)).join(', ')
    const cores = replicas.map((count) => ((count * last.databaseMicros) / last.gatewayMicros).toFixed(1)).join(', ')
    row(`${name}, ${replicas.join(', ')} full cores of gateways`, carried, `${cores} cores of PostgreSQL`)
  }
}
