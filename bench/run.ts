import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { freePort } from '#testing/free-port.ts'
import { until } from '#testing/gateway-process.ts'
import { bareInserts } from './bare-inserts.ts'
import { type MeasuredGateway, startMeasured } from './gateway.ts'
import { runLoad } from './load.ts'
import { loginOf, seedPeople } from './seed.ts'

/** `node bench/run.ts [SMALL LARGE]`: the two directory sizes that are compared; 10,000 and 1,000,000 by default. */
const [small = 10_000, large = 1_000_000] = process.argv.slice(2).map(Number)
const middle = Math.min(100_000, large)
const connections = 16
const seconds = 4
const warmSeconds = 5
const folder = mkdtempSync(join(resolve('.'), '.cache-bench-'))
const rows: string[][] = []
const rate = (n: number): string => `${Math.round(n).toLocaleString('en')}/s`
const percent = (n: number): string => `${Math.round(n * 100)} %`
const say = (line: string): void => console.log(line)

function head(gateway: MeasuredGateway, method: string, path: string, more = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${gateway.token}\r\n${more}\r\n`
}

const load = (port: number, request: (n: number) => string, expectedStatus = 200) =>
  runLoad({ port, connections, seconds, request, expectedStatus })

/** Two runs, of which the second counts: the first warms caches and compilers. */
async function measured(port: number, request: (n: number) => string, expectedStatus = 200) {
  await runLoad({ port, connections, seconds: warmSeconds, request, expectedStatus })
  return load(port, request, expectedStatus)
}

async function bareRoute(body: string) {
  const port = await freePort()
  const child = spawn(process.execPath, [
    '--disable-warning=ExperimentalWarning',
    'bench/bare-route.ts',
    String(port),
    body,
  ])
  await until(async () => (await fetch(`http://127.0.0.1:${port}/user`).catch(() => undefined))?.ok === true, 10_000)
  const result = await measured(port, () => `GET /user HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  child.kill()
  return result
}

async function idsOf(gateway: MeasuredGateway): Promise<string[]> {
  const ids: string[] = []
  for (let start = 1; start <= 1000; start += 200) {
    const address = `http://127.0.0.1:${gateway.port}/scim/people/Users?count=200&startIndex=${start}`
    const response = await fetch(address, { headers: { authorization: `Bearer ${gateway.token}` } })
    const { Resources } = (await response.json()) as { Resources: { id: string }[] }
    ids.push(...Resources.map(({ id }) => id))
  }
  return ids
}

async function withPeople<T>(count: number, work: (gateway: MeasuredGateway) => Promise<T>): Promise<T> {
  const dataFolder = join(folder, `people-${count}`)
  const started = performance.now()
  await seedPeople(dataFolder, count)
  say(`made ${count.toLocaleString('en')} users in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const gateway = await startMeasured(dataFolder)
  try {
    return await work(gateway)
  } finally {
    await gateway.stop()
    rmSync(dataFolder, { recursive: true, force: true })
  }
}

const scim = '/scim/people/Users'
const anyLogin = (count: number): string => loginOf(Math.floor(Math.random() * count))
const eqFilter = (count: number) => (gateway: MeasuredGateway) => () =>
  head(gateway, 'GET', `${scim}?filter=${encodeURIComponent(`userName eq "${anyLogin(count)}"`)}`)
const firstPage = (gateway: MeasuredGateway) => () => head(gateway, 'GET', `${scim}?count=100`)

async function sizes(count: number) {
  return withPeople(count, async (gateway) => ({
    eq: await measured(gateway.port, eqFilter(count)(gateway)),
    page: await measured(gateway.port, firstPage(gateway)),
  }))
}

say(`${cpus().length} cores, ${connections} connections, ${seconds} s a measurement`)
try {
  const quickFolder = join(folder, 'quickstart')
  await (await startMeasured(quickFolder)).stop()
  const quick = await startMeasured(quickFolder)
  await new Promise((done) => setTimeout(done, 1000))
  rows.push(['start to ready, quickstart', `${Math.round(quick.readyMs)} ms`, '', '<= 1,000 ms'])
  rows.push(['idle resident memory', `${Math.round(quick.residentMegabytes())} MB`, '', '<= 150 MB'])
  await quick.stop()

  await withPeople(middle, async (gateway) => {
    const ids = await idsOf(gateway)
    const one = (n: number): string => `${scim}/${ids[n % ids.length]}`
    const sample = await fetch(`http://127.0.0.1:${gateway.port}${one(0)}`, {
      headers: { authorization: `Bearer ${gateway.token}` },
    })
    const bare = await bareRoute(await sample.text())
    const get = await measured(gateway.port, (n) => head(gateway, 'GET', one(n)))
    rows.push([`bare Fastify route`, rate(bare.perSecond), '', ''])
    rows.push([
      `SCIM GET by id, ${middle.toLocaleString('en')} users`,
      rate(get.perSecond),
      percent(get.perSecond / bare.perSecond),
      '>= 40 % of the bare route',
    ])
    const inserts = bareInserts(folder, 3)
    let created = 0
    const post = await measured(
      gateway.port,
      () => {
        const login = `new${created++}`
        const body = JSON.stringify({
          userName: login,
          name: { givenName: 'New', familyName: 'Person' },
          emails: [{ value: `${login}@example.com` }],
          active: true,
        })
        return (
          head(
            gateway,
            'POST',
            scim,
            `Content-Type: application/scim+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`,
          ) + body
        )
      },
      201,
    )
    rows.push(['bare durable inserts', rate(inserts), '', ''])
    rows.push([
      'SCIM POST, workflow and audit',
      rate(post.perSecond),
      percent(post.perSecond / inserts),
      '>= 50 % of the bare inserts',
    ])
  })

  const [few, many] = [await sizes(small), await sizes(large)]
  for (const what of ['eq', 'page'] as const) {
    const name = what === 'eq' ? 'filter userName eq' : 'page of 100'
    const [a, b] = [few[what].perSecond, many[what].perSecond]
    const label = `${name}, ${small.toLocaleString('en')} | ${large.toLocaleString('en')} users`
    rows.push([label, `${rate(a)} | ${rate(b)}`, `${(a / b).toFixed(2)} x the time`, '<= 1.5 x'])
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
say('')
for (const row of rows) say(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
