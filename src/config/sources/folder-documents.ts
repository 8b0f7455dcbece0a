import { createHash, createPublicKey } from 'node:crypto'
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readSmallFileIfPresent } from '#kernel/small-file.ts'

export interface SourceFile {
  /** Relative to the folder, with `/`. */
  readonly name: string
  readonly text: string
  /** An object of a cluster: no one has seen this text, so problems have no lines. */
  readonly isObject?: boolean
}

export interface SourceProblem {
  readonly name: string
  readonly message: string
  /** Nothing can be served with it: it is unknown what the configuration is. */
  readonly whole?: boolean
}

/** The content of a configuration, before it is parsed. */
export interface Sources {
  /** Its source, for people; a folder if absent. */
  readonly origin?: string
  /** Sorted by name. */
  readonly files: readonly SourceFile[]
  /** Files of `set-aside/`, sorted by name: only the addresses of their applications count. */
  readonly reserved?: readonly SourceFile[]
  /** Names of the keys in `keys/`, with a digest of their files. */
  readonly keys: ReadonlyMap<string, string>
  readonly problems: readonly SourceProblem[]
}

interface DirectoryLimits {
  readonly files: number
  readonly fileBytes: number
  readonly totalBytes: number
  readonly depth: number
}

const defaultLimits: DirectoryLimits = { files: 5_000, fileBytes: 4 << 20, totalBytes: 64 << 20, depth: 16 }
const keyFile = /^(.+)\.(?:pem|crt|key)$/
const notConfiguration = new Set(['keys', 'secrets'])
const reservedFile = /^set-aside\//

/**
 * Reads every `.yaml` and `.yml` file of the folder and its sub-folders; skips hidden names, and `keys/` and `secrets/`
 * at the top. Follows links, each folder once. Never throws: what can't be read is a problem, reported with everything
 * else.
 */
export async function readDirectory(folder: string, limits: DirectoryLimits = defaultLimits): Promise<Sources> {
  const files: SourceFile[] = []
  const problems: SourceProblem[] = []
  const seen = new Set<string>()
  let bytes = 0
  let full = false

  async function visitFolder(name: string, depth: number): Promise<void> {
    const entries = await attempt(name, async () => {
      const real = await realpath(join(folder, name))
      if (seen.has(real)) return []
      seen.add(real)
      return (await readdir(real)).sort()
    })
    for (const entry of entries ?? []) {
      if (entry.startsWith('.') || (depth === 0 && notConfiguration.has(entry))) continue
      await visitEntry(name === '' ? entry : `${name}/${entry}`, depth + 1)
    }
  }

  async function visitEntry(name: string, depth: number): Promise<void> {
    const found = await attempt(name, () => stat(join(folder, name)))
    if (found === undefined) return
    if (found.isDirectory()) {
      if (depth > limits.depth) problems.push({ name, message: `folders are nested deeper than ${limits.depth}` })
      else await visitFolder(name, depth)
    } else if (found.isFile() && /\.ya?ml$/.test(name)) {
      await visitFile(name, found.size)
    }
  }

  async function visitFile(name: string, size: number): Promise<void> {
    if (full) return
    if (size > limits.fileBytes) {
      problems.push({ name, message: `is larger than ${limits.fileBytes} bytes` })
      return
    }
    bytes += size
    if (files.length >= limits.files || bytes > limits.totalBytes) {
      full = true
      const most = `${limits.files} files or ${limits.totalBytes} bytes`
      const message = `the folder holds more than ${most}: this and later files are not read`
      problems.push({ name, message, whole: true })
      return
    }
    const content = await attempt(name, () => readFile(join(folder, name)))
    if (content === undefined) return
    try {
      files.push({ name, text: new TextDecoder('utf-8', { fatal: true }).decode(content) })
    } catch {
      problems.push({ name, message: 'is not UTF-8 text' })
    }
  }

  async function attempt<T>(name: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      if (name === '') problems.push({ name: folder, message: readFailure(error), whole: true })
      else problems.push({ name, message: readFailure(error) })
      return undefined
    }
  }

  await visitFolder('', 0)
  return {
    files: files.filter(({ name }) => !reservedFile.test(name)),
    reserved: files.filter(({ name }) => reservedFile.test(name)),
    keys: await readKeys(join(folder, 'keys'), problems, limits),
    problems,
  }
}

/** An absent folder has no keys. A file without a key is a problem, even if nothing names it; what does is set aside. */
export async function readKeys(
  folder: string,
  problems: SourceProblem[],
  limits: DirectoryLimits = defaultLimits,
): Promise<Map<string, string>> {
  const keys = new Map<string, string>()
  const entries = await readdir(folder).catch(() => [])
  for (const entry of entries.sort().slice(0, limits.files)) {
    const name = keyFile.exec(entry)?.[1]
    if (name === undefined || entry.startsWith('.')) continue
    const path = join(folder, entry)
    const content = await readSmallFileIfPresent(path).catch((error: unknown) => {
      problems.push({ name: `keys/${entry}`, message: readFailure(error, path) })
      return undefined
    })
    if (content === undefined) continue
    if (!holdsKey(content)) {
      problems.push({ name: `keys/${entry}`, message: 'holds neither a certificate nor a key in PEM form' })
      continue
    }
    const digest = createHash('sha256')
      .update(`${keys.get(name) ?? ''}${entry}\0`)
      .update(content)
      .digest('base64url')
    keys.set(name, digest)
  }
  return keys
}

function holdsKey(content: string): boolean {
  try {
    createPublicKey(content)
    return true
  } catch {
    return false
  }
}

const failureTexts: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'is not a folder',
  EACCES: 'may not be read',
  EPERM: 'may not be read',
  ELOOP: 'is a link that leads to itself',
}

function readFailure(error: unknown, path = ''): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === '' && path !== '' && message.startsWith(`${path} `)) return message.slice(path.length + 1)
  return failureTexts[code] ?? `cannot be read (${code === '' ? String(error) : code})`
}
