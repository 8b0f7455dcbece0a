import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'

const mostBytes = 1024 * 1024
const withoutBlocking = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * Returns the text of a regular file of at most 1 MiB, such as a key, a certificate or a token. Opens it without
 * blocking: a named pipe without a writer would occupy a thread forever and delay the end of the process.
 */
export async function readSmallFile(path: string): Promise<string> {
  const handle = await open(path, withoutBlocking)
  try {
    assertSmall(path, await handle.stat())
    return await handle.readFile('utf8')
  } finally {
    await handle.close()
  }
}

/** Like `readSmallFile`, but undefined if there is no file of that name. */
export async function readSmallFileIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readSmallFile(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Like `readSmallFile`, for callers that can't wait. */
export function readSmallFileSync(path: string): string {
  const file = openSync(path, withoutBlocking)
  try {
    assertSmall(path, fstatSync(file))
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

function assertSmall(path: string, found: Stats): void {
  if (!found.isFile()) throw new Error(`${path} is not a file`)
  if (found.size > mostBytes) throw new Error(`${path} is larger than ${mostBytes} bytes`)
}
