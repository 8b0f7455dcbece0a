import { randomUUID } from 'node:crypto'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Attributes } from '#identity/attributes.ts'
import { systemClock } from '#kernel/clock.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { silentLogger } from '#kernel/logger.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { createUser } from '#testing/databases/directory-writes.ts'
import { startPostgres } from '#testing/databases/embedded-postgres.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { quick } from './effort.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'

export interface BulkFigures {
  readonly requests: number
  readonly phases: readonly BulkPhase[]
  /** Of the gateway, in MB. */
  readonly memory: { readonly before: number; readonly peak: number; readonly after: number }
}

interface BulkPhase {
  readonly name: string
  readonly perSecond: number
  /** Of the gateway, without PostgreSQL. */
  readonly cpuMicros: number
}

const requests = quick ? 200 : 10_000
/** The most that one request may name, and that one decision may be about. */
const subjectsAtOnce = 500
const decisionsAtOnce = 100
/** Carts that are submitted at the same time. */
const carts = 4
const phaseMillis = 30 * 60_000
const restMillis = 5_000

/**
 * Access requests for many users in the portal of the quickstart on PostgreSQL: one user requests them, a manager approves
 * them in bulk, and each run adds a user to a group, with an expiry date.
 */
export async function measureBulk(folder: string): Promise<BulkFigures> {
  const database = await startPostgres({ durable: true })
  const storage = openStorage({ url: database.url, clock: systemClock, log: silentLogger })
  let gateway: MeasuredGateway | undefined
  try {
    gateway = await startMeasured(await prepareConfig(folder), join(folder, 'bulk'), database.url)
    return await measure(gateway, storage)
  } finally {
    await gateway?.stop()
    await storage.close()
    await database.stop()
  }
}

/** The quickstart, in which one user may have all these requests open. */
async function prepareConfig(folder: string): Promise<string> {
  const config = join(folder, 'bulk-config')
  await cp('examples/quickstart', config, { recursive: true })
  const portal = join(config, 'portal.yaml')
  const text = await readFile(portal, 'utf8')
  const limit = `maxOpenRequests: "${requests}"`
  await writeFile(
    portal,
    text.replace(/^( +)canDelegate: .*$/m, (line, indent) => `${line}\n${indent}${limit}`),
  )
  return config
}

async function measure(gateway: MeasuredGateway, storage: Storage): Promise<BulkFigures> {
  const logins = await seed(storage)
  const place = { url: `http://127.0.0.1:${gateway.port}` }
  const ada = await PortalPerson.logIn(place, 'ada')
  const grace = await PortalPerson.logIn(place, 'grace')
  const before = gateway.residentMegabytes()
  let peak = before
  const sampler = setInterval(() => {
    peak = Math.max(peak, gateway.residentMegabytes())
  }, 100)
  const phases: BulkPhase[] = []
  /** The workers execute runs meanwhile, so their end is measured from the same start. */
  const phase = async (calls: string, work: () => Promise<void>, runs: string): Promise<void> => {
    const [cpu, started] = [gateway.cpuSeconds(), performance.now()]
    const done = (name: string): void => {
      const seconds = (performance.now() - started) / 1000
      const cpuMicros = ((gateway.cpuSeconds() - cpu) * 1_000_000) / requests
      phases.push({ name, perSecond: requests / seconds, cpuMicros })
    }
    await work()
    done(calls)
    await settled(storage)
    done(`${calls} and ${runs}`)
  }
  try {
    await phase('submitted', () => submit(ada, logins), 'opened for approval')
    await phase('decided', () => decide(grace), 'provisioned')
  } finally {
    clearInterval(sampler)
  }
  const vault = await storage.userDirectory({ name: 'people' }).lookupGroupByName('vault')
  const members = vault?.members.length ?? 0
  if (members !== requests) throw new Error(`${members} of ${requests} users got access`)
  await delay(restMillis)
  return { requests, phases, memory: { before, peak, after: gateway.residentMegabytes() } }
}

async function seed(storage: Storage): Promise<readonly string[]> {
  const people = storage.userDirectory({ name: 'people' })
  const logins = Array.from({ length: requests }, (_, n) => `bulk${n}`)
  await inParallel(logins, 16, (login) =>
    createUser(people, {
      userID: login,
      attributes: Attributes.from({
        userName: [login],
        mail: [`${login}@example.com`],
        displayName: [`Person ${login}`],
        active: ['true'],
      }),
      groups: [],
    }),
  )
  return logins
}

async function submit(ada: PortalPerson, logins: readonly string[]): Promise<void> {
  const parts = Array.from({ length: Math.ceil(logins.length / subjectsAtOnce) }, (_, n) =>
    logins.slice(n * subjectsAtOnce, (n + 1) * subjectsAtOnce),
  )
  await inParallel(parts, carts, async (subjects) => {
    const uuid = randomUUID()
    const line = { uuid, name: 'vault-access', reason: 'bulk', subjects }
    const { status, json, text } = await ada.send('PUT', '/main/workflows', [line])
    if (status !== 200 || json?.[uuid] !== 'success') throw new Error(`requests: ${status} ${text.slice(0, 300)}`)
  })
}

/** No run is left to execute: each waits or has ended. */
async function settled(storage: Storage): Promise<void> {
  for (const end = Date.now() + phaseMillis; ; ) {
    const { ready, running, incident } = await storage.runs.figures()
    if (incident > 0) throw new Error(`${incident} runs are incidents`)
    if (ready + running === 0) return
    if (Date.now() > end) throw new Error(`${ready + running} runs were not executed in time`)
    await delay(50)
  }
}

async function decide(grace: PortalPerson): Promise<void> {
  for (let decided = 0; decided < requests; ) {
    const listed = await grace.get(`/main/approvals?limit=${decisionsAtOnce}`)
    const approvals: string[] = listed.json.approvals.map(({ approval }: { approval: string }) => approval)
    if (approvals.length === 0) throw new Error(`${decided} of ${requests} approvals were found`)
    const body = { approvals, approved: true, reason: 'bulk' }
    const { status, json, text } = await grace.send('PUT', '/main/approvals', body)
    const results: { readonly status: number }[] = Object.values(json?.results ?? {})
    if (status !== 200 || results.some((one) => one.status !== 200)) {
      throw new Error(`decisions: ${status} ${text.slice(0, 300)}`)
    }
    decided += approvals.length
  }
}
