import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '#testing/gateway/free-port.ts'

const lastWords = 4000

export interface ReplicaOptions {
  readonly config: string
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  readonly leaseMillis: number
}

/** Where and when a process kills itself. */
export interface PlannedCrash {
  readonly point: string
  readonly count: number
}

/** One gateway process that is killed and restarted at the same address. */
export class Replica {
  readonly url: string
  /** How its lives ended: `killed`, or the name of the point where it killed itself. */
  readonly deaths: string[] = []
  readonly #options: ReplicaOptions
  readonly #port: number
  readonly #metricsPort: number
  #child: ChildProcess | undefined
  #output = ''
  #wanted = false
  starts = 0
  /** This life ends at a point. */
  planned = false
  /** A life that ended on its own and not by a planned crash. */
  unexpected: string | undefined

  private constructor(options: ReplicaOptions, port: number, metricsPort: number) {
    this.#options = options
    this.#port = port
    this.#metricsPort = metricsPort
    this.url = `http://127.0.0.1:${port}`
  }

  static async create(options: ReplicaOptions): Promise<Replica> {
    return new Replica(options, await freePort(), await freePort())
  }

  get metricsUrl(): string {
    return `http://127.0.0.1:${this.#metricsPort}/metrics`
  }

  get output(): string {
    return this.#output
  }

  get alive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  start(crash?: PlannedCrash): void {
    const { config, dataFolder, databaseUrl, leaseMillis } = this.#options
    const args = ['serve', '--config', config, '--data', dataFolder, '--log-level', 'warn']
    args.push('--listen', `127.0.0.1:${this.#port}`, '--metrics', `127.0.0.1:${this.#metricsPort}`)
    if (databaseUrl !== undefined) args.push('--database', databaseUrl)
    const env = {
      ...process.env,
      GATEHOUSE_URL: this.url,
      GATEHOUSE_CHAOS_LEASE_MILLIS: String(leaseMillis),
      ...(crash === undefined
        ? {}
        : { GATEHOUSE_CHAOS_POINT: crash.point, GATEHOUSE_CHAOS_COUNT: String(crash.count) }),
    }
    this.#wanted = true
    this.starts++
    this.planned = crash !== undefined
    const child = spawn('bin/node', ['test/support/gateway/crashing-gateway.ts', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-lastWords)
      })
    }
    child.on('exit', (code, signal) => {
      if (!this.#wanted) return
      if (signal === 'SIGKILL') this.deaths.push(crash?.point ?? 'unplanned')
      // A gateway does not start without its database; the harness starts it again.
      else if (!this.#output.includes('the database does not answer'))
        this.unexpected = `ended with ${code ?? signal}: ${this.#output}`
    })
  }

  /** SIGKILL, now. */
  kill(): void {
    if (!this.alive) return
    this.#wanted = false
    this.deaths.push('killed')
    this.#child?.kill('SIGKILL')
  }

  /** True when it is ready in time. */
  async ready(millis: number): Promise<boolean> {
    const end = Date.now() + millis
    while (Date.now() < end) {
      if (!this.alive) return false
      const answer = await fetch(`${this.url}/ready`, { signal: AbortSignal.timeout(2000) }).catch(() => undefined)
      await answer?.body?.cancel()
      if (answer?.ok === true) return true
      await delay(50)
    }
    return false
  }

  /** SIGTERM, and SIGKILL if it does not end; returns its exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child
    if (child === undefined || !this.alive) return child?.exitCode ?? null
    this.#wanted = false
    const ended = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 25_000)
    return ended.finally(() => clearTimeout(timer))
  }
}
