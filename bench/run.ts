import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { PortalPerson } from '#testing/portal-story.ts'
import { bareInserts } from './bare-inserts.ts'
import { startBare } from './bare-process.ts'
import { peoplePath, tenants, writeConfiguration } from './configuration.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { measureGroups } from './groups.ts'
import { measureLdap } from './ldap.ts'
import { measureListing } from './listing.ts'
import { runLoad } from './load.ts'
import { measurePortalPage } from './portal-page.ts'
import { registrationRequests, writeRegistration } from './registration.ts'
import { type RequestMaker, readJson, scimRequests, someIds } from './requests.ts'
import { bigGroupMembers, seedPeople } from './seed.ts'
import { measureSidecar } from './sidecar.ts'
import { measureSts } from './sts.ts'
import { measureTenants } from './tenants.ts'
import { measureWorkflows } from './workflows.ts'

/** `node bench/run.ts [PART …] [SIZE …]`: of these parts, or all; directories of these sizes, 0 for none. */
const given = process.argv.slice(2)
const wanted = given.filter((word) => !/^\d+$/.test(word))
const numbers = given.filter((word) => !wanted.includes(word)).map(Number)
const sizes = numbers.length > 0 ? numbers : [5000, 100_000, 1_000_000]
const connections = 16
const warmSeconds = 8
const turns = 5
const turnSeconds = 1
const bareRates: number[] = []
const folder = mkdtempSync(join(resolve('.'), '.cache-bench-'))
const rows: string[][] = []
const number = (n: number): string => Math.round(n).toLocaleString('en')
const rate = (n: number): string => `${number(n)}/s`
const percent = (n: number): string => `${(n * 100).toFixed(1)} %`
const millis = (n: number): string => `${n.toFixed(1)} ms`
const say = (line: string): void => console.log(line)
function row(...cells: string[]): void {
  rows.push(cells)
  say(cells.join('  '))
}

interface Paired {
  readonly perSecond: number
  readonly share: number
}

/** A bare Fastify route that answers the same bytes. */
const bareRoute = (body: string) => startBare('bench/bare-route.ts', body)

const bareRequest = (): string => `GET /user HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

/**
 * Warms up, then takes turns with the bare route, since a shared machine is not equally fast all the time: the share is
 * the median of those of the turns.
 */
async function paired(bare: number, port: number, request: RequestMaker, expectedStatus = 200): Promise<Paired> {
  let sent = 0
  const load = { port, connections, request: () => request(sent++), expectedStatus }
  const bareLoad = { port: bare, connections, request: bareRequest, expectedStatus: 200 }
  await runLoad({ ...load, seconds: warmSeconds })
  await runLoad({ ...bareLoad, seconds: 1 })
  const rates: number[] = []
  const shares: number[] = []
  for (let turn = 0; turn < turns; turn++) {
    const limit = await runLoad({ ...bareLoad, seconds: turnSeconds })
    const result = await runLoad({ ...load, seconds: turnSeconds })
    bareRates.push(limit.perSecond)
    rates.push(result.perSecond)
    shares.push(result.perSecond / limit.perSecond)
  }
  return { perSecond: median(rates), share: median(shares) }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0

async function startAndSize(): Promise<void> {
  const data = join(folder, 'quickstart')
  await (await startMeasured('examples/quickstart', data)).stop()
  const quick = await startMeasured('examples/quickstart', data)
  await new Promise((done) => setTimeout(done, 1000))
  row('start to ready, quickstart', `${number(quick.readyMs)} ms`, '', '<= 1,000 ms')
  row('idle resident memory', `${number(quick.residentMegabytes())} MB`, '', '<= 150 MB')
  await quick.stop()
}

/** Rates of one size, each as a share of the bare route's measured beside it, creations also of bare inserts. */
async function measureRates(gateway: MeasuredGateway, count: number): Promise<void> {
  const label = `${number(count)} users`
  const ids = await someIds(gateway, peoplePath, count, 10_000)
  const requests = scimRequests(gateway, peoplePath)
  const bare = await bareRoute(JSON.stringify(await readJson(gateway, `${peoplePath}/Users/${ids[0]}`)))
  const report = (name: string, { perSecond, share }: Paired, wanted: string, more = ''): void =>
    row(`${name}, ${label}`, rate(perSecond), `${percent(share)} of the bare route${more}`, wanted)
  // The floors are for two cores that do 17,000 bare requests a second.
  const floor = (perSecond: number): string => `>= ${rate(perSecond)}; ${percent(perSecond / 17_000)} of 17,000/s`
  const turn = (request: RequestMaker, status = 200): Promise<Paired> =>
    paired(bare.port, gateway.port, request, status)
  try {
    report('GET by id', await turn(requests.byId(ids)), floor(3000))
    report('filter userName eq', await turn(requests.byLogin(count)), floor(3000))
    report('page of 100', await turn(requests.page), floor(400))
    report('PATCH active', await turn(requests.active(ids)), '')
    const create = await turn(requests.create, 201)
    const inserts = bareInserts(folder, 3)
    const ofInserts = `, ${percent(create.perSecond / inserts)} of ${rate(inserts)} bare durable inserts`
    report('create', create, floor(1500), ofInserts)
  } finally {
    bare.stop()
  }
  row(`bare Fastify route beside ${label}`, rate(median(bareRates.splice(0))))
}

async function measureSize(config: string, count: number): Promise<void> {
  const data = join(folder, `people-${count}`)
  const started = performance.now()
  await seedPeople(data, count)
  say(`\nmade ${number(count)} users in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const gateway = await startMeasured(config, data)
  try {
    await measureRates(gateway, count)
    if (count === Math.max(...sizes)) {
      const listing = await measureListing(gateway, count)
      row(
        `listing by cursor, ${number(listing.users)} users`,
        `${rate(listing.perSecond)} users`,
        `${number(listing.grownMegabytes)} MB more at the end than after a tenth`,
        'constant memory',
      )
      const groups = await measureGroups(gateway, count)
      const members = number(Math.min(count, bigGroupMembers))
      row(
        `one membership, group of ${members}`,
        millis(groups.oneLargeMs),
        `${millis(groups.oneSmallMs)} in an empty group`,
        '<= 5 ms',
      )
      row('1,000 members added by one PATCH', millis(groups.manyMs), '', '<= 1,000 ms')
      const many = await measureTenants(gateway)
      const label = `${tenants} gateways, ${rate(many.perSecond)} together`
      row(label, `p50 ${millis(many.p50)}`, `p99 ${millis(many.p99)}`, 'p99 < 50 ms')
    }
  } finally {
    await gateway.stop()
    rmSync(data, { recursive: true, force: true })
  }
}

async function workflows(quickstart: string): Promise<void> {
  const { synchronous, asynchronous, bareJobs } = await measureWorkflows(folder, quickstart)
  const inserts = `${percent(synchronous.share)} of bare durable inserts`
  row('synchronous runs', rate(synchronous.perSecond), inserts)
  for (const { replicas, perSecond, share } of asynchronous) {
    const processes = `${replicas} ${replicas === 1 ? 'process' : 'processes'}`
    row(`asynchronous runs, PostgreSQL, ${processes}`, rate(perSecond), `${percent(share)} of bare pg-boss jobs`)
  }
  row('bare pg-boss jobs beside them', rate(bareJobs))
}

async function tokens(): Promise<void> {
  const { exchanges, bareSigning, signingRoute, steady, burst, residentMegabytes } = await measureSts(folder)
  const share = `${percent(exchanges.share)} of ${rate(bareSigning)} bare RSA-2048 signatures on all cores`
  row('token exchanges, warm review', rate(exchanges.perSecond), share, '>= 90.0 %')
  row('a bare route that signs, beside it', percent(signingRoute), 'of those signatures')
  row('bare signature in the CPU of an exchange', percent(exchanges.cpuShare))
  row('token exchange at 167/s', `p50 ${millis(steady.p50)}`, `p99 ${millis(steady.p99)}`)
  const spread = `${rate(burst.pods / burst.seconds)}, p99 ${millis(burst.p99)}, ${number(burst.reviews)} reviews`
  row(`burst of ${number(burst.pods)} pods`, `${burst.seconds.toFixed(1)} s`, spread)
  row('resident memory after the burst', `${number(residentMegabytes)} MB`)
}

async function sidecars(): Promise<void> {
  for (const { shell, residentMegabytes } of await measureSidecar()) {
    row(`sidecar at rest, ${shell}, resident`, `${residentMegabytes.toFixed(1)} MB`, '', '<= 4 MB')
  }
}

/** The portal in a browser. */
async function portalPage(): Promise<void> {
  const figures = await measurePortalPage(folder)
  if (figures === undefined) return row('portal, first load', 'not measured: no Chromium')
  const { interactive, scriptBytes, allBytes, files } = figures
  const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} KB`
  const all = `${kilobytes(allBytes)} in ${files} answers with styles and data`
  row('portal, first load, compressed JavaScript', kilobytes(scriptBytes), all, '<= 200.0 KB')
  const spread = `${interactive.map(number).join(', ')} ms cold`
  row('portal, interactive', `${number(median(interactive))} ms`, spread, '<= 1,000 ms')
}

/** The portal's API, for somebody who is looked up in the directory. */
async function portal(): Promise<void> {
  const gateway = await startMeasured('examples/portal-api', join(folder, 'portal'), undefined, 'ada')
  const address = '/portal/main/urls'
  const request = `GET ${address} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${gateway.token}\r\n\r\n`
  const bare = await bareRoute(JSON.stringify(await readJson(gateway, address)))
  try {
    const { perSecond, share } = await paired(bare.port, gateway.port, () => request)
    row('GET main/urls', rate(perSecond), `${percent(share)} of the bare route`)
    bareRates.splice(0)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** What the token page reads, for somebody who logged in by the form. */
async function tokenPage(): Promise<void> {
  const gateway = await startMeasured('examples/quickstart', join(folder, 'token-page'))
  const person = await PortalPerson.logIn({ url: `http://127.0.0.1:${gateway.port}` }, 'ada')
  const address = '/token/user'
  const request = `GET ${address} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nCookie: ${person.cookie}\r\n\r\n`
  const bare = await bareRoute((await person.get(address)).text)
  try {
    const { perSecond, share } = await paired(bare.port, gateway.port, () => request)
    row('GET token/user', rate(perSecond), `${percent(share)} of the bare route`)
    bareRates.splice(0)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** Each one asks the directory for two values, holds them, and stores a run that then makes an account. */
async function registrations(quickstart: string): Promise<void> {
  const config = writeRegistration(join(folder, 'registration'), quickstart)
  const gateway = await startMeasured(config, join(folder, 'registered'))
  const bare = await bareRoute('{}')
  try {
    const { perSecond, share } = await paired(bare.port, gateway.port, registrationRequests(gateway))
    row('POST register/submit', rate(perSecond), `${percent(share)} of the bare route`)
    bareRates.splice(0)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** 100,000 entries; a shorter run has fewer. */
async function ldap(): Promise<void> {
  const entries = Math.min(100_000, Math.max(...sizes))
  if (entries === 0) return
  const { rates, bare, pageMillis } = await measureLdap(folder, entries)
  const label = `LDAP, ${number(entries)} entries`
  for (const { name, perSecond, share } of rates) {
    row(`${name}, ${label}`, rate(perSecond), `${percent(share)} of bare ldapts searches`)
  }
  row(`page of 100, ${label}`, millis(pageMillis))
  row(`bare ldapts searches beside ${label}`, rate(bare))
}

const quickstart = readFileSync('examples/quickstart/authentication.yaml', 'utf8')

async function directories(): Promise<void> {
  const config = writeConfiguration(join(folder, 'config'), quickstart)
  for (const count of sizes) if (count > 0) await measureSize(config, count)
}

const parts: Readonly<Record<string, () => Promise<void>>> = {
  start: startAndSize,
  tokens,
  sidecars,
  workflows: () => workflows(quickstart),
  portal: portalPage,
  'portal-api': portal,
  'token-page': tokenPage,
  registrations: () => registrations(quickstart),
  ldap,
  directories,
}

say(`${cpus().length} cores, ${connections} connections, ${turns} turns of ${turnSeconds} s, load generator included`)
try {
  for (const name of wanted.length > 0 ? wanted : Object.keys(parts)) {
    const measure = Object.hasOwn(parts, name) ? parts[name] : undefined
    if (measure === undefined) throw new Error(`no part "${name}"; there are ${Object.keys(parts).join(', ')}`)
    await measure()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
say('')
for (const cells of rows)
  say(
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
