import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Shell {
  readonly name: string
  readonly command: readonly [string, ...string[]]
  /** Folders of programs, so that a shell runs with the tools of its own kind. */
  readonly path: string
}

const applets = ['base64', 'cat', 'chmod', 'date', 'mkdir', 'mktemp', 'mv', 'od', 'rm', 'sed', 'sleep', 'test', 'tr']

const where = (program: string): string =>
  spawnSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).stdout.trim()

/** The shells of this machine, by name; an empty command stands for one that is not installed. */
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

export interface SidecarOptions {
  readonly shell: Shell
  readonly script: string
  /** Address and audience of each target, by the name of its folder. */
  readonly targets: Readonly<Record<string, { readonly url: string; readonly audience: string }>>
  readonly variables?: Readonly<Record<string, string>>
}

export interface Sidecar {
  readonly folder: string
  readonly process: ChildProcess
  readonly credential: string
  log(): string
  fileOf(target: string): string
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  /**
   * Resident memory of the process and its children in bytes. What they share counts once, as in a container, and what
   * they share with other processes of this machine counts too.
   */
  memory(): number
  /** Ends it and its children, as the end of a container does. */
  destroy(): void
}

/** Runs the script as the injected container would: by `sh -c`, with the variables that the injector sets. */
export function startSidecar({ shell, script, targets, variables = {} }: SidecarOptions): Sidecar {
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
  const child = spawn(program, [...args, '-c', script, 'sts-creds-sidecar'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    env: {
      PATH: shell.path,
      STS_TARGETS: lines.join('\n'),
      STS_FILE_MODE: '0440',
      STS_READY_FILE: join(tokens, '.ready'),
      ...variables,
    },
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
  /** The most that one process sees of what it may share with the others. */
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
