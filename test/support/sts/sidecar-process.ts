import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { probeScript } from '#protocols/admission/sidecar-container.ts'

export interface Shell {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  /** Folders of programs, so that a shell runs with its own tools. */
  readonly path: string
}

const applets = ['base64', 'cat', 'chmod', 'date', 'mkdir', 'mktemp', 'mv', 'od', 'rm', 'sed', 'sleep', 'test', 'tr']

const where = (program: string): string =>
  spawnSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).stdout.trim()

/** The shells of this machine, by name; an empty command means that it is not installed. */
export function findShell(name: 'dash' | 'busybox'): Shell | undefined {
  const program = where(name)
  const curl = where('curl')
  if (program === '' || curl === '') return undefined
  if (name === 'dash') return { name, command: [program], path: process.env['PATH'] ?? '/usr/bin:/bin' }
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-busybox-'))
  for (const applet of applets) symlinkSync(program, join(folder, applet))
  symlinkSync(curl, join(folder, 'curl'))
  return { name: 'busybox sh', command: [program, 'sh'], path: folder }
}

/** The clocks of a node whose time runs `factor` times as fast, and whose date can be set. */
export interface NodeClock {
  /** Comes before a shell's own programs. */
  readonly path: string
  readonly variables: Readonly<Record<string, string>>
  uptime(): number
  /** The error of the date in seconds. */
  setDate(offset: number): void
  /** The sleeps of the sidecar in seconds, in order, with the uptime at their start. */
  sleeps(): { readonly at: number; readonly seconds: number }[]
  stop(): void
}

export function startNodeClock(factor = 1): NodeClock {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-clock-'))
  const file = (name: string): string => join(folder, name)
  const began = Date.now()
  let offset = 0
  const elapsed = (): number => ((Date.now() - began) * factor) / 1000
  const uptime = (): number => 100_000 + elapsed()
  const write = (name: string, text: string): void => {
    writeFileSync(file(`${name}.new`), text)
    renameSync(file(`${name}.new`), file(name))
  }
  const show = (): void => {
    write('uptime', `${uptime().toFixed(2)} 1.00\n`)
    write('seconds', `${Math.floor(began / 1000 + elapsed()) + offset}\n`)
  }
  show()
  const timer = setInterval(show, 20)
  const program = (name: string, text: string): void =>
    writeFileSync(file(name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  program(
    'date',
    `if [ "$1" = +%s ]; then read -r s <${file('seconds')}; echo "$s"; else exec ${where('date')} "$@"; fi`,
  )
  program(
    'sleep',
    `read -r u _ <${file('uptime')}; echo "$u $1" >>${file('sleeps')}; exec ${where('sleep')} "$(($1 * 1000 / ${factor}))e-3"`,
  )
  return {
    path: folder,
    variables: { STS_UPTIME_FILE: file('uptime') },
    uptime,
    setDate: (seconds) => {
      offset = seconds
      show()
    },
    sleeps: () => {
      if (!existsSync(file('sleeps'))) return []
      const lines = readFileSync(file('sleeps'), 'utf8').trim().split('\n')
      return lines.map((line) => {
        const [at = 0, seconds = 0] = line.split(' ').map(Number)
        return { at, seconds }
      })
    },
    stop: () => clearInterval(timer),
  }
}

export interface SidecarOptions {
  readonly shell: Shell
  readonly script: string
  /** Address and audience of each target, by the name of its folder. */
  readonly targets: Readonly<Record<string, { readonly url: string; readonly audience: string }>>
  readonly variables?: Readonly<Record<string, string>>
  readonly clock?: NodeClock
}

export interface Sidecar {
  readonly folder: string
  readonly process: ChildProcess
  readonly credential: string
  log(): string
  fileOf(target: string): string
  /** The result of the container's probe. */
  probe(): Promise<{ readonly ready: boolean; readonly output: string }>
  /** The status beside the token of a target. */
  statusOf(target: string): { lastSuccess: number; expires: number; failures: number; lastError: string }
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /**
   * Resident memory of the process and its children in bytes. Shared memory counts once, as in a container, including
   * memory that is shared with other processes of this machine.
   */
  memory(): number
  /** Ends it and its children, like the end of a container. */
  destroy(): void
}

/** Runs the script like the injected container: by `sh -c`, with the variables that the injector sets. */
export function startSidecar({ shell, script, targets, variables = {}, clock }: SidecarOptions): Sidecar {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-sidecar-'))
  const tokens = join(folder, 'tokens')
  mkdirSync(tokens)
  const credential = join(folder, 'credential')
  writeFileSync(credential, 'header.claims.sig+nature/=')
  const fileOf = (target: string): string => join(tokens, target, 'token')
  const lines = Object.entries(targets).map(([name, { url, audience }]) =>
    [url, fileOf(name), credential, JSON.stringify(audience)].join(' '),
  )
  const [program, ...args] = shell.command
  const env: Readonly<Record<string, string>> = {
    PATH: clock === undefined ? shell.path : `${clock.path}:${shell.path}`,
    STS_TARGETS: lines.join('\n'),
    STS_FILE_MODE: '0440',
    STS_READY_FILE: join(tokens, '.ready'),
    ...clock?.variables,
    ...variables,
  }
  const child = spawn(program, [...args, '-c', script, 'sts-creds-sidecar'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env,
  })
  let text = ''
  child.stderr.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return {
    folder: tokens,
    process: child,
    credential,
    log: () => text,
    fileOf,
    probe: () => {
      const text = probeScript(env['STS_READY_FILE'] ?? '')
      return new Promise((resolve) => {
        execFile(program, [...args, '-c', text], { env }, (error, stdout) =>
          resolve({ ready: error === null, output: stdout.trim() }),
        )
      })
    },
    statusOf: (target) => JSON.parse(readFileSync(join(tokens, target, 'status.json'), 'utf8')),
    ended: new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal))),
    destroy: () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, 'SIGKILL')
    },
    memory: () => residentBytes(familyOf(child.pid ?? 0)),
  }
}

function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return [pid, ...children.flatMap((child) => familyOf(Number(child)))]
}

interface Mapping {
  own: number
  /** The most shared memory that one process sees. */
  shared: number
}

function residentBytes(pids: readonly number[]): number {
  const mappings = new Map<string, Mapping>()
  for (const pid of pids) {
    // A mapping's first line is "address mode offset device inode [file]"; lines of figures follow.
    for (const text of readFileSync(`/proc/${pid}/smaps`, 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
      const [address = '', , offset = '', , inode = '', file = ''] = text.split('\n', 1)[0]?.split(/ +/) ?? []
      const kilobytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(text)?.[1] ?? 0)
      const own = kilobytes('Private_Dirty')
      const key = inode === '0' ? `${address} ${file}` : `${inode} ${offset}`
      const mapping = mappings.get(key) ?? { own: 0, shared: 0 }
      mappings.set(key, { own: mapping.own + own, shared: Math.max(mapping.shared, kilobytes('Rss') - own) })
    }
  }
  return 1024 * [...mappings.values()].reduce((sum, { own, shared }) => sum + own + shared, 0)
}
