import { constants, type Stats } from 'node:fs'
import { access, type FileHandle, lstat, mkdir, open, realpath, rename, stat, unlink } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isJsonObject } from '#kernel/json.ts'
import { type AuditSink, defineAuditSink, type SinkOutcome, type SinkRecord } from '#sdk/audit/audit-sink.ts'
import { type OwnPlaces, ownFile } from '#sdk/host/own-file.ts'
import { text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const megabyte = 1_000_000

const parameters = {
  file: text({
    about:
      'The file, relative to the data folder. It and its folder are created, readable by their owner only. It must not be one of the gateway’s own files.',
    required: true,
  }),
  maxMegabytes: wholeNumber({
    about: 'At this size, the file is renamed to `<file>.1`, that one to `<file>.2` and so on, and a new file starts.',
    fallback: 100,
    min: 1,
    max: 100_000,
  }),
  maxFiles: wholeNumber({
    about: 'Number of files to keep, including the current one. Older files are deleted.',
    fallback: 10,
    min: 1,
    max: 1000,
  }),
}

/** Writes the audit to a file of JSON Lines. */
export default defineAuditSink({
  className: 'auditSinks.File',
  parameters,
  parse: (params, issues, context) => {
    const config = readParameters(parameters, params, issues, context)
    const own = config.file === '' ? undefined : context.ownFile?.(config.file)
    if (own !== undefined) issues.error(params.pathOf('file'), refusal(config.file, own))
    return config
  },
  create: ({ file, maxMegabytes, maxFiles }, places) => new FileSink(file, places, maxMegabytes * megabyte, maxFiles),
})

const refusal = (file: string, own: string): string =>
  `"${file}" leads to ${own}, which is the gateway’s own. Use another folder, such as audit/audit.jsonl`

class FileSink implements AuditSink {
  readonly settleMillis = 0
  readonly #path: string
  readonly #places: OwnPlaces
  readonly #maxBytes: number
  readonly #maxFiles: number
  #file: { readonly handle: FileHandle; readonly path: string; readonly inode: number; size: number } | undefined

  constructor(file: string, places: OwnPlaces, maxBytes: number, maxFiles: number) {
    this.#path = resolve(places.dataFolder, file)
    this.#places = places
    this.#maxBytes = maxBytes
    this.#maxFiles = maxFiles
  }

  async send(records: readonly SinkRecord[]): Promise<SinkOutcome> {
    try {
      const bytes = Buffer.from(records.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join(''))
      let file = await this.#opened()
      if (file.size > 0 && file.size + bytes.length > this.#maxBytes) {
        await this.#rotate(file.path)
        file = await this.#opened()
      }
      await file.handle.appendFile(bytes)
      await file.handle.datasync()
      file.size += bytes.length
      return { kind: 'accepted' }
    } catch (error) {
      await this.close()
      return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) }
    }
  }

  /** A file must be ours and writable; otherwise its folder, or the closest one above it that exists. */
  async problem(): Promise<string | undefined> {
    try {
      this.#checkPlace()
      const found = await stat(this.#path).catch(ignoreAbsent)
      if (found === undefined) await access(await existingFolder(this.#path), constants.W_OK | constants.X_OK)
      else {
        await checkFile(this.#path, found)
        await access(this.#path, constants.W_OK)
      }
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  async close(): Promise<void> {
    const file = this.#file
    this.#file = undefined
    await file?.handle.close().catch(() => {})
  }

  /** Another program may have renamed or removed the file since. */
  async #opened() {
    if (this.#file !== undefined) {
      const found = await stat(this.#path).catch(() => undefined)
      if (found?.ino === this.#file.inode) return this.#file
      await this.close()
    }
    this.#checkPlace()
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const handle = await open(this.#path, 'a+', 0o600)
    try {
      // A full pipe would block a thread of the process at each try.
      if (!(await handle.stat()).isFile()) throw foreign(this.#path)
      await checkWritten(handle, this.#path)
      const size = await cutPartialLine(handle)
      // Where the name is a link, rotated files are beside the file that it leads to.
      this.#file = { handle, path: await realpath(this.#path), inode: (await handle.stat()).ino, size }
      return this.#file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** Throws an Error for the gateway's own file: links may have changed since the configuration was loaded. */
  #checkPlace(): void {
    const own = ownFile(this.#path, this.#places)
    if (own !== undefined) throw new Error(refusal(this.#path, own))
  }

  /** `<file>` becomes `<file>.1`, that `<file>.2`, and so on. Moves nothing where a name belongs to another program's file. */
  async #rotate(path: string): Promise<void> {
    await this.close()
    const name = (number: number): string => (number === 0 ? path : `${path}.${number}`)
    const last = this.#maxFiles - 1
    for (let number = 1; number <= last; number++) await checkRotated(name(number))
    await unlink(name(last)).catch(ignoreAbsent)
    for (let number = last - 1; number >= 0; number--) await rename(name(number), name(number + 1)).catch(ignoreAbsent)
  }
}

const ignoreAbsent = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
}

/** Throws an Error for a file that no audit sink or anchor wrote. A missing file is fine. */
async function checkRotated(path: string): Promise<void> {
  const found = await lstat(path).catch(ignoreAbsent)
  if (found !== undefined) await checkFile(path, found)
}

/** Throws an Error for anything but a file that an audit sink or anchor wrote. */
async function checkFile(path: string, found: Stats): Promise<void> {
  if (!found.isFile()) throw foreign(path)
  const handle = await open(path, 'r')
  try {
    await checkWritten(handle, path)
  } finally {
    await handle.close()
  }
}

/** The folder of a file that will be created: the closest one above it that exists. */
async function existingFolder(path: string): Promise<string> {
  const folder = dirname(path)
  const found = await stat(folder).catch(ignoreAbsent)
  if (found === undefined) return existingFolder(folder)
  if (!found.isDirectory()) throw new Error(`${folder} is not a folder`)
  return folder
}

const foreign = (path: string): Error =>
  new Error(`${path} was not written by an audit sink. Move it elsewhere, or choose another file`)

/** The first line decides: a record with its link, or an anchor. A crash may have left only a part of it. */
async function checkWritten(handle: FileHandle, path: string): Promise<void> {
  const { size } = await handle.stat()
  const start = Buffer.alloc(Math.min(size, longestLine))
  const { bytesRead } = await handle.read(start, 0, start.length, 0)
  const newline = start.subarray(0, bytesRead).indexOf(0x0a)
  const line = start.toString('utf8', 0, newline < 0 ? bytesRead : newline)
  if (newline < 0 ? !beginnings.some((known) => isBeginning(line, known)) : !isAuditLine(line)) throw foreign(path)
}

/** More than a batch of records has. */
const longestLine = 4 * megabyte
const beginnings = ['{"id":', '{"time":']
const isBeginning = (line: string, known: string): boolean => line.startsWith(known) || known.startsWith(line)

function isAuditLine(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line)
    return isJsonObject(value) && (isJsonObject(value['record']) || typeof value['mac'] === 'string')
  } catch {
    return false
  }
}

/** Cuts a partial line that a crash left, since the sink writes it again as a whole. Returns the size of the rest. */
async function cutPartialLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat()
  const chunk = Buffer.alloc(64 * 1024)
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length)
    const { bytesRead } = await handle.read(chunk, 0, end - start, start)
    const newline = chunk.subarray(0, bytesRead).lastIndexOf(0x0a)
    if (newline >= 0 || start === 0) {
      const whole = newline < 0 ? 0 : start + newline + 1
      if (whole < size) await handle.truncate(whole)
      return whole
    }
    end = start
  }
  return 0
}
