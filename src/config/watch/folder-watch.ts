import { createHash } from 'node:crypto'
import { type FSWatcher, watch } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type LoadOptions, type LoadResult, loadConfiguration, secretsFolder } from '#config/load/load.ts'

interface WatchOptions extends LoadOptions {
  /** The hash of the known configuration; a result with the same hash is not reported. */
  readonly hash: string
  /** How long the folder must be unchanged before it is read. */
  readonly quietMillis?: number
  /** How often to poll without events. */
  readonly pollMillis?: number
  onChange(result: LoadResult): Promise<void> | void
  onError(error: unknown): void
}

export interface ConfigWatch {
  /** Resolves when nothing is read or reported any more. */
  close(): Promise<void>
}

const maxEntries = 20_000
/** How often a folder that changes while it is read is read again before the result counts. */
const mostRereads = 5
const maxDepth = 16

/**
 * Watches the configuration and secrets folders. File system events only make it look sooner: a stamp of everything
 * in the folders decides, so that renames by editors, links swapped by Kubernetes and folders that disappear and
 * return are all seen, at the latest by the next poll. Reports one result at a time, and only if the content
 * changed.
 */
export function watchConfiguration(options: WatchOptions): ConfigWatch {
  const watching = new FolderWatch(options)
  watching.start()
  return watching
}

class FolderWatch implements ConfigWatch {
  readonly #options: WatchOptions
  readonly #quietMillis: number
  readonly #pollMillis: number
  readonly #folders: readonly string[]
  readonly #events: FolderEvents
  #isStopping = false
  #lastStamp: string | undefined
  #lastHash: string
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isDirty = false
  #rereads = 0

  constructor(options: WatchOptions) {
    const { quietMillis = 150, pollMillis = 2_000 } = options
    this.#options = options
    this.#quietMillis = quietMillis
    this.#pollMillis = pollMillis
    this.#folders = [options.folder, secretsFolder(options)]
    this.#events = new FolderEvents(this.#folders, () => this.#changed())
    this.#lastHash = options.hash
  }

  start(): void {
    this.#lookIn(0)
  }

  async close(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#timer)
    await this.#running
    this.#events.close()
  }

  #lookIn(millis: number): void {
    if (this.#isStopping) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      this.#running = this.#look()
        .catch(this.#options.onError)
        .finally(() => {
          this.#running = undefined
          const soon = this.#isDirty
          this.#isDirty = false
          this.#lookIn(soon ? this.#quietMillis : this.#pollMillis)
        })
    }, millis)
    this.#timer.unref()
  }

  #changed(): void {
    if (this.#running === undefined) this.#lookIn(this.#quietMillis)
    else this.#isDirty = true
  }

  async #look(): Promise<void> {
    this.#events.listen()
    const stamp = await stampOf(this.#folders)
    if (stamp === this.#lastStamp || this.#isStopping) return
    const isReplaced = folderPart(stamp) !== folderPart(this.#lastStamp)
    const result = await loadConfiguration(this.#options)
    // Otherwise some of its files could be older than others.
    if (this.#rereads < mostRereads && (await stampOf(this.#folders)) !== stamp) {
      this.#rereads++
      this.#isDirty = true
      return
    }
    this.#rereads = 0
    this.#lastStamp = stamp
    if (isReplaced) {
      this.#events.close()
      this.#events.listen()
    }
    if (result.hash === this.#lastHash || this.#isStopping) return
    this.#lastHash = result.hash
    await this.#options.onChange(result)
  }
}

/** What the file system reports about the folders: too little to rely on. */
class FolderEvents {
  readonly #folders: readonly string[]
  readonly #onEvent: () => void
  readonly #watchers = new Map<string, FSWatcher>()

  constructor(folders: readonly string[], onEvent: () => void) {
    this.#folders = folders
    this.#onEvent = onEvent
  }

  /** Creates the watchers that failed, or whose folder disappeared, again. */
  listen(): void {
    for (const folder of this.#folders) {
      if (this.#watchers.has(folder)) continue
      try {
        const watcher = watch(folder, { recursive: true, persistent: false }, this.#onEvent)
        watcher.on('error', () => {
          this.#watchers.delete(folder)
          watcher.close()
        })
        this.#watchers.set(folder, watcher)
      } catch {
        // Absent or not watchable: the poll sees it later.
      }
    }
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }
}

const folderPart = (stamp: string | undefined): string | undefined => stamp?.slice(0, stamp.indexOf('\n'))

/** Names, sizes and times of everything in the folders, links followed; the first line names the folders themselves. */
async function stampOf(folders: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  const seen = new Set<string>()
  const identities: string[] = []
  let left = maxEntries

  async function visit(path: string, depth: number): Promise<void> {
    if (--left < 0 || depth > maxDepth) return
    const found = await stat(path, { bigint: true }).catch(() => undefined)
    if (depth === 0) identities.push(`${found?.dev}:${found?.ino}`)
    if (found === undefined) return
    hash.update(JSON.stringify([path, String(found.ino), String(found.size), String(found.mtimeNs)]))
    if (!found.isDirectory()) return
    const real = await realpath(path).catch(() => path)
    if (seen.has(real)) return
    seen.add(real)
    const entries = await readdir(path).catch(() => [])
    for (const entry of entries.sort()) if (!entry.startsWith('.')) await visit(join(path, entry), depth + 1)
  }

  for (const folder of folders) await visit(folder, 0)
  return `${identities.join(' ')}\n${hash.digest('base64url')}`
}
