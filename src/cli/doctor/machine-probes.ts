import { existsSync, readFileSync, statSync } from 'node:fs'
import { glob, stat, statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { defaultConnectionLimits } from '#requests/listener/http-limits.ts'
import { type Finding, ok, type Probe, problem, warning } from './diagnosis.ts'

const megabyte = 1024 * 1024
const gigabyte = 1024 * megabyte
const nodeMajor = 24
/** Files besides connections: the database, plug-ins, targets. */
const otherFiles = 200

/** Node.js, the limits of the process, and the disk of the data folder. */
export function machineProbes(data: string): Probe[] {
  return [
    { probe: 'node', advice: 'Report this as a bug.', run: async () => [nodeFinding(process.versions.node)] },
    { probe: 'open files', advice: 'Run "ulimit -n" to see the limit.', run: async () => [openFiles()] },
    { probe: 'memory', advice: 'Report this as a bug.', run: async () => [memory()] },
    {
      probe: 'disk',
      at: data,
      advice: 'Check that the data folder is on a disk that this user can read.',
      run: () => disk(data),
    },
  ]
}

export function nodeFinding(version: string): Finding {
  const seen = `Node.js ${version}`
  if (Number.parseInt(version, 10) >= nodeMajor) return ok(seen)
  return problem(seen, `Use Node.js ${nodeMajor} or later, or the bin/gatehouse of a release, which brings its own.`)
}

/** `Max open files  1024  4096  files`, of Linux. */
function softLimit(): number | undefined {
  try {
    const [, soft = ''] = /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : soft === '' ? undefined : Number(soft)
  } catch {
    return undefined
  }
}

function openFiles(): Finding {
  const soft = softLimit()
  if (soft === undefined) return warning('the limit of open files cannot be read', 'Run "ulimit -n" to see it.')
  const needed = defaultConnectionLimits.total + otherFiles
  if (soft >= needed) return ok(soft === Number.POSITIVE_INFINITY ? 'no limit' : `limit ${soft}`)
  const advice = `Raise the limit to ${needed} (ulimit -n, or LimitNOFILE= of systemd), or lower --connections of serve.`
  return soft < 1024 ? problem(`limit ${soft}`, advice) : warning(`limit ${soft}`, advice)
}

function memory(): Finding {
  // 0 if there is no limit, and a huge number on some systems.
  const limit = process.constrainedMemory()
  const total = limit > 0 && limit < totalmem() ? limit : totalmem()
  const free = process.availableMemory()
  const seen = `${size(free)} of ${size(total)} available`
  const advice = 'Give the machine or container more memory: a gateway needs about 200 MB, and more under load.'
  if (free < 128 * megabyte) return problem(seen, advice)
  return total < 256 * megabyte ? warning(seen, advice) : ok(seen)
}

async function disk(data: string): Promise<Finding[]> {
  const folder = existing(resolve(data))
  const { bavail, bsize, blocks } = await statfs(folder)
  const [free, total] = [bavail * bsize, blocks * bsize]
  const seen = `${size(free)} of ${size(total)} free${folder === resolve(data) ? '' : ' (the folder does not exist yet)'}`
  const advice = 'Free some space, or move the data folder: the gateway refuses changes when the disk is full.'
  if (free < 200 * megabyte) return [problem(seen, advice)]
  return [free < gigabyte ? warning(seen, advice) : ok(seen)]
}

/** The folder, or the closest one above it that exists. */
function existing(folder: string): string {
  if (folder === dirname(folder)) return folder
  return statSync(folder, { throwIfNoEntry: false }) === undefined ? existing(dirname(folder)) : folder
}

const size = (bytes: number): string =>
  bytes >= gigabyte ? `${(bytes / gigabyte).toFixed(1)} GB` : `${Math.round(bytes / megabyte)} MB`

const maxFiles = 1000

/** Secret files that other users can read. */
export function secretFilesProbe(folders: readonly string[]): Probe {
  return {
    probe: 'secret files',
    advice: 'Check that this user can read the folders of secrets.',
    run: async () => {
      const found: Finding[] = []
      let files = 0
      for (const folder of folders) {
        if (!existsSync(folder)) continue
        const { mode: ofFolder } = await stat(folder)
        // No one else can reach the files of a closed folder.
        const isClosed = (ofFolder & 0o007) === 0
        for await (const name of glob('**/*', { cwd: folder })) {
          const path = join(folder, name)
          const file = await stat(path)
          if (file.isDirectory()) continue
          if (++files > maxFiles) break
          const { mode } = file
          if (isClosed || (mode & 0o007) === 0) continue
          const text = (mode & 0o7777).toString(8).padStart(4, '0')
          found.push(problem(`${path}: other users can access it (mode ${text})`, `Run: chmod o-rwx ${path}`))
        }
      }
      if (found.length > 0) return found
      return [ok(files === 0 ? 'there are none' : `${files} ${files === 1 ? 'file' : 'files'}, closed to other users`)]
    },
  }
}
