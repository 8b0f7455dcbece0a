import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { freshSchema, postgresUrl, runSql } from '#testing/databases/postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, gatehouse, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { slowTarget } from '#testing/stories/slow-target.ts'

const application = (name: string, target: string): string => `
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: create-${name} }
spec: { tasks: [{ taskType: provision, target: ${target}, sync: true }] }
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: ${name} }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /${name}
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain:
        - className: filters.ScimGateway
          params: { lookupTarget: ${target}, uidAttributeName: userName, workflowName: create-${name} }
`

/** A directory in the database and a slow target, behind a gateway that anyone may use. */
const configuration = `
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata: { name: people }
spec: { className: targets.Database, params: [] }
---
${slowTarget(2000)}---
${application('people', 'people')}
---
${application('slow', 'slow')}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata: { name: metrics }
spec:
  cookieConfig: { cookiesEnabled: false }
  urls:
    - hosts: ['*']
      uri: /metrics
      azRules: [{ scope: dn, constraint: o=Tremolo }]
      filterChain: [{ className: filters.Metrics }]
`

const long = 60_000

interface WorkerLine {
  readonly level?: string
  readonly worker?: number
  readonly pid?: number
  readonly msg?: string
  readonly requestId?: string
  readonly hash?: string
  readonly signal?: string
}

interface Health {
  readonly status: string
  readonly workers: readonly {
    readonly worker: number
    readonly pid?: number
    readonly state: string
    readonly configuration?: string
  }[]
}

/** One client with one connection at a time, which it opens again after a failure. */
class Client {
  readonly agent = new Agent({ keepAlive: true, maxSockets: 1 })
  /** The connection of each failed request. */
  readonly failed: (number | undefined)[] = []
  /** The connections so far, each with the id of its first request. */
  readonly connections = new Map<number, string>()
  answers = 0
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  async run(isDone: () => boolean): Promise<void> {
    while (!isDone()) await this.#get()
    this.agent.destroy()
  }

  #get(): Promise<void> {
    return new Promise((resolve) => {
      let port: number | undefined
      const sent = request(this.#url, { agent: this.agent }, (response) => {
        if (response.statusCode !== 200) this.failed.push(port)
        else if (port !== undefined && !this.connections.has(port)) {
          this.connections.set(port, String(response.headers['x-request-id']))
        }
        this.answers++
        response
          .resume()
          .on('end', resolve)
          .on('error', () => resolve())
      })
      const connected = (localPort: number | undefined): void => {
        port = localPort
      }
      sent.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => connected(socket.localPort))
        else connected(socket.localPort)
      })
      sent.on('error', () => {
        this.failed.push(port)
        resolve()
      })
      sent.end()
    })
  }
}

describe.skipIf(postgresUrl() === '')('two workers on PostgreSQL', () => {
  let folder: string
  let gateway: GatewayProcess

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
    writeFileSync(join(folder, 'gateway.yaml'), configuration)
    gateway = await startGatewayProcess({ config: folder, args: ['--database', await freshSchema(), '--workers', '2'] })
    await allReady()
  })
  afterAll(async () => {
    await gateway.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const lines = (): WorkerLine[] =>
    gateway
      .output()
      .split('\n')
      .flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as WorkerLine] : []))
  const health = async (): Promise<Health> => (await (await fetch(`${gateway.metricsUrl}/health`)).json()) as Health
  const allReady = (): Promise<void> =>
    until(async () => (await health()).workers.every(({ state }) => state === 'ready'), long)
  const metrics = async (): Promise<string> => (await fetch(`${gateway.metricsUrl}/metrics`)).text()
  const answered = (text: string): number =>
    Array.from(text.matchAll(/^gatehouse_http_requests_total\{application="people".*\} (\d+)$/gm)).reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    )

  test('print one start, and share one configuration and one page of metrics', async () => {
    const output = gateway.output()
    expect(output.match(/^Listening on /gm)).toHaveLength(1)
    expect(output).toContain(`Listening on ${gateway.url}\n`)
    expect(output).toContain('Workers: 2\n')
    expect(output).toContain(`Metrics on ${gateway.metricsUrl}/metrics\n`)
    const { status, workers } = await health()
    expect([status, workers.map(({ worker }) => worker)]).toEqual(['up', [1, 2]])
    expect(new Set(workers.map(({ pid }) => pid)).size).toBe(2)
    expect(workers[0]?.configuration).toBe(workers[1]?.configuration)
    const text = await metrics()
    expect(text).toContain('gatehouse_workers{state="ready"} 2')
    expect(text).toContain('gatehouse_worker_exits_total{worker="2"} 0\n')
    expect(text).toContain('gatehouse_configuration_current 1\n')
    for (const worker of ['1', '2', 'supervisor']) {
      expect(text).toContain(`process_resident_memory_bytes{worker="${worker}"}`)
    }
    const scrapes = Array.from({ length: 12 }, () => fetch(`${gateway.url}/metrics?name[]=gatehouse_workers`))
    for (const scrape of await Promise.all(scrapes)) {
      expect(await scrape.text()).toContain('gatehouse_workers{state="ready"} 2\n')
    }
    const open = await fetch(`${gateway.metricsUrl}/metrics`, { headers: { accept: 'application/openmetrics-text' } })
    expect(await open.text()).toMatch(/gatehouse_worker_exits counter\n[\s\S]*\n# EOF\n$/m)
    expect(lines().filter(({ worker }) => worker === undefined)).toEqual([])
  })

  test('a killed worker fails only requests on its own connections, and another one starts', async () => {
    let isDone = false
    const clients = Array.from({ length: 24 }, () => new Client(`${gateway.url}/people/Users?count=1`))
    const load = clients.map((client) => client.run(() => isDone))
    const workerOf = (id: string | undefined): number | undefined =>
      id === undefined ? undefined : lines().find(({ requestId }) => requestId === id)?.worker
    const first = (client: Client): string | undefined => [...client.connections.values()][0]
    await until(async () => clients.every((client) => workerOf(first(client)) !== undefined), long)
    const served = clients.map((client) => workerOf(first(client)))
    expect([...new Set(served)].sort()).toEqual([1, 2])
    const before = answered(await metrics())
    expect(before).toBeGreaterThan(clients.length)
    const pid = (await health()).workers[0]?.pid ?? 0
    process.kill(pid, 'SIGKILL')
    await until(async () => lines().some(({ msg }) => msg === 'worker exited; another one starts'), long)
    expect(answered(await metrics())).toBeGreaterThanOrEqual(before)
    await allReady()
    const counts = clients.map(({ answers }) => answers)
    await until(async () => clients.every(({ answers }, index) => answers > (counts[index] ?? 0) + 5), long)
    isDone = true
    await Promise.all(load)
    const wrong = clients.flatMap((client, index) => {
      const [own] = client.connections.keys()
      const isKilled = served[index] === 1
      return client.failed.length <= (isKilled ? 1 : 0) && client.failed.every((port) => port === own)
        ? []
        : [{ worker: served[index], own, failed: client.failed }]
    })
    expect(wrong).toEqual([])
    const exit = lines().find(({ msg }) => msg === 'worker exited; another one starts')
    expect(exit).toMatchObject({ worker: 1, pid, signal: 'SIGKILL' })
    expect((await health()).workers[0]?.pid).not.toBe(pid)
    expect(await metrics()).toContain('gatehouse_worker_exits_total{worker="1"} 1')
  })

  test('a change of the configuration reaches both', async () => {
    const { workers } = await health()
    writeFileSync(join(folder, 'more.yaml'), application('more', 'people'))
    await until(async () => {
      const now = await health()
      return now.workers.every(({ configuration }, i) => configuration !== workers[i]?.configuration)
    }, long)
    const found = () => lines().filter(({ msg }) => msg === 'configuration change applied')
    // Workers write their log within a second.
    await until(async () => found().length >= 2, long)
    const applied = found()
    expect(applied.map(({ worker }) => worker).sort()).toEqual([1, 2])
    expect(new Set(applied.map(({ hash }) => hash)).size).toBe(1)
    expect((await health()).status).toBe('up')
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`${gateway.url}/more/Users?count=1`)).status),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    writeFileSync(join(folder, 'more.yaml'), application('more', 'nowhere'))
    await until(async () => (await metrics()).includes('gatehouse_configuration_current 0\n'), long)
    writeFileSync(join(folder, 'more.yaml'), application('more', 'people'))
    await until(async () => (await metrics()).includes('gatehouse_configuration_current 1\n'), long)
  })

  test('a worker that hangs does not hide the metrics of the other', async () => {
    const pid = (await health()).workers[1]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      // Prometheus waits as long by default.
      const scrape = await fetch(`${gateway.metricsUrl}/metrics`, { signal: AbortSignal.timeout(10_000) })
      expect(await scrape.text()).toContain('process_resident_memory_bytes{worker="1"}')
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await allReady()
  })

  test('SIGTERM to one worker replaces it', async () => {
    const pid = (await health()).workers[1]?.pid ?? 0
    process.kill(pid, 'SIGTERM')
    await until(async () => (await health()).workers[1]?.pid !== pid, long)
    await allReady()
    expect(lines().find((line) => line.pid === pid && line.msg === 'worker exited; another one starts')).toMatchObject({
      level: 'info',
      worker: 2,
      code: 0,
    })
    expect((await fetch(`${gateway.metricsUrl}/ready`)).status).toBe(200)
  })

  test('SIGTERM lets both finish open requests, and the command succeeds', async () => {
    const ended = once(gateway.process, 'exit')
    const { workers } = await health()
    const slow = Array.from({ length: 8 }, (_, n) =>
      fetch(`${gateway.url}/slow/Users`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ userName: `user${n}` }),
      }),
    )
    await until(
      async () => /gatehouse_connections_open\{listener="public"\} (?:[8-9]|\d\d)/.test(await metrics()),
      long,
    )
    gateway.process.kill('SIGTERM')
    await until(async () => (await fetch(`${gateway.metricsUrl}/ready`)).status === 503, long)
    expect(gateway.process.exitCode).toBeNull()
    expect((await Promise.all(slow)).map(({ status }) => status)).toEqual(slow.map(() => 201))
    expect(await ended).toEqual([0, null])
    expect(gateway.output().match(/^Shutting down/gm)).toHaveLength(1)
    for (const { pid = 0 } of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  })

  /** A gateway in a process group of its own, as a terminal would start it. */
  async function starting(...more: string[]) {
    const data = mkdtempSync(join(tmpdir(), 'gatehouse-story-'))
    onTestFinished(() => rmSync(data, { recursive: true, force: true }))
    const database = await freshSchema()
    const args = ['serve', '--config', folder, '--data', data, '--workers', '2', '--database', database]
    args.push('--listen', `127.0.0.1:${await freePort()}`, ...more)
    const child = spawn(gatehouse, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk))
    const [pid, closed] = [child.pid ?? 0, once(child, 'close')]
    onTestFinished(() => {
      if (child.exitCode === null) process.kill(-pid, 'SIGKILL')
    })
    return { pid, closed, database, output: () => output }
  }

  test('Ctrl-C, which workers get too, ends a gateway whose second worker is starting, as a success', async () => {
    const { pid, closed, output } = await starting('--metrics', 'off')
    await until(async () => output().includes('Workers: 2'), long)
    process.kill(-pid, 'SIGINT')
    expect(await closed).toEqual([0, null])
  })

  test('a port in use is found before the database is migrated', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const taken = `127.0.0.1:${(other.address() as AddressInfo).port}`
    const { closed, database, output } = await starting('--metrics', 'off', '--listen', taken)
    expect(await closed).toEqual([1, null])
    const tables = 'select table_name from information_schema.tables where table_schema = current_schema()'
    expect(await runSql(database, tables)).toEqual([])
    expect(output()).toContain(`address already in use ${taken}; choose another --listen`)
  })

  test('a first worker that is killed before it serves requests ends the gateway, and the log says so', async () => {
    const metricsAt = `127.0.0.1:${await freePort()}`
    const { closed, output } = await starting('--metrics', metricsAt)
    let worker = 0
    await until(async () => {
      const response = await fetch(`http://${metricsAt}/health`).catch(() => undefined)
      worker = ((await response?.json()) as Health | undefined)?.workers[0]?.pid ?? 0
      return worker > 0
    }, long)
    process.kill(worker, 'SIGKILL')
    expect(await closed).toEqual([1, null])
    expect(output()).toContain('"signal":"SIGKILL","msg":"the first worker was killed before it served requests"')
  })

  test('a gateway that cannot start says so once, and ends', async () => {
    writeFileSync(join(folder, 'wrong.yaml'), 'kind: Target\n')
    const { closed, output } = await starting('--strict', '--metrics', 'off')
    expect(await closed).toEqual([1, null])
    expect(output().match(/^gatehouse serve: the configuration has /gm)).toHaveLength(1)
    expect(output()).not.toContain('Listening')
  })
})
