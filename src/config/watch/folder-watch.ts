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
  const { quietMillis = 150, pollMillis = 2_000 } = options
  const folders = [options.folder, secretsFolder(options)]
  const stopping = new AbortController()
  const watchers = new Map<string, FSWatcher>()
  let lastStamp: string | undefined
  let lastHash = options.hash
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isDirty = false
  let rereads = 0

  function lookIn(millis: number): void {
    if (stopping.signal.aborted) return
    clearTimeout(timer)
    timer = setTimeout(() => {
      running = look()
        .catch(options.onError)
        .finally(() => {
          running = undefined
          const soon = isDirty
          isDirty = false
          lookIn(soon ? quietMillis : pollMillis)
        })
    }, millis)
    timer.unref()
  }

  function changed(): void {
    if (running === undefined) lookIn(quietMillis)
    else isDirty = true
  }

  /** A watcher that failed, or whose folder disappeared, is created again at the next look. */
  function keepWatching(): void {
    for (const folder of folders) {
      if (watchers.has(folder)) continue
      try {
        const watcher = watch(folder, { recursive: true, persistent: false }, changed)
        const drop = () => {
          watchers.delete(folder)
          watcher.close()
        }
        watcher.on('error', drop)
        watchers.set(folder, watcher)
      } catch {
        // Absent or not watchable: the poll sees it later.
      }
    }
  }

  async function look(): Promise<void> {
    keepWatching()
    const stamp = await stampOf(folders)
    if (stamp === lastStamp || stopping.signal.aborted) return
    const isReplaced = folderPart(stamp) !== folderPart(lastStamp)
    const result = await loadConfiguration(options)
    // Otherwise some of its files could be older than others.
    if (rereads < mostRereads && (await stampOf(folders)) !== stamp) {
      rereads++
      isDirty = true
      return
    }
    rereads = 0
    lastStamp = stamp
    if (isReplaced) dropWatchers()
    if (result.hash === lastHash || stopping.signal.aborted) return
    lastHash = result.hash
    await options.onChange(result)
  }

  function dropWatchers(): void {
    for (const watcher of watchers.values()) watcher.close()
    watchers.clear()
    keepWatching()
  }

  lookIn(0)
  return {
    async close() {
      stopping.abort()
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
      await running
    },
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
