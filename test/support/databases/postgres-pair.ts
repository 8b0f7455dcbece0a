import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { serverOwner } from '#testing/databases/debian-postgres.ts'
import { runSql } from '#testing/databases/postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'
import { pauseProcess } from '#testing/gateway/paused-process.ts'

const run = promisify(execFile)

/** A password that an address has to encode. */
const password = 'p,a@s/s'
const standbyName = 'gatehouse_standby'
const startMillis = 60_000

export interface PairOptions {
  /** Whether a commit waits for the standby. */
  readonly synchronous: boolean
  /** Of both servers, which then accept TLS. */
  readonly certificate?: { readonly certificate: string; readonly privateKey: string }
}

interface Server {
  readonly port: number
  readonly folder: string
  process: ChildProcess | undefined
}

/** A primary and a standby of Debian's PostgreSQL, in folders of their own. Only their processes die, not the machine. */
export class PostgresPair {
  /** How often the primary was killed, and the standby promoted. */
  kills = 0
  promotions = 0
  readonly #programs: string
  readonly #options: PairOptions
  readonly #folder: string
  readonly #owner: { readonly uid: number; readonly gid: number } | undefined
  readonly #servers: readonly Server[]
  readonly #tls: string[] = []
  #primary: Server
  #standby: Server

  private constructor(parts: {
    programs: string
    options: PairOptions
    folder: string
    owner: { readonly uid: number; readonly gid: number } | undefined
    servers: readonly [Server, Server]
  }) {
    this.#programs = parts.programs
    this.#options = parts.options
    this.#folder = parts.folder
    this.#owner = parts.owner
    this.#servers = parts.servers
    ;[this.#primary, this.#standby] = parts.servers
  }

  static async start(programs: string, options: PairOptions): Promise<PostgresPair> {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-pair-'))
    const owner = await serverOwner()
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    chmodSync(folder, 0o700)
    const server = async (name: string): Promise<Server> => ({
      port: await freePort(),
      folder: join(folder, name),
      process: undefined,
    })
    const servers = [await server('one'), await server('two')] as const
    const pair = new PostgresPair({ programs, options, folder, owner, servers: [...servers] })
    try {
      await pair.#initialize()
    } catch (error) {
      await pair.stop()
      throw error
    }
    return pair
  }

  /** Of both servers, in an order that does not change. */
  get url(): string {
    return this.#address(this.#servers)
  }

  get primaryUrl(): string {
    return this.#address([this.#primary])
  }

  get standbyUrl(): string {
    return this.#address([this.#standby])
  }

  /**
   * Kills the primary with all its processes and promotes the standby. Beforehand nothing reaches the standby for
   * `silentMillis`, as when the network fails before the machine.
   */
  async failOver(silentMillis: number): Promise<void> {
    const old = this.#primary
    await this.holdReplication()
    await delay(silentMillis)
    await kill(old)
    this.kills++
    await this.promote()
  }

  /** The primary answers nothing any more, although its machine accepts connections. It stays so until it is killed. */
  async silencePrimary(): Promise<void> {
    const pid = this.#primary.process?.pid
    if (pid === undefined) throw new Error('the primary does not run')
    for (const one of [pid, ...childrenOf(pid)]) await pauseProcess(one)
  }

  /** Promotes the standby, whatever the primary does. */
  async promote(): Promise<void> {
    const old = this.#primary
    await runSql(this.standbyUrl, `select pg_promote(true, ${startMillis / 1000})`)
    this.promotions++
    this.#primary = this.#standby
    this.#standby = old
  }

  /** From now on the primary sends nothing to the standby. */
  async holdReplication(): Promise<void> {
    const [sender] = await runSql(this.primaryUrl, 'select pid from pg_stat_replication')
    if (sender !== undefined) await pauseProcess(Number(sender['pid']))
  }

  async resumeReplication(): Promise<void> {
    const [sender] = await runSql(this.primaryUrl, 'select pid from pg_stat_replication')
    if (sender !== undefined) process.kill(Number(sender['pid']), 'SIGCONT')
  }

  /** Makes a standby of the present primary in the folder of the former one. */
  async addStandby(): Promise<void> {
    await this.#copyPrimary()
    await this.#standbyIs(this.#options.synchronous ? 'sync' : 'async')
  }

  async #copyPrimary(): Promise<void> {
    const { folder } = this.#standby
    await kill(this.#standby)
    rmSync(folder, { recursive: true, force: true })
    const from = ['-h', '127.0.0.1', '-p', String(this.#primary.port), '-U', 'gatehouse']
    await run(join(this.#programs, 'pg_basebackup'), [...from, '-D', folder, '-c', 'fast', '--no-sync'], {
      cwd: this.#folder,
      ...this.#owner,
      env: { ...process.env, PGPASSWORD: password },
    })
    this.#write(join(basename(folder), 'standby.signal'), '')
    const source = `host=127.0.0.1 port=${this.#primary.port} user=gatehouse password='${password}' application_name=${standbyName}`
    await this.#start(this.#standby, ['-c', `primary_conninfo=${source}`, ...this.#synchronous])
  }

  async #standbyIs(state: 'sync' | 'async'): Promise<void> {
    const streaming = `select from pg_stat_replication where state = 'streaming' and sync_state = '${state}'`
    await until(async () => (await runSql(this.primaryUrl, streaming)).length === 1, startMillis)
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) await kill(server)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** A new primary waits for its standby too, even before it has one. */
  get #synchronous(): string[] {
    return this.#options.synchronous ? ['-c', `synchronous_standby_names=${standbyName}`] : []
  }

  async #initialize(): Promise<void> {
    const { folder } = this.#primary
    const file = this.#write('password', password)
    const { certificate } = this.#options
    if (certificate !== undefined) {
      const files = [this.#write('tls.crt', certificate.certificate), this.#write('tls.key', certificate.privateKey)]
      this.#tls.push('ssl=on', `ssl_cert_file=${files[0]}`, `ssl_key_file=${files[1]}`)
    }
    await run(
      join(this.#programs, 'initdb'),
      [
        `--pgdata=${folder}`,
        '--username=gatehouse',
        `--pwfile=${file}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--locale=C',
        '--no-sync',
      ],
      { cwd: this.#folder, ...this.#owner },
    )
    await this.#start(this.#primary, [])
    await this.#copyPrimary()
    if (this.#options.synchronous) {
      await runSql(this.primaryUrl, `alter system set synchronous_standby_names = '${standbyName}'`)
      await runSql(this.primaryUrl, 'select pg_reload_conf()')
    }
    await this.#standbyIs(this.#options.synchronous ? 'sync' : 'async')
  }

  /** A file that only the servers can read. */
  #write(name: string, text: string): string {
    const file = join(this.#folder, name)
    writeFileSync(file, text, { mode: 0o600 })
    if (this.#owner !== undefined) chownSync(file, this.#owner.uid, this.#owner.gid)
    return file
  }

  async #start(server: Server, settings: readonly string[]): Promise<void> {
    const { folder, port } = server
    const common = ['fsync=off', 'unix_socket_directories=', 'max_connections=200', 'wal_retrieve_retry_interval=100ms']
    const args = [...common, ...this.#tls].flatMap((setting) => ['-c', setting])
    const child = spawn(
      join(this.#programs, 'postgres'),
      ['-D', folder, '-h', '127.0.0.1', '-p', String(port), ...args, ...settings],
      { cwd: this.#folder, stdio: ['ignore', 'ignore', 'pipe'], ...this.#owner },
    )
    server.process = child
    let output = ''
    child.stderr.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4000)
    })
    const problem = 'PostgreSQL ended: '
    await until(async () => {
      if (!isAlive(child)) throw new Error(problem + output)
      return await runSql(this.#address([server]), 'select 1').then(
        () => true,
        () => false,
      )
    }, startMillis)
  }

  #address(servers: readonly Server[]): string {
    const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
    return `postgres://gatehouse:${encodeURIComponent(password)}@${hosts}/postgres`
  }
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

/** All processes of the server at once: a backend that outlives the others could acknowledge a commit. */
async function kill({ process: server }: Server): Promise<void> {
  if (server?.pid === undefined || !isAlive(server)) return
  const ended = once(server, 'exit')
  process.kill(server.pid, 'SIGSTOP')
  const children = childrenOf(server.pid)
  process.kill(server.pid, 'SIGKILL')
  for (const child of children) {
    try {
      process.kill(child, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  await ended
}

function childrenOf(pid: number): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const status = readFileSync(`/proc/${name}/status`, 'utf8')
      return new RegExp(`^PPid:\\t${pid}$`, 'm').test(status) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
