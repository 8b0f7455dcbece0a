import { type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { arch, freemem, homedir, platform } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

export interface GoProgram {
  readonly name: string
  /** The folder whose go.mod has the release to build. */
  readonly moduleFolder: string
  /** The module of the program, whose version is the program's. */
  readonly module: string
  readonly package: string
  /** Variables with the version, which a build from modules does not know. */
  variables(version: string, goMod: string): Readonly<Record<string, string>>
  /** Below `~/.cache/gatehouse`. */
  readonly cacheFolder: string
}

const buildMillis = 40 * 60_000
/** The first release of Go that downloads a newer one itself. */
const oldestGo = 21

/** A program, built from its Go modules on first use and stored outside the repository. Throws if unavailable. */
export async function builtProgram(program: GoProgram): Promise<string> {
  const goMod = readModule(program)
  const version = versionIn(goMod, program.module)
  if (version === undefined) throw new Error(`${program.moduleFolder}go.mod names no release of ${program.module}`)
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const folder = join(cache, 'gatehouse', program.cacheFolder, `${version}-${platform()}-${arch()}`)
  const file = join(folder, program.name)
  if (existsSync(file)) return file
  mkdirSync(folder, { recursive: true })
  const unfinished = `${file}.${process.pid}`
  const letNextBuild = await turnToBuild(cache)
  try {
    if (existsSync(file)) return file
    await build(program, version, unfinished)
    renameSync(unfinished, file)
  } finally {
    rmSync(unfinished, { force: true })
    letNextBuild()
  }
  return file
}

/**
 * Waits until no other process builds for this cache: two would compile the same packages. The lock is a name that the
 * kernel frees when its process ends.
 */
async function turnToBuild(cache: string): Promise<() => void> {
  const name = `\0gatehouse-build-${createHash('sha256').update(cache).digest('hex').slice(0, 16)}`
  for (;;) {
    const lock = createServer().listen(name)
    try {
      await once(lock, 'listening')
      const waiting = new Set<Socket>()
      lock.on('connection', (socket) => waiting.add(socket))
      return () => {
        lock.close()
        for (const socket of waiting) socket.destroy()
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      // It closes when the other process is done; an error says that it is gone already.
      await new Promise((resume) =>
        connect(name)
          .once('close', resume)
          .once('error', () => {})
          .resume(),
      )
    }
  }
}

/** The release of a module that a go.mod requires, on its own line or in a list. */
export function versionIn(goMod: string, module: string): string | undefined {
  const line = goMod.split('\n').find((one) =>
    one
      .replace(/^require/, '')
      .trim()
      .startsWith(`${module} v`),
  )
  return /\bv\d+\.\d+\.\d+\b/.exec(line ?? '')?.[0]
}

/** The path of an installed program; undefined if it is not installed. */
export function installedProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/local/go/bin', '/usr/local/bin', '/usr/bin']
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file))
}

async function build(program: GoProgram, version: string, output: string): Promise<void> {
  const started = performance.now()
  const minutes = (): string => ((performance.now() - started) / 60_000).toFixed(1)
  const say = (text: string): void => console.log(`${program.name} ${version}: ${text}`)
  say('building it once from its Go modules, which takes several minutes')
  const progress = setInterval(() => say(`still building after ${minutes()} min`), 60_000)
  try {
    const told = Object.entries(program.variables(version, readModule(program)))
    const flags = ['-s', '-w', ...told.map(([key, value]) => `-X ${key}=${value}`)].join(' ')
    const args = ['build', '-trimpath', '-buildvcs=false', '-ldflags', flags, '-o', output]
    await goTool(program, [...args, program.package])
  } finally {
    clearInterval(progress)
  }
  say(`built in ${minutes()} min`)
}

async function goTool(program: GoProgram, args: readonly string[]): Promise<void> {
  const go = installedProgram('go')
  if (go === undefined) throw new Error(`neither ${program.name} nor Go to build it is installed`)
  const cwd = program.moduleFolder
  const env = {
    // With much memory the compiler collects its garbage less often, which saves a fifteenth of its time.
    ...(freemem() > 8 * 2 ** 30 ? { GOGC: '400' } : {}),
    GOTOOLCHAIN: 'auto',
    ...process.env,
    CGO_ENABLED: '0',
    GOWORK: 'off',
  }
  if (minorOf(go) >= oldestGo) return run(go, args, { cwd, env })
  const root = await fetchedToolchain(go, readModule(program))
  return run(join(root, 'bin', 'go'), args, { cwd, env: { ...env, GOROOT: root, GOTOOLCHAIN: 'local' } })
}

/** Go's own releases are modules too, and older ones can download them, checksums included. */
async function fetchedToolchain(go: string, goMod: string): Promise<string> {
  const version = /^go (\d+\.\d+\.\d+)$/m.exec(goMod)?.[1] ?? ''
  const name = `golang.org/toolchain@v0.0.1-go${version}.${platform()}-${arch() === 'x64' ? 'amd64' : arch()}`
  const download = spawnSync(go, ['mod', 'download', '-modcacherw', '-json', name], {
    encoding: 'utf8',
    timeout: buildMillis,
  })
  const { Dir: root } = JSON.parse(download.stdout || '{}') as { Dir?: string }
  if (download.status !== 0 || root === undefined) throw new Error(`${name}: ${download.stderr || download.stdout}`)
  for (const file of globSync(['bin/*', 'pkg/tool/*/*'], { cwd: root })) chmodSync(join(root, file), 0o755)
  return root
}

function minorOf(go: string): number {
  const { stdout } = spawnSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' })
  return Number(/^go1\.(\d+)/.exec(stdout)?.[1] ?? 0)
}

function run(command: string, args: readonly string[], options: SpawnOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ['ignore', 'ignore', 'pipe'], timeout: buildMillis })
    let output = ''
    child.stderr?.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-2000)
    })
    child.once('error', reject)
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`go: ${output.trim()}`))))
  })
}

const readModule = ({ moduleFolder }: GoProgram): string => readFileSync(join(moduleFolder, 'go.mod'), 'utf8')
