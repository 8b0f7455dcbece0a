import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { promisify } from 'node:util'

export const mostLines = 2_000
const mostBytes = 4 << 20

/** The last lines of a file. Throws if it can't be read. */
export async function lastLines(file: string): Promise<string[]> {
  // Otherwise a named pipe without a writer would be waited for.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const found = await handle.stat()
    if (!found.isFile() && !found.isDirectory()) throw new Error('it is not a file')
    const { size } = found
    const length = Math.min(size, mostBytes)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length)
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n')
    // The first one may have begun before what was read, and what hides a secret could miss a part of it.
    return lines.slice(size > length ? 1 : 0).slice(-mostLines)
  } finally {
    await handle.close()
  }
}

/** The last lines of a unit of systemd. Throws if there is no journal, or it can't be read. */
export async function journalLines(unit: string): Promise<string[]> {
  const args = ['--unit', unit, '--lines', String(mostLines), '--output', 'cat', '--no-pager', '--quiet']
  const { stdout } = await promisify(execFile)('journalctl', args, { maxBuffer: 4 * mostBytes, timeout: 30_000 })
  return stdout.split('\n')
}
