import { readdirSync, readFileSync } from 'node:fs'

/** Of /proc, on every Linux. */
const ticksPerSecond = 100

/** CPU seconds of all threads of a process since it started, from /proc/PID/stat. Its name may contain anything. */
export function parseCpuSeconds(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user = Number.NaN, system = Number.NaN] = fields.slice(11, 13).map(Number)
  return (user + system) / ticksPerSecond
}

/** A line such as `VmRSS: 1234 kB` of /proc/PID/status, in MB; 0 without the line. */
export function parseMegabytes(status: string, field: string): number {
  const line = status.split('\n').find((one) => one.startsWith(`${field}:`))
  return Number(/\d+/.exec(line ?? '')?.[0] ?? 0) / 1024
}

/** Bytes that a process wrote to the disk, from /proc/PID/io; 0 on a file system in memory. */
export const parseWrittenBytes = (io: string): number => Number(/^write_bytes: (\d+)$/m.exec(io)?.[1] ?? 0)

const read = (pid: number | undefined, file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')

export const cpuSecondsOf = (pid: number | undefined): number => parseCpuSeconds(read(pid, 'stat'))
export const megabytesOf = (pid: number | undefined, field: string): number =>
  parseMegabytes(read(pid, 'status'), field)
export const writtenBytesOf = (pid: number | undefined): number => parseWrittenBytes(read(pid, 'io'))
export const openFilesOf = (pid: number | undefined): number => readdirSync(`/proc/${pid}/fd`).length

/** CPU seconds of a process and of its children that run, by process. */
export function cpuSecondsByProcess(pid: number): Map<number, number> {
  const found = new Map<number, number>()
  const add = (one: number): void => {
    try {
      found.set(one, cpuSecondsOf(one))
      for (const child of read(one, `task/${one}/children`).trim().split(' ').filter(Boolean)) add(Number(child))
    } catch (error) {
      // A child may end meanwhile.
      if (one === pid) throw error
    }
  }
  add(pid)
  return found
}

/** Of a program of several processes. */
export const treeCpuSecondsOf = (pid: number | undefined): number =>
  cpuSecondsByProcess(pid ?? 0)
    .values()
    .reduce((sum, seconds) => sum + seconds, 0)
