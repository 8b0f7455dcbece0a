import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Logger } from '#kernel/logger.ts'

/** What a process of Node.js needs beside the JavaScript heap that its own limit bounds. */
const baseMegabytes = 128
const everyMillis = 200

/**
 * Ends a process that holds far more memory than its heap limit allows, as buffers do. Only where the system tells
 * (Linux); elsewhere the heap limit alone holds.
 */
export function watchMemory(child: ChildProcess, heapMegabytes: number, log: Logger): void {
  const limit = (heapMegabytes + baseMegabytes) * 1024
  if (process.platform !== 'linux' || child.pid === undefined) return
  const status = `/proc/${child.pid}/status`
  const timer = setInterval(async () => {
    const kilobytes = await readFile(status, 'utf8').then(
      (text) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0),
      () => 0,
    )
    if (kilobytes <= limit || child.exitCode !== null) return
    log.error('plug-in holds too much memory and is stopped', { kilobytes, limit })
    child.kill('SIGKILL')
  }, everyMillis)
  timer.unref()
  child.once('exit', () => clearInterval(timer))
}
