import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { cpus } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import makeProgram from '#testing/run/bundle-setup.ts'
import { PortalPerson } from '#testing/stories/portal-story.ts'
import { measureBefore } from './before.ts'
import { measureBulk } from './bulk.ts'
import { measureCapacity } from './capacity.ts'
import { writeConfiguration } from './configuration.ts'
import { measureCreates } from './creates.ts'
import { measureCustody } from './custody.ts'
import { measureDirectory } from './directories.ts'
import { loadGenerator } from './drive.ts'
import { quick } from './effort.ts'
import { startMeasured } from './gateway.ts'
import { measureGroups } from './groups.ts'
import { measureLdap } from './ldap.ts'
import { median } from './median.ts'
import { type BenchOptions, parseOptions, usage } from './options.ts'
import { bareRequest, bareRoute, connections, paired, turnSeconds, turns } from './paired.ts'
import { measurePeers } from './peers.ts'
import { measurePortalPage } from './portal-page.ts'
import { measureReconcile } from './reconcile.ts'
import { registrationRequests, writeRegistration } from './registration.ts'
import { readJson } from './requests.ts'
import { measureSidecar } from './sidecar.ts'
import { measureSts } from './sts.ts'
import { millis, number, percent, printTable, rate, row, say, writeRows } from './table.ts'
import { measureWorkers } from './workers.ts'
import { measureWorkflows } from './workflows.ts'

const options = readOptions()
const { sizes, words } = options
const folder = mkdtempSync(join(resolve('.'), '.cache-bench-'))
const removeFolder = (): void => rmSync(folder, { recursive: true, force: true })

function readOptions(): BenchOptions {
  try {
    return parseOptions(process.argv.slice(2))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exit(2)
  }
}

async function startAndSize(): Promise<void> {
  const data = join(folder, 'quickstart')
  await (await startMeasured('examples/quickstart', data)).stop()
  const quick = await startMeasured('examples/quickstart', data)
  // It gives back what the start needed one second after it.
  await new Promise((done) => setTimeout(done, 3000))
  row('start to ready, quickstart', `${number(quick.readyMs)} ms`, '', '<= 500 ms')
  row('idle resident memory', `${number(quick.residentMegabytes())} MB`, '', '<= 110 MB')
  await quick.stop()
}

async function workflows(quickstart: string): Promise<void> {
  const { synchronous, asynchronous, bareJobs, statements, commits } = await measureWorkflows(folder, quickstart)
  const inserts = `${percent(synchronous.share)} of bare durable inserts`
  row('synchronous runs', rate(synchronous.perSecond, synchronous.cpuMicros), inserts)
  for (const { replicas, perSecond, cpuMicros, databaseMicros, databaseBytes, share } of asynchronous) {
    const processes = `${replicas} ${replicas === 1 ? 'process' : 'processes'}`
    const label = `asynchronous runs, PostgreSQL, ${processes}`
    row(label, rate(perSecond, cpuMicros), `${percent(share)} of bare pg-boss jobs`, replicas === 1 ? '>= 60.0 %' : '')
    row(`${label}, in the database`, `${number(databaseMicros)} µs CPU of PostgreSQL`, `${number(databaseBytes)} bytes`)
  }
  const [one, two] = asynchronous
  if (one !== undefined && two !== undefined) {
    row('two processes against one', `${(two.perSecond / one.perSecond).toFixed(2)} times`, '', '>= 1.3 times')
  }
  row('asynchronous run, PostgreSQL, statements', statements.toFixed(1), `${commits.toFixed(2)} commits`)
  row('bare pg-boss jobs beside them', rate(bareJobs))
}

/** Access requests of many users, with approvals. */
async function bulk(): Promise<void> {
  const { requests, phases, memory } = await measureBulk(folder)
  const label = `bulk of ${number(requests)} access requests`
  for (const { name, perSecond, cpuMicros } of phases) row(`${label}, ${name}`, rate(perSecond, cpuMicros))
  const { before, peak, after } = memory
  row(`${label}, resident memory`, `${number(peak)} MB`, `${number(before)} MB before, ${number(after)} MB after`)
}

/** The load generator uses a core too, so the ratio of two cores is below two. */
async function workers(quickstart: string): Promise<void> {
  const { perSecond, ratio, supervisorMegabytes } = await measureWorkers(folder, quickstart)
  row('GET by id, --workers 2 on PostgreSQL', rate(perSecond), `${ratio.toFixed(2)} times one process`, '>= 1.6 times')
  row('resident memory of the supervisor', `${number(supervisorMegabytes)} MB`)
}

async function tokens(): Promise<void> {
  const { exchanges, bareSigning, steady, burst, residentMegabytes, peakMegabytes } = await measureSts(folder)
  const rsa = exchanges.find(({ algorithm }) => algorithm === 'RS256')?.perSecond ?? 0
  for (const { algorithm, perSecond, cpuMicros, bare, share } of exchanges) {
    const label = `token exchanges, ${algorithm}`
    const signs = `a bare route that signs ${algorithm}`
    const wanted = algorithm === 'RS256' ? '>= 75.0 %' : ''
    row(label, rate(perSecond, cpuMicros), `${percent(share)} of ${signs}`, wanted)
    row(signs, rate(bare.perSecond, bare.cpuMicros))
    if (algorithm === 'RS256') continue
    row(
      `${label} against RS256`,
      `${(perSecond / rsa).toFixed(2)} times`,
      '',
      algorithm === 'ES256' ? '>= 3 times' : '',
    )
  }
  const signatures = `of ${rate(bareSigning.perSecond)} bare RSA-2048 signatures on all cores`
  row('RS256 exchanges beside bare signatures', percent(rsa / bareSigning.perSecond), signatures)
  row('bare signature in the CPU of an RS256 exchange', percent(bareSigning.cpuShare), '', '>= 75.0 %')
  row('token exchange at 167/s', `p50 ${millis(steady.p50)}`, `p99 ${millis(steady.p99)}`)
  const spread = `${rate(burst.pods / burst.seconds)}, p99 ${millis(burst.p99)}, ${number(burst.reviews)} reviews`
  row(`burst of ${number(burst.pods)} pods`, `${burst.seconds.toFixed(1)} s`, spread)
  row('resident memory after the burst', `${number(residentMegabytes)} MB`, `peak ${number(peakMegabytes)} MB`)
}

/** Keys in Transit against local ones; the service is on the same machine. */
async function custody(): Promise<void> {
  const figures = await measureCustody(folder)
  if (figures === undefined) return row('token exchanges, key in Transit', 'not measured: no server')
  for (const { algorithm, perSecond, cpuMicros, share, alone } of figures) {
    const label = `token exchanges, ${algorithm} in Transit`
    row(label, rate(perSecond, cpuMicros), `${percent(share)} of those with a local key`)
    row(`${label}, one at a time`, millis(alone.transit), `${millis(alone.local)} with a local key`)
  }
}

async function sidecars(): Promise<void> {
  for (const { shell, residentMegabytes } of await measureSidecar()) {
    row(`sidecar at rest, ${shell}, resident`, `${residentMegabytes.toFixed(1)} MB`, '', '<= 2.5 MB')
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

/** The portal's API, for a user who is looked up in the directory. */
async function portal(): Promise<void> {
  const gateway = await startMeasured('examples/portal-api', join(folder, 'portal'), undefined, 'ada')
  const address = '/portal/main/urls'
  const request = `GET ${address} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${gateway.token}\r\n\r\n`
  const bare = await bareRoute(JSON.stringify(await readJson(gateway, address)))
  try {
    const { perSecond, cpuMicros, share } = await paired(
      { server: bare, request: bareRequest },
      { server: gateway, request: () => request },
    )
    row('GET main/urls', rate(perSecond, cpuMicros), `${percent(share)} of the bare route`)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** The requests of the token page, for a user who logged in by the form. */
async function tokenPage(): Promise<void> {
  const gateway = await startMeasured('examples/quickstart', join(folder, 'token-page'))
  const person = await PortalPerson.logIn({ url: `http://127.0.0.1:${gateway.port}` }, 'ada')
  const address = '/token/user'
  const request = `GET ${address} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nCookie: ${person.cookie}\r\n\r\n`
  const bare = await bareRoute((await person.get(address)).text)
  try {
    const { perSecond, cpuMicros, share } = await paired(
      { server: bare, request: bareRequest },
      { server: gateway, request: () => request },
    )
    row('GET token/user', rate(perSecond, cpuMicros), `${percent(share)} of the bare route`)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** Each one looks up two values in the directory, reserves them, and stores a run that then creates an account. */
async function registrations(quickstart: string): Promise<void> {
  const config = writeRegistration(join(folder, 'registration'), quickstart)
  const gateway = await startMeasured(config, join(folder, 'registered'))
  const bare = await bareRoute('{}')
  try {
    const { perSecond, cpuMicros, share } = await paired(
      { server: bare, request: bareRequest },
      { server: gateway, request: registrationRequests(gateway) },
    )
    row('POST register/submit', rate(perSecond, cpuMicros), `${percent(share)} of the bare route`)
  } finally {
    bare.stop()
    await gateway.stop()
  }
}

/** 100,000 entries; a shorter run has fewer. */
async function ldap(): Promise<void> {
  const entries = Math.min(100_000, Math.max(...sizes))
  if (entries === 0) return
  const figures = await measureLdap(folder, entries)
  if (figures === undefined) return row('SCIM in front of OpenLDAP', 'not measured: no slapd')
  const { rates, bare, pageMillis } = figures
  const label = `LDAP, ${number(entries)} entries`
  for (const { name, perSecond, cpuMicros, share } of rates) {
    row(`${name}, ${label}`, rate(perSecond, cpuMicros), `${percent(share)} of bare ldapts searches`)
  }
  row(`page of 100, ${label}`, millis(pageMillis))
  row(`bare ldapts searches beside ${label}`, rate(bare))
}

/** Comparisons of a directory with another one and with the tables of an application, each with as many people. */
async function reconcile(): Promise<void> {
  for (const size of sizes) {
    if (size === 0) continue
    for (const { target, seconds, cpuSeconds, peakMegabytes, reads, rows } of await measureReconcile(folder, size)) {
      const label = `comparison of ${number(size)} people with ${target}, ${number(rows)} differences`
      row(label, `${seconds.toFixed(1)} s`, `${cpuSeconds.toFixed(1)} s of CPU, ${number(size / seconds)} people/s`)
      row(`${label}, memory of the process`, `${number(peakMegabytes)} MB at most`, '', '<= 400 MB')
      row(`${label}, reads of both systems and links`, number(reads), `${(reads / size).toFixed(4)} for each person`)
    }
  }
}

const quickstart = readFileSync('examples/quickstart/authentication.yaml', 'utf8')

async function directories(): Promise<void> {
  const config = writeConfiguration(join(folder, 'config'), quickstart)
  for (const count of sizes) if (count > 0) await measureDirectory(folder, config, count, count === Math.max(...sizes))
}

/** A directory in which the largest group contains everyone. */
async function groups(): Promise<void> {
  const { one, different, manyMs, whole } = await measureGroups(folder, quickstart)
  const base = one[0]
  const cpu = (micros: number): string => `${number(micros)} µs of CPU`
  for (const { size, p50, cpuMicros } of one) {
    const name = `PATCH of one member, group of ${number(size)}`
    row(`${name}, default answer`, millis(p50), cpu(cpuMicros), '<= 5 ms')
    if (base === undefined || size === base.size) continue
    row(`${name} against ${base.size}`, `${(p50 / base.p50).toFixed(2)} times`, '', '<= 1.2 times')
    row(`${name} against ${base.size}, CPU`, `${(cpuMicros / base.cpuMicros).toFixed(2)} times`)
  }
  row('PATCH of one member, different groups', rate(different.perSecond), cpu(different.cpuMicros), `>= ${rate(1000)}`)
  row('1,000 members added by one PATCH', millis(manyMs), '', '<= 1,000 ms')
  const name = `GET of a group of ${number(whole.size)}`
  row(name, millis(whole.ms))
  row(`${name}, memory`, `${number(whole.grownMegabytes)} MB more`, 'after five of them', 'constant memory')
}

const parts: Readonly<Record<string, () => Promise<void>>> = {
  start: startAndSize,
  tokens,
  custody,
  sidecars,
  workflows: () => workflows(quickstart),
  bulk,
  workers: () => workers(quickstart),
  portal: portalPage,
  'portal-api': portal,
  'token-page': tokenPage,
  registrations: () => registrations(quickstart),
  ldap,
  groups,
  creates: createCosts,
  directories,
  reconcile,
  capacity: () => measureCapacity(folder, quickstart, sizes),
}
/** It is about sizing, not about the budget. */
const usualParts = Object.keys(parts).filter((name) => name !== 'capacity')

/** What one create costs the database. */
async function createCosts(): Promise<void> {
  const config = writeConfiguration(join(folder, 'creates'), quickstart)
  for (const { database, connections: at, statements, commits, bytes } of await measureCreates(folder, config)) {
    const label = `create, ${database}, ${at === 1 ? 'one at a time' : `${at} at a time`}`
    const written = bytes === 0 ? 'not counted: the folder is in memory' : `${number(bytes)} bytes`
    row(`${label}, statements`, statements.toFixed(1))
    row(`${label}, commits`, commits.toFixed(2))
    row(`${label}, written`, written)
  }
}

async function begin(pace: string): Promise<void> {
  // What users run is measured: the bundle of a release.
  await makeProgram()
  say(`${cpus().length} cores, ${connections} connections, ${pace}, by ${loadGenerator} on the same cores`)
  if (quick) say('--quick: the numbers mean nothing')
}

async function peers(): Promise<void> {
  await begin(`${options.turns} turns`)
  await measurePeers(folder, writeConfiguration(join(folder, 'config'), quickstart), options.turns)
  printTable()
}

function chosenParts(names: readonly string[]): readonly string[] {
  for (const name of names) {
    if (!Object.hasOwn(parts, name)) {
      throw new Error(`no part "${name}"\n${partsText()}\n${usage}`)
    }
  }
  return names.length > 0 ? names : usualParts
}

const partsText = (): string => `Parts: ${Object.keys(parts).join(', ')}`

async function before([commit, ...names]: readonly string[]): Promise<void> {
  if (commit === undefined) throw new Error(`before needs a commit\n${usage}`)
  await measureBefore(folder, commit, chosenParts(names), options)
}

async function measureParts(names: readonly string[]): Promise<void> {
  await begin(`${turns} turns of ${turnSeconds} s`)
  for (const name of names) await parts[name]?.()
  printTable()
  if (options.rows !== undefined) writeRows(options.rows)
}

for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, () => {
    removeFolder()
    process.exit(code)
  })
}

try {
  if (options.help) say(`${usage}\n\n${partsText()}`)
  else if (words[0] === 'before') await before(words.slice(1))
  else if (words[0] === 'peers') await peers()
  else await measureParts(chosenParts(words))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  removeFolder()
}
