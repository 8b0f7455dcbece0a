import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

const maxBytes = 4 << 20

/** Files that objects name, such as a plug-in's code. */
export class NamedFiles {
  /** Digests of what was read, so that a changed file is a changed configuration. */
  readonly used = new Map<string, string>()

  /** Throws with a reason for people when the file cannot be read. */
  read(file: string): string {
    const text = readText(file)
    this.used.set(file, createHash('sha256').update(text).digest('base64url'))
    return text
  }
}

function readText(file: string): string {
  let size: number
  try {
    const found = statSync(file)
    if (!found.isFile()) throw new Error('is not a file')
    size = found.size
    if (size <= maxBytes) return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'does not exist' : `cannot be read (${code ?? String(error)})`
    throw new Error(`${file} ${reason}`, { cause: error })
  }
  throw new Error(`${file} is larger than ${maxBytes} bytes`)
}
