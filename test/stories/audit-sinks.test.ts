import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { AuditHealth } from '#server/health.ts'
import { onEachDatabase, temporaryFolder } from '#testing/databases/databases.ts'
import { runOn } from '#testing/databases/sql-schema.ts'
import { runCommand } from '#testing/gateway/command.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { type GatewayProcess, startGatewayProcess, until } from '#testing/gateway/gateway-process.ts'
import { testServerCertificate } from '#testing/gateway/test-certificates.ts'

interface Row {
  readonly id: string
  readonly subject: string
  readonly record: { readonly chain: number; readonly number: number }
}

/** A receiver in its own process, which writes the received data to a file. */
class Receiver {
  readonly port: number
  readonly #kind: 'syslog' | 'https'
  readonly #file: string
  #process: ChildProcess | undefined

  constructor(kind: 'syslog' | 'https', port: number) {
    this.#kind = kind
    this.port = port
    this.#file = join(temporaryFolder(), `${kind}.jsonl`)
    onTestFinished(() => this.kill())
  }

  async start(): Promise<void> {
    const args = ['test/support/servers/audit-receiver.ts', this.#kind, String(this.port), this.#file]
    const child = spawn('bin/node', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#process = child
    await once(child.stdout, 'data')
  }

  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  get file(): string {
    return this.#file
  }

  /** Only whole lines: the last may be partial when it was killed. */
  rows(): Row[] {
    if (!existsSync(this.#file)) return []
    const lines = readFileSync(this.#file, 'utf8').split('\n')
    return lines.flatMap((line) => {
      try {
        return [JSON.parse(line) as Row]
      } catch {
        return []
      }
    })
  }
}

const documents = (syslog: Receiver, https: Receiver): string => `
apiVersion: openunison.tremolo.io/v1
kind: AuditSink
metadata: { name: logs }
spec:
  className: auditSinks.Syslog
  params: { host: 127.0.0.1, port: "${syslog.port}", caFile: receiver-ca.pem, settleSeconds: "2" }
---
apiVersion: openunison.tremolo.io/v1
kind: AuditSink
metadata: { name: siem }
spec:
  className: auditSinks.Https
  params: { url: "https://127.0.0.1:${https.port}/audit", caFile: receiver-ca.pem }
  secretParams: [{ name: token, secretName: siem, secretKey: token }]
---
apiVersion: openunison.tremolo.io/v1
kind: AuditSink
metadata: { name: file }
spec:
  className: auditSinks.File
  params: { file: audit.jsonl }
---
apiVersion: openunison.tremolo.io/v1
kind: AuditAnchor
metadata: { name: notary }
spec:
  className: auditSinks.File
  intervalSeconds: 1
  params: { file: anchors.jsonl }
`

async function onboard(gateway: GatewayProcess, token: string, uid: string): Promise<void> {
  const response = await fetch(`${gateway.url}/call-workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'onboard',
      uidAttributeName: 'uid',
      user: { attributes: [{ name: 'uid', values: [uid] }] },
      requestParams: { team: 'blue' },
    }),
  })
  expect(response.status).toBe(200)
}

const healthOf = async (gateway: GatewayProcess): Promise<{ readonly status: string; readonly audit: AuditHealth }> =>
  await (await fetch(`${gateway.metricsUrl}/health`)).json()

const subjectsOf = (rows: readonly Row[]): Set<string> => new Set(rows.map(({ subject }) => subject))

/** The records of each chain in the order of their first arrival: none is missing, and all are in order. */
function expectInOrder(rows: readonly Row[]): void {
  for (const all of Map.groupBy(rows, ({ record }) => record.chain).values()) {
    const first = [...new Set(all.map(({ record }) => record.number))]
    expect(first).toEqual(first.map((_, i) => i + 1))
  }
}

onEachDatabase('audit sinks', (freshUrl) => {
  test('killed and restarted receivers, and a gateway that is killed meanwhile, miss nothing', {
    timeout: 600_000,
  }, async () => {
    const url = await freshUrl()
    const config = join(temporaryFolder(), 'config')
    cpSync('examples/call-workflow', config, { recursive: true })
    const [syslog, https] = [new Receiver('syslog', await freePort()), new Receiver('https', await freePort())]
    writeFileSync(join(config, 'audit.yaml'), documents(syslog, https))
    writeFileSync(join(config, 'receiver-ca.pem'), testServerCertificate)
    mkdirSync(join(config, 'secrets/siem'), { recursive: true })
    writeFileSync(join(config, 'secrets/siem/token'), 'receiver-token')
    const dataFolder = temporaryFolder()
    const port = await freePort()
    const start = () => startGatewayProcess({ config, dataFolder, port, args: ['--database', url] })
    await syslog.start()
    await https.start()
    let gateway = await start()
    onTestFinished(async () => void (await gateway.stop()))
    const token = await gateway.token('--subject', 'svc', '--ttl', '600', '--claim', 'role=workflow-caller')
    const expected = new Set<string>()
    const work = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        const uid = `user-${expected.size}`
        await onboard(gateway, token, uid)
        expected.add(uid)
      }
    }
    const all = async (receiver: Receiver): Promise<void> =>
      await until(async () => expected.isSubsetOf(subjectsOf(receiver.rows())), 180_000)

    await work(10)
    await Promise.all([all(syslog), all(https)])
    // Both die at random points of their work, and stay down for a while.
    const working = work(30)
    await until(async () => subjectsOf(syslog.rows()).size >= 15, 60_000)
    await Promise.all([syslog.kill(), https.kill()])
    await working
    await work(10)
    await until(async () => {
      const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      return /gatehouse_audit_sink_lag_records\{sink="siem"\} [1-9]/.test(metrics)
    }, 30_000)
    await until(async () => {
      const { status, audit } = await healthOf(gateway)
      return status === 'degraded' && audit.sinks.some(({ name, health }) => name === 'siem' && health === 'down')
    }, 30_000)
    await Promise.all([syslog.start(), https.start()])
    // The gateway dies while they catch up, and the receivers die again.
    await until(async () => subjectsOf(https.rows()).size > 15, 60_000)
    const ended = once(gateway.process, 'exit')
    gateway.process.kill('SIGKILL')
    await ended
    await syslog.kill()
    // On PostgreSQL another process takes over when the lease of the dead one has expired.
    await runOn(url, 'update audit_sinks set lease_until = 0')
    gateway = await start()
    await work(10)
    await syslog.start()
    await Promise.all([all(syslog), all(https)])
    for (const receiver of [syslog, https]) {
      expectInOrder(receiver.rows())
      expect(subjectsOf(receiver.rows()).isSupersetOf(expected)).toBe(true)
    }
    await until(async () => {
      const text = await (await fetch(`${gateway.metricsUrl}/metrics`)).text()
      return ['logs', 'siem', 'file'].every((sink) =>
        new RegExp(`gatehouse_audit_sink_lag_records\\{sink="${sink}"\\} 0$`, 'm').test(text),
      )
    }, 60_000)
    const { sinks, anchors } = (await healthOf(gateway)).audit
    expect(sinks.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
      ['file', 'logs', 'siem'].map((name) => ({ name, health: 'up' })),
    )
    expect(anchors).toEqual([{ name: 'notary', health: 'up' }])
    expect(gateway.output()).not.toContain('receiver-token')

    // The receivers have the same records as the database, and the anchors agree.
    expect(await gateway.stop()).toBe(0)
    const { code, stdout } = await runCommand([
      ...['audit', 'verify', '--data', dataFolder, '--database', url],
      ...['--export', syslog.file, '--export', https.file, '--export', join(dataFolder, 'audit.jsonl')],
      ...['--anchor', join(dataFolder, 'anchors.jsonl')],
    ])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('all unchanged') })
    expect(stdout.match(/all match the database/g)).toHaveLength(4)
  })
})
