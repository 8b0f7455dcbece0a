import { type FileHandle, mkdir, open, rename, stat, unlink } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type AuditSink, defineAuditSink, type SinkOutcome, type SinkRecord } from '#sdk/audit-sink.ts'
import { text, wholeNumber } from '#sdk/parameter-types.ts'
import { readParameters } from '#sdk/parameters.ts'

const megabyte = 1_000_000

const parameters = {
  file: text({
    about: 'The file, relative to the data folder. It and its folder are created, readable by their owner only.',
    required: true,
  }),
  maxMegabytes: wholeNumber({
    about: 'From this size on, the file is renamed to `<file>.1`, and a new one is begun.',
    fallback: 100,
    min: 1,
    max: 100_000,
  }),
  maxFiles: wholeNumber({
    about: 'How many files are kept, the current one included. Older ones are removed.',
    fallback: 10,
    min: 1,
    max: 1000,
  }),
}

/** Writes the audit to a file of JSON Lines. */
export default defineAuditSink({
  className: 'auditSinks.File',
  parameters,
  parse: (params, issues, context) => readParameters(parameters, params, issues, context),
  create: ({ file, maxMegabytes, maxFiles }, { dataFolder }) =>
    new FileSink(resolve(dataFolder, file), maxMegabytes * megabyte, maxFiles),
})

class FileSink implements AuditSink {
  readonly settleMillis = 0
  readonly #path: string
  readonly #maxBytes: number
  readonly #maxFiles: number
  #file: { readonly handle: FileHandle; readonly inode: number; size: number } | undefined

  constructor(path: string, maxBytes: number, maxFiles: number) {
    this.#path = path
    this.#maxBytes = maxBytes
    this.#maxFiles = maxFiles
  }

  async send(records: readonly SinkRecord[]): Promise<SinkOutcome> {
    try {
      const bytes = Buffer.from(records.flatMap(({ lines }) => lines.map((line) => `${line}\n`)).join(''))
      let file = await this.#opened()
      if (file.size > 0 && file.size + bytes.length > this.#maxBytes) {
        await this.#rotate()
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
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const handle = await open(this.#path, 'a+', 0o600)
    try {
      const size = await cutPartialLine(handle)
      this.#file = { handle, inode: (await handle.stat()).ino, size }
      return this.#file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** `<file>` becomes `<file>.1`, that `<file>.2`, and so on. */
  async #rotate(): Promise<void> {
    await this.close()
    const name = (number: number): string => (number === 0 ? this.#path : `${this.#path}.${number}`)
    const last = this.#maxFiles - 1
    await unlink(name(last)).catch(ignoreAbsent)
    for (let number = last - 1; number >= 0; number--) await rename(name(number), name(number + 1)).catch(ignoreAbsent)
  }
}

const ignoreAbsent = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}

/** A crash may have left a part of a line, which comes again as a whole; the size of the rest. */
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
