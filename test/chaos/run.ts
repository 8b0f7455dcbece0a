import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { postgresPrograms } from '#testing/databases/debian-postgres.ts'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { PostgresPair } from '#testing/databases/postgres-pair.ts'
import { FakeIssuer, rsaKey, signedToken } from '#testing/login/fake-issuer.ts'
import { missingPart } from '#testing/run/missing-part.ts'
import { crashPoints } from '#workflows/steps/workflow-services.ts'
import { approvers, callerAudience, callPath, workflows, writeChaosConfiguration } from './chaos-configuration.ts'
import { Deciders } from './deciders.ts'
import { HostileTarget } from './hostile-target.ts'
import { Killer } from './killer.ts'
import { Mailbox } from './mailbox.ts'
import { Replica } from './replica.ts'
import { SeededRandom } from './seeded-random.ts'
import { judge } from './verdict.ts'
import { planSubmissions, Workload } from './workload.ts'

const usage = `Usage: npm run chaos -- [--seed N] [--short] [--runs N] [--replicas N] [--only sqlite|postgres|failover] [--asynchronous] [--keep]

--asynchronous: no commit waits for the standby of the failover, so the trial must find what is lost`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    short: { type: 'boolean', default: false },
    runs: { type: 'string' },
    replicas: { type: 'string' },
    only: { type: 'string' },
    asynchronous: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

interface Scenario {
  readonly name: 'PostgreSQL' | 'PostgreSQL with a standby' | 'SQLite'
  /** For `--only`. */
  readonly key: 'postgres' | 'failover' | 'sqlite'
  readonly replicas: number
  /** Continues until this many runs were acknowledged, and this many processes killed at random and at points … */
  readonly runs: number
  readonly killed: number
  readonly atEachPoint: number
  /** How often the database failed: it was restarted, or its primary was killed and its standby promoted. */
  readonly restarts: number
  readonly restartEveryMillis: number
  /** … but at most this long, which only a very busy machine needs. */
  readonly mostMillis: number
  readonly settleMillis: number
}

const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))
const { short } = values
const minute = 60_000
const replicas = Number(values.replicas ?? (short ? 2 : 3))
const runsOr = (usual: number): number => Number(values.runs ?? usual)
const scenarios: readonly Scenario[] = [
  {
    name: 'PostgreSQL',
    key: 'postgres',
    replicas,
    runs: runsOr(short ? 100 : 3000),
    killed: short ? 2 : 30,
    atEachPoint: short ? 1 : 10,
    restarts: short ? 1 : 5,
    restartEveryMillis: short ? 12_000 : 25_000,
    mostMillis: (short ? 4 : 15) * minute,
    settleMillis: (short ? 2 : 4) * minute,
  },
  {
    name: 'PostgreSQL with a standby',
    key: 'failover',
    replicas,
    runs: runsOr(short ? 100 : 2000),
    killed: short ? 0 : 10,
    atEachPoint: 0,
    restarts: short ? 2 : 10,
    restartEveryMillis: short ? 4000 : 12_000,
    mostMillis: (short ? 4 : 15) * minute,
    settleMillis: (short ? 2 : 4) * minute,
  },
  {
    name: 'SQLite',
    key: 'sqlite',
    replicas: 1,
    runs: runsOr(short ? 60 : 1000),
    killed: short ? 1 : 15,
    atEachPoint: short ? 1 : 5,
    restarts: 0,
    restartEveryMillis: 0,
    mostMillis: (short ? 4 : 10) * minute,
    settleMillis: (short ? 2 : 4) * minute,
  },
]
/** Short, so that other replicas soon take over the work of a killed process. */
const leaseMillis = 2500
const senders = short ? 8 : 24
/** Longer than any trial. */
const tokenSeconds = 3600
const say = (line: string): void => console.log(line)

/** Approvers must exist before the first approval. */
async function makeApprovers(replica: Replica, token: string): Promise<void> {
  for (const login of approvers) {
    const attributes = [
      { name: 'uid', values: [login] },
      { name: 'mail', values: [`${login}@example.com`] },
    ]
    const response = await fetch(replica.url + callPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: workflows.approver,
        uidAttributeName: 'uid',
        user: { attributes },
        requestParams: { 'UNISON.EXEC.TYPE': 'UNISON.EXEC.SYNC' },
      }),
    })
    if (response.status !== 200) throw new Error(`${login}: ${response.status} ${await response.text()}`)
  }
}

/** Waits until only incidents are left and all mails are sent. */
async function settle(storage: Storage, millis: number): Promise<void> {
  const end = Date.now() + millis
  for (; Date.now() < end; await delay(250)) {
    const [runs, mails] = await Promise.all([storage.runs.figures(), storage.mails.figures()])
    if (runs.ready + runs.running + runs.waiting === 0 && mails.queued === 0) return
  }
  say(`not settled after ${millis / 1000} s: ${JSON.stringify(await storage.runs.figures())}`)
}

interface Database {
  readonly url: string
  /** Lets it fail; it works again afterwards. */
  fail(random: SeededRandom): Promise<void>
  /** What to print at the end. */
  figures(): Readonly<Record<string, number>>
  stop(): Promise<void>
}

/** Undefined where it is not available. */
async function startDatabase({ key }: Scenario): Promise<Database | undefined> {
  if (key === 'failover') {
    if (postgresPrograms === undefined) {
      missingPart("Debian's PostgreSQL", 'the package postgresql is not installed')
      return undefined
    }
    const pair = await PostgresPair.start(postgresPrograms, { synchronous: !values.asynchronous })
    return {
      url: pair.url,
      fail: async (random) => {
        await pair.failOver(random.between(100, 600))
        await pair.addStandby()
      },
      figures: () => ({ 'primaries killed': pair.kills, promotions: pair.promotions }),
      stop: () => pair.stop(),
    }
  }
  try {
    const server = await startPostgres()
    let restarts = 0
    return {
      url: server.url,
      fail: async () => {
        await server.restart()
        restarts++
      },
      figures: () => ({ 'database restarts': restarts }),
      stop: () => server.stop(),
    }
  } catch (error) {
    missingPart('PostgreSQL', error)
    return undefined
  }
}

async function play(scenario: Scenario, database: Database | undefined): Promise<boolean> {
  const started = Date.now()
  const random = new SeededRandom(seed)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-chaos-'))
  const dataFolder = join(folder, 'data')
  const target = await HostileTarget.start(new SeededRandom(random.between(0, 2 ** 31)))
  const mailbox = await Mailbox.start()
  const key = rsaKey('chaos')
  const issuer = await FakeIssuer.start([key])
  const token = await signedToken(key, {
    iss: issuer.url,
    aud: callerAudience,
    sub: 'chaos',
    iat: Math.floor(started / 1000),
    exp: Math.floor(started / 1000) + tokenSeconds,
  })
  const addresses = { targetUrl: target.url, smtpPort: mailbox.port, issuer: issuer.url }
  const config = writeChaosConfiguration(join(folder, 'config'), addresses)
  const options = { config, dataFolder, databaseUrl: database?.url, leaseMillis }
  const crew: Replica[] = []
  for (let i = 0; i < scenario.replicas; i++) crew.push(await Replica.create(options))
  let storage: Storage | undefined
  try {
    const [first] = crew
    if (first === undefined) throw new Error('no replica')
    first.start()
    if (!(await first.ready(30_000))) throw new Error(`not ready: ${first.output}`)
    await makeApprovers(first, token)
    const opened = openStorage({
      ...(database === undefined ? { dataFolder } : { url: database.url }),
      clock: systemClock,
      log: silentLogger,
      auditKeys: await loadAuditKeys({ environment: process.env, dataFolder }, 'command'),
    })
    storage = opened
    const workload = new Workload(crew, random, token)
    const deciders = new Deciders({ storage: opened, replicas: crew, random, dataFolder })
    // This one serves through every failover.
    const spared = scenario.key === 'failover' ? first : undefined
    const killer = new Killer({
      replicas: crew.filter((replica) => replica !== spared),
      random,
      pauseMillis: short ? [1000, 3000] : [1000, 6000],
      ...(short ? { pointsFirst: scenario.atEachPoint } : {}),
      ...(database === undefined
        ? {}
        : { restartEveryMillis: scenario.restartEveryMillis, restartDatabase: () => database.fail(random) }),
    })
    const killedEnough = (): boolean =>
      killer.restarts >= scenario.restarts &&
      killer.deaths.killed >= scenario.killed &&
      crashPoints.every((point) => killer.deaths[point] >= scenario.atEachPoint)
    const reached = (): boolean => workload.acknowledged >= scenario.runs && killedEnough()
    const deciding = deciders.run()
    const killing = killer.run()
    const sending = workload.send(planSubmissions(random), senders)
    for (const end = Date.now() + scenario.mostMillis; Date.now() < end && !reached(); await delay(100)) {
      // The work lasts as long as there are processes to kill.
      workload.pauseMillis = workload.acknowledged >= scenario.runs ? 1000 : 100
      if (short && killedEnough()) killer.calm()
    }
    workload.stop()
    killer.stop()
    await killing
    await sending
    const isSpared = spared === undefined || (spared.alive && spared.starts === 1)
    target.calm = true
    for (const replica of crew) {
      await replica.stop()
      replica.start()
    }
    for (const replica of crew) await replica.ready(30_000)
    await settle(opened, scenario.settleMillis)
    deciders.stop()
    await deciding

    const verdict = await judge({
      submissions: workload.submissions,
      storage: opened,
      target,
      mailbox,
      decided: deciders.decided,
    })
    const { deaths } = killer
    const broken = [...verdict.broken, ...workload.surprises.map((text) => `surprise: ${text}`)]
    for (const replica of crew) if (replica.unexpected !== undefined) broken.push(`process: ${replica.unexpected}`)
    say(
      `\n${scenario.name}, ${scenario.replicas} ${scenario.replicas === 1 ? 'process' : 'processes'}, seed ${seed}, ${((Date.now() - started) / 1000).toFixed(0)} s`,
    )
    if (!isSpared) broken.push(`process: the gateway that nobody killed ended: ${spared?.output}`)
    const figures = {
      ...verdict.figures,
      calls: workload.attempts,
      kills: Object.values(deaths).reduce((sum, count) => sum + count, 0),
      ...deaths,
      ...database?.figures(),
      'longest time without an acknowledgement, in ms': workload.longestPauseMillis,
    }
    const isPointless = scenario.atEachPoint === 0
    for (const point of crashPoints)
      if (deaths[point] === 0 && !isPointless) broken.push(`nobody died ${point}, so nothing was shown`)
    for (const [name, value] of Object.entries(figures)) say(`  ${name.padEnd(52)} ${value.toLocaleString('en')}`)
    say(`  answers: ${[...workload.answers].map(([answer, times]) => `${answer} ${times} times`).join(', ')}`)
    for (const [text, times] of verdict.incidents) say(`  incident, ${times} times, ${text}`)
    for (const line of broken.slice(0, 40)) say(`  BROKEN ${line}`)
    if (broken.length > 40) say(`  BROKEN and ${broken.length - 40} more`)
    return broken.length === 0
  } finally {
    for (const replica of crew) await replica.stop()
    await storage?.close()
    await target.stop()
    await mailbox.stop()
    await issuer.close()
    if (values.keep) say(`kept: ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

if (values.help) say(usage)
else {
  say(`chaos, seed ${seed} (again: npm run chaos -- --seed ${seed}${short ? ' --short' : ''})`)
  let kept = true
  for (const scenario of scenarios) {
    if (values.only !== undefined && values.only !== scenario.key) continue
    const database = scenario.key === 'sqlite' ? undefined : await startDatabase(scenario)
    if (database === undefined && scenario.key !== 'sqlite') continue
    try {
      kept = (await play(scenario, database)) && kept
    } finally {
      await database?.stop()
    }
  }
  say(kept ? '\nevery promise was kept' : `\npromises were broken; seed ${seed}`)
  process.exitCode = kept ? 0 : 1
}
