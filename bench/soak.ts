import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { type GatewayProcess, startGatewayProcess } from '#testing/gateway/gateway-process.ts'
import makeProgram from '#testing/run/bundle-setup.ts'
import { percentile } from './median.ts'
import { plot } from './plot.ts'
import { megabytesOf, openFilesOf } from './process-figures.ts'
import { parseSoakOptions, type SoakOptions, soakUsage } from './soak-options.ts'
import { memoryGrowth, mostGrowth, type SoakSample, settledMinute, soakTable } from './soak-report.ts'
import { SoakWork } from './soak-work.ts'
import { stsEndpoint } from './sts.ts'
import { type BenchCluster, startBenchCluster } from './sts-cluster.ts'
import { number, percent, say } from './table.ts'

const { minutes, plot: plotFile, help, inner } = readOptions()

function readOptions(): SoakOptions {
  try {
    return parseSoakOptions(process.argv.slice(2))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

const sampleMillis = 10_000
/** As fast as the gateway answers, to find its capacity: a minute, less in a short soak. */
const capacityMillis = Math.min(60_000, minutes * 15_000)
const capacityParallel = 16
/** Of work that is under way at once; beyond it the work is late and left out. */
const mostParallel = 200
const reloadMillis = Math.min(60_000, minutes * 20_000)
/** Three times: an endpoint has four keys at most, and each stays until its last token has expired. */
const rotationMillis = minutes * 15_000
const endpoint = 'soak'

/** Ends the soak early, with everything printed and cleaned up. */
const stopped = new AbortController()

/** The quickstart with a token endpoint. */
function writeSoakConfiguration(folder: string, cluster: BenchCluster): string {
  const config = join(folder, 'config')
  cpSync('examples/quickstart', config, { recursive: true })
  const spec = { className: 'targets.Kubernetes', params: { url: cluster.url, token: 'reviewer' } }
  const target = { apiVersion: 'openunison.tremolo.io/v1', kind: 'Target', metadata: { name: 'k8s' }, spec }
  writeFileSync(join(config, 'cluster.yaml'), JSON.stringify(target))
  const endpoints = [stsEndpoint(endpoint, 'RS256')]
  appendFileSync(join(config, 'values.yaml'), `\nsts: ${JSON.stringify({ endpoints })}\n`)
  return config
}

/** Does something again and again until the soak ends; returns how often that succeeded. */
async function every(millis: number, problems: string[], action: () => Promise<void>): Promise<number> {
  for (let count = 0; ; ) {
    await delay(millis, undefined, { signal: stopped.signal }).catch(() => undefined)
    if (stopped.signal.aborted) return count
    try {
      await action()
      count++
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error))
    }
  }
}

/** The number of a metric of prom-client, 0 without it. */
function metricOf(metrics: string, name: string): number {
  const line = metrics.split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

async function soak(folder: string): Promise<boolean> {
  await makeProgram()
  const program = process.env['GATEHOUSE_PROGRAM'] ?? 'bin/gatehouse'
  const database = await startPostgres({ durable: true })
  // The server's package would stop it at a signal, before the gateway.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.removeAllListeners(signal)
    process.on(signal, () => stopped.abort())
  }
  const cluster = await startBenchCluster()
  const config = writeSoakConfiguration(folder, cluster)
  const client = new pg.Client(database.url)
  let gateway: GatewayProcess | undefined
  try {
    await client.connect()
    const args = ['--database', database.url, '--log-level', 'error']
    gateway = await startGatewayProcess({ config, args, dataFolder: join(folder, 'data'), program })
    const rotate = async (): Promise<void> => {
      const place = ['--config', config, '--data', join(folder, 'data'), '--endpoint', endpoint]
      const env = { ...process.env, GATEHOUSE_URL: gateway?.url, GATEHOUSE_DATABASE: database.url }
      const child = spawn(program, ['keys', 'rotate', ...place, '--now'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
      // The exit code is 1 here: the documents are not at the host of the issuer, which does not exist.
      if (!output.includes('signs now')) throw new Error(`keys rotate: ${output} ${errors}`)
    }
    return await run(gateway, cluster, client, config, rotate)
  } finally {
    const code = await gateway?.stop()
    if (code !== undefined && code !== 0) {
      say(`the gateway ended with ${code}`)
      process.exitCode = 1
    }
    await client.end()
    await cluster.close()
    await database.stop()
  }
}

async function run(
  gateway: GatewayProcess,
  cluster: BenchCluster,
  client: pg.Client,
  config: string,
  rotate: () => Promise<void>,
): Promise<boolean> {
  const { pid } = gateway.process
  // Longer than any soak.
  const token = await gateway.token('--subject', 'idp', '--ttl', String((minutes + 60) * 60))
  const work = new SoakWork({ url: gateway.url, token, cluster })
  await work.start()
  const started = performance.now()
  const end = started + minutes * 60_000
  setTimeout(() => stopped.abort(), minutes * 60_000).unref()
  const problems: string[] = []
  const samples: SoakSample[] = []
  const tablesBefore = await tableSizes(client)
  let times: number[] = []
  let sampled = started
  let printed = 0
  const reloads = { applied: 0, refused: 0 }
  const sample = async (): Promise<void> => {
    const now = performance.now()
    const [these, seconds] = [times, (now - sampled) / 1000]
    times = []
    sampled = now
    const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
    const { rows } = await client.query<{ bytes: string }>('select pg_database_size(current_database()) as bytes')
    for (const outcome of ['applied', 'refused'] as const) {
      reloads[outcome] = metricOf(metrics, `gatehouse_configuration_reloads_total{outcome="${outcome}"}`)
    }
    samples.push({
      minutes: Math.min((now - started) / 60_000, minutes),
      residentMegabytes: megabytesOf(pid, 'VmRSS'),
      heapMegabytes: metricOf(metrics, 'nodejs_heap_size_used_bytes') / 1024 / 1024,
      openFiles: openFilesOf(pid),
      timers: metricOf(metrics, 'nodejs_active_resources{type="Timeout"}'),
      databaseMegabytes: Number(rows[0]?.bytes) / 1024 / 1024,
      perSecond: these.length / seconds,
      p99: percentile(these, 0.99),
    })
    const lines = soakTable(samples).split('\n')
    // The last line is of the minute that is not over.
    for (; printed < lines.length - 1; printed++) say(lines[printed] ?? '')
  }
  // The gateway reads its files again when they change.
  const reload = async (): Promise<void> =>
    appendFileSync(join(config, 'access.yaml'), `# ${new Date().toISOString()}\n`)
  const sampling = every(sampleMillis, problems, sample)
  const reloading = every(reloadMillis, problems, reload)
  const rotating = every(rotationMillis, problems, rotate)
  const one = async (): Promise<void> => void times.push(await work.once())
  const capacity = await measureCapacity(one)
  say(`capacity ${number(capacity)}/s of mixed work; from now on half of it`)
  const late = await atRate(capacity / 2, end, one)
  stopped.abort()
  const [, , rotations] = await Promise.all([sampling, reloading, rotating])
  await sample()
  work.close()
  if (reloads.applied === 0) problems.push('the configuration was not reloaded')
  if (reloads.refused > 0) problems.push(`${reloads.refused} reloads were refused`)
  return report(
    { samples, work, problems, late, reloads: reloads.applied, rotations },
    tablesBefore,
    await tableSizes(client),
  )
}

/** Pieces of work a second when the next one follows at once. */
async function measureCapacity(one: () => Promise<void>): Promise<number> {
  let done = 0
  const started = performance.now()
  const busy = async (): Promise<void> => {
    while (performance.now() - started < capacityMillis && !stopped.signal.aborted) {
      await one()
      done++
    }
  }
  await Promise.all(Array.from({ length: capacityParallel }, busy))
  return done / ((performance.now() - started) / 1000)
}

/** Starts work when it is due, whether or not earlier work is done; returns how much was left out. */
async function atRate(perSecond: number, end: number, one: () => Promise<void>): Promise<number> {
  const underWay = new Set<Promise<void>>()
  const started = performance.now()
  let late = 0
  for (let n = 0; performance.now() < end && !stopped.signal.aborted; n++) {
    const wait = started + (n * 1000) / perSecond - performance.now()
    if (wait > 1) await delay(wait)
    if (underWay.size >= mostParallel) {
      late++
      // Answers are read between two turns of this loop.
      await delay(1)
      continue
    }
    const work = one().finally(() => underWay.delete(work))
    underWay.add(work)
  }
  await Promise.all(underWay)
  return late
}

/** Bytes by table, with indexes. */
async function tableSizes(client: pg.Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await client.query<{ name: string; bytes: string }>(
    `select n.nspname || '.' || c.relname as name, pg_total_relation_size(c.oid) as bytes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')`,
  )
  return new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]))
}

interface Outcome {
  readonly samples: readonly SoakSample[]
  readonly work: SoakWork
  readonly problems: readonly string[]
  readonly late: number
  readonly reloads: number
  readonly rotations: number
}

function report(
  { samples, work, problems, late, reloads, rotations }: Outcome,
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): boolean {
  say(`\n${soakTable(samples)}\n`)
  const growth = [...after].map(([name, bytes]) => [name, bytes - (before.get(name) ?? 0)] as const)
  const grown = growth.filter(([, bytes]) => bytes > 0).toSorted(([, a], [, b]) => b - a)
  for (const [name, bytes] of grown.slice(0, 8)) say(`table ${name} grew by ${number(bytes / 1024)} KB`)
  say(`${reloads} reloads, ${rotations} key rotations, ${late} pieces of work left out because too many were under way`)
  const series = [
    { title: 'Resident memory', unit: 'MB', values: samples.map((one) => one.residentMegabytes) },
    { title: 'JavaScript heap', unit: 'MB', values: samples.map((one) => one.heapMegabytes) },
    { title: 'Open files', unit: '', values: samples.map((one) => one.openFiles) },
    { title: 'Timers', unit: '', values: samples.map((one) => one.timers) },
    { title: 'Database', unit: 'MB', values: samples.map((one) => one.databaseMegabytes) },
    { title: 'Requests', unit: '/s', values: samples.map((one) => one.perSecond) },
    { title: 'p99', unit: 'ms', values: samples.map((one) => one.p99) },
  ]
  const at = samples.map((one) => one.minutes)
  const file = resolve(plotFile)
  writeFileSync(file, plot('Soak', at, series))
  say(`plot: ${file}`)
  for (const failure of [...work.failures, ...problems.slice(0, 20)]) say(`FAILED ${failure}`)
  const failed = work.failed + problems.length
  say(failed === 0 ? 'no request failed' : `${number(failed)} failures`)
  const grew = memoryGrowth(samples)
  if (grew === undefined) {
    say(`memory is not judged: the soak has no minute after minute ${settledMinute}`)
    return failed === 0
  }
  const limit = `limit ${percent(mostGrowth)}`
  say(`resident memory at the end: ${percent(grew)} of minute ${settledMinute} (${limit})`)
  return failed === 0 && grew <= mostGrowth
}

/** In a session of its own: Ctrl-C would also interrupt the gateway and PostgreSQL, which end after the work. */
async function outer(): Promise<number> {
  const args = [...process.execArgv, 'bench/soak.ts', ...process.argv.slice(2), '--inner']
  const child = spawn(process.execPath, args, { detached: true, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill('SIGTERM'))
  const [code] = await once(child, 'exit')
  return typeof code === 'number' ? code : 1
}

if (help) say(soakUsage)
else if (inner) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-soak-'))
  try {
    if (!(await soak(folder))) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
} else process.exitCode = await outer()
