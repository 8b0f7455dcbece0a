import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { bareInserts } from './bare-inserts.ts'
import { bareJobs } from './bare-jobs.ts'
import { drive, warm } from './drive.ts'
import { quick, secondsOf, turnsOf } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { median } from './median.ts'
import { type Cost, medianCost } from './paired.ts'
import { PostgresCosts } from './postgres-costs.ts'
import { startQueryRelay } from './query-relay.ts'

export interface WorkflowFigures {
  /** Synchronous runs on SQLite, and their rate as a share of bare durable inserts. */
  readonly synchronous: Cost & { readonly share: number }
  /**
   * Asynchronous runs on PostgreSQL, submitted and executed, by the number of processes, and their rate as a share of
   * bare jobs. The CPU time is that of all gateways.
   */
  readonly asynchronous: readonly (RunCost & { readonly replicas: number; readonly share: number })[]
  readonly bareJobs: number
  /** Of one asynchronous run of one process, with others at the same time. */
  readonly statements: number
  readonly commits: number
}

interface RunCost extends Cost {
  /** CPU time of PostgreSQL, and the growth of the database, of one run. */
  readonly databaseMicros: number
  readonly databaseBytes: number
}

const path = '/call-workflow'
const connections = 16
const turns = turnsOf(3)
const turnSeconds = secondsOf(2)
const jobCount = quick ? 200 : 2000
const drainMillis = 120_000
let made = 0

export async function measureWorkflows(folder: string, quickstart: string): Promise<WorkflowFigures> {
  const config = writeWorkflowConfiguration(join(folder, 'workflows'), quickstart)
  return { synchronous: await measureSynchronous(folder, config), ...(await measureAsynchronous(folder, config)) }
}

async function measureSynchronous(folder: string, config: string): Promise<WorkflowFigures['synchronous']> {
  const gateway = await startMeasured(config, join(folder, 'workflows-sqlite'))
  try {
    const load = { ...loadOf(gateway, 'UNISON.EXEC.SYNC'), expectedStatus: 200 }
    await warm(gateway, { ...load, seconds: turnSeconds })
    const costs: Cost[] = []
    const shares: number[] = []
    for (let turn = 0; turn < turns; turn++) {
      const limit = bareInserts(folder, turnSeconds)
      const cost = await drive(gateway, { ...load, seconds: turnSeconds })
      costs.push(cost)
      shares.push(cost.perSecond / limit)
    }
    return { ...medianCost(costs), share: median(shares) }
  } finally {
    await gateway.stop()
  }
}

async function measureAsynchronous(folder: string, config: string): Promise<Omit<WorkflowFigures, 'synchronous'>> {
  const database = await startPostgres({ durable: true })
  const storage = openStorage({ url: database.url, clock: systemClock, log: silentLogger })
  const postgres = await PostgresCosts.open(database.url)
  const gateways: MeasuredGateway[] = []
  const bare: number[] = []
  const asynchronous = []
  try {
    for (const replicas of [1, 2]) {
      gateways.push(await startMeasured(config, join(folder, 'workflows-postgres'), database.url))
      await runTurn(gateways, storage, postgres)
      const costs: RunCost[] = []
      const shares: number[] = []
      for (let turn = 0; turn < turns; turn++) {
        const jobs = await bareJobs(database.url, jobCount)
        const cost = await runTurn(gateways, storage, postgres)
        bare.push(jobs)
        costs.push(cost)
        shares.push(cost.perSecond / jobs)
      }
      asynchronous.push({
        replicas,
        ...medianCost(costs),
        databaseMicros: median(costs.map(({ databaseMicros }) => databaseMicros)),
        databaseBytes: median(costs.map(({ databaseBytes }) => databaseBytes)),
        share: median(shares),
      })
    }
    for (const gateway of gateways.splice(0)) await gateway.stop()
    return {
      asynchronous,
      bareJobs: median(bare),
      ...(await countStatements(folder, config, database.url, storage, postgres)),
    }
  } finally {
    for (const gateway of gateways) await gateway.stop()
    await storage.close()
    await postgres.close()
    await database.stop()
  }
}

/** The relay takes CPU, so nothing else is measured through it. */
async function countStatements(
  folder: string,
  config: string,
  url: string,
  storage: Storage,
  postgres: PostgresCosts,
): Promise<Pick<WorkflowFigures, 'statements' | 'commits'>> {
  const relay = await startQueryRelay(url)
  const gateway = await startMeasured(config, join(folder, 'workflows-postgres'), relay.url)
  try {
    await runTurn([gateway], storage, postgres)
    const [before, first] = [relay.counted(), made]
    await runTurn([gateway], storage, postgres)
    const after = relay.counted()
    const each = (name: 'statements' | 'commits'): number => (after[name] - before[name]) / (made - first)
    return { statements: each('statements'), commits: each('commits') }
  } finally {
    await gateway.stop()
    relay.close()
  }
}

/** Submits for a while, then waits until all runs were executed; returns the runs per second of all together. */
async function runTurn(
  gateways: readonly MeasuredGateway[],
  storage: Storage,
  postgres: PostgresCosts,
): Promise<RunCost> {
  const before = made
  const cpuSeconds = (): number => gateways.reduce((sum, gateway) => sum + gateway.cpuSeconds(), 0)
  const cpuBefore = cpuSeconds()
  const postgresSeconds = postgres.cpu()
  const bytesBefore = await postgres.allBytes()
  const started = performance.now()
  await Promise.all(
    gateways.map((gateway) =>
      runLoad({
        ...loadOf(gateway, 'UNISON.EXEC.ASYNC'),
        connections: connections / gateways.length,
        expectedStatus: 202,
        seconds: turnSeconds,
      }),
    ),
  )
  const end = Date.now() + drainMillis
  for (;;) {
    const { ready, running } = await storage.runs.figures()
    if (ready + running === 0) break
    if (Date.now() > end) throw new Error(`${ready + running} runs were not executed in time`)
    await delay(10)
  }
  const runs = made - before
  return {
    perSecond: runs / ((performance.now() - started) / 1000),
    cpuMicros: ((cpuSeconds() - cpuBefore) * 1_000_000) / runs,
    databaseMicros: (postgresSeconds() * 1_000_000) / runs,
    databaseBytes: ((await postgres.allBytes()) - bytesBefore) / runs,
  }
}

const loadOf = ({ port, token }: MeasuredGateway, how: string) => ({
  port,
  connections,
  request: (): string => {
    const login = `w${made++}`
    const body = JSON.stringify({
      name: 'join',
      uidAttributeName: 'uid',
      user: {
        attributes: [
          { name: 'uid', values: [login] },
          { name: 'mail', values: [`${login}@example.com`] },
        ],
      },
      requestParams: { 'UNISON.EXEC.TYPE': how },
    })
    return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  },
})

function writeWorkflowConfiguration(folder: string, quickstart: string): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'authentication.yaml'), quickstart)
  writeFileSync(
    join(folder, 'workflows.yaml'),
    `apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: {name: people}
spec: {className: targets.Database, params: []}
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: {name: join}
spec:
  label: join
  description: join
  tasks:
    - {taskType: provision, sync: true, target: people, attributes: [uid, mail]}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: {name: call-workflow}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig: {cookiesEnabled: false}
  urls:
    - hosts: ["127.0.0.1"]
      uri: ${path}
      authChain: api
      azRules: [{scope: dn, constraint: "sub=idp,ou=api,o=Tremolo"}]
      filterChain:
        - className: filters.CallWorkflow
          params: {allowedWorkflow: join, subject: any}
`,
  )
  return folder
}
