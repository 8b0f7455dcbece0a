import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { runSql } from '#testing/databases/postgres.ts'
import { freePort } from '#testing/gateway/free-port.ts'
import { until } from '#testing/gateway/gateway-process.ts'

const run = promisify(execFile)

/** The programs of Debian's PostgreSQL, server and clients of one version; undefined where it is not installed. */
export const postgresPrograms: string | undefined = globSync('/usr/lib/postgresql/*/bin/initdb')
  .map((program) => join(program, '..'))
  .sort()
  .at(-1)

export interface DebianPostgres {
  /** Creates an empty database and returns its address. */
  create(name: string): Promise<string>
  /** With its data. */
  stop(): Promise<void>
}

/** A server whose version fits `pg_dump`, which refuses newer ones; the embedded server has no `pg_dump` of its own. */
export async function startDebianPostgres(programs: string): Promise<DebianPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-debian-postgres-'))
  const owner = await serverOwner()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  chmodSync(folder, 0o700)
  const options = { cwd: folder, ...owner }
  await run(
    join(programs, 'initdb'),
    ['--pgdata=data', '--username=gatehouse', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    options,
  )
  const port = await freePort()
  const settings = ['-c', 'fsync=off', '-c', 'unix_socket_directories=', '-h', '127.0.0.1', '-p', String(port)]
  const server = spawn(join(programs, 'postgres'), ['-D', 'data', ...settings], { ...options, stdio: 'ignore' })
  const url = (name: string): string => `postgres://gatehouse@127.0.0.1:${port}/${name}`
  const stop = async (): Promise<void> => {
    if (server.exitCode === null) {
      const ended = once(server, 'exit')
      server.kill('SIGINT')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await until(async () => {
      if (server.exitCode !== null) throw new Error(`PostgreSQL ended with ${server.exitCode}`)
      return runSql(url('postgres'), 'select 1').then(
        () => true,
        () => false,
      )
    }, 60_000)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    create: async (name) => {
      await runSql(url('postgres'), `create database ${name}`)
      return url(name)
    },
    stop,
  }
}

/** The server refuses to run as root. */
export async function serverOwner(): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map(async (flag) => Number((await run('id', [flag, 'postgres'])).stdout)),
  )
  return { uid: uid ?? 0, gid: gid ?? 0 }
}
