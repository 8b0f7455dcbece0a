import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { readAddress } from '#database/databases.ts'
import type { Logger } from '#kernel/logger.ts'
import type { OwnPlaces } from '#sdk/host/own-file.ts'

/** The system calls that decide, so that tests can be another user. */
interface FileSystem {
  readonly uid: number
  lstat(path: string): Stats
  chmod(path: string, mode: number): void
}

interface PrivateFileOptions {
  readonly log: Pick<Logger, 'warn'>
  readonly system?: FileSystem
}

const realSystem: FileSystem = { uid: process.getuid?.() ?? 0, lstat: lstatSync, chmod: chmodSync }
const otherUsers = 0o077
const databaseEndings = ['', '-wal', '-shm', '-journal', '.lock'] as const

export function ownPlaces(dataFolder: string, databaseUrl: string | undefined): OwnPlaces {
  const database = databaseUrl === undefined ? undefined : readAddress(databaseUrl)
  return { dataFolder, databaseFile: database?.dialect === 'sqlite' ? database.address : undefined }
}

/**
 * Closes the data folder, its keys and its database to other users, and logs one line that names what was open.
 * Throws an Error if that fails, or if a file belongs to another user than the folder, us or root. Creates an
 * absent folder on request. Also closes an SQLite database elsewhere, as `databaseUrl` names it. The folder comes
 * first: once it is closed, no one can replace its files with links.
 */
export function openDataFolder(
  folder: string,
  options: PrivateFileOptions & { readonly create?: boolean; readonly databaseUrl?: string | undefined },
): void {
  const { log, system = realSystem, create = false, databaseUrl } = options
  const database = databaseUrl === undefined ? undefined : readAddress(databaseUrl)
  if (database?.dialect === 'sqlite') closeDatabaseFile(database.address, options)
  if (create) mkdirSync(folder, { recursive: true, mode: 0o700 })
  const found = statIfPresent(folder, system)
  if (found === undefined) return
  // The operator may name a link; the folder that it points to counts.
  const root = found.isSymbolicLink() ? realpathSync(folder) : folder
  const work = new Closing([system.uid, 0, system.lstat(root).uid], system)
  if (!isVolumeOfPlatform(root, system)) work.close(root, 0o700)
  else if (!work.tryClose(root, 0o700)) {
    log.warn('the data folder is a volume that other users can enter; its keys and database are closed to them', {
      path: root,
    })
  }
  const keys = join(root, 'keys')
  work.close(keys, 0o700)
  for (const name of namesIn(keys)) work.close(join(keys, name), 0o600)
  for (const ending of databaseEndings) work.close(join(root, `gatehouse.db${ending}`), 0o600)
  work.report(log)
}

/** Its folder may contain other things, and stays unchanged. */
function closeDatabaseFile(file: string, { log, system = realSystem }: PrivateFileOptions): void {
  const folder = statIfPresent(dirname(file), system)
  const work = new Closing([system.uid, 0, ...(folder === undefined ? [] : [folder.uid])], system)
  for (const ending of databaseEndings) work.close(`${file}${ending}`, 0o600)
  work.report(log)
}

/**
 * Closes a file with a private key from an operator or a platform, only if it is ours to change. Otherwise it is
 * used unchanged, with a warning if more than its owner and group can read it, or its group can replace it. Follows
 * links, since Kubernetes mounts Secrets that way.
 */
export function protectGivenKey(file: string, { log, system = realSystem }: PrivateFileOptions): void {
  const path = realpathSync(file)
  const found = system.lstat(path)
  if ((found.mode & otherUsers) === 0) return
  const work = new Closing([found.uid], system)
  if (found.uid === system.uid && work.tryClose(path, 0o600)) work.report(log)
  else if ((found.mode & 0o027) !== 0) {
    log.warn('other users can read a private key, and its mode cannot be changed here; use mode 0440 or 0400', {
      path: file,
      mode: modeText(found),
    })
  }
}

/** One pass over files that only their owner may access. */
class Closing {
  readonly #owners: readonly number[]
  readonly #system: FileSystem
  readonly #closed: string[] = []

  /** Rejects files of other owners: a user who could put them here knows their content. */
  constructor(owners: readonly number[], system: FileSystem) {
    this.#owners = owners
    this.#system = system
  }

  /** Does nothing if the file does not exist. */
  close(path: string, mode: 0o600 | 0o700): void {
    const found = statIfPresent(path, this.#system)
    if (found === undefined) return
    if (!this.#owners.includes(found.uid)) {
      throw new Error(
        `${path}: belongs to user ${found.uid}, who may have put it there. Remove it, or give it to its folder's owner`,
      )
    }
    if (found.isSymbolicLink()) {
      this.close(realpathSync(path), mode)
      return
    }
    // A link may point to a device that the whole machine uses.
    if (!found.isFile() && !found.isDirectory()) throw new Error(`${path}: is not a file. Remove it`)
    if ((found.mode & otherUsers) === 0) return
    const problem = `${path}: other users can access it (mode ${modeText(found)}), and its mode cannot be changed here`
    const remedy = `Run "chmod ${mode.toString(8)} ${path}" as its owner`
    try {
      this.#system.chmod(path, mode)
    } catch (cause) {
      // A running gateway removes the log of its database.
      if (statIfPresent(path, this.#system) === undefined) return
      throw new Error(`${problem}: ${cause instanceof Error ? cause.message : cause}. ${remedy}`, { cause })
    }
    const changed = statIfPresent(path, this.#system)
    if (changed !== undefined && (changed.mode & otherUsers) !== 0) {
      throw new Error(
        `${problem}: the file system does not keep modes. Choose another folder, or mount it for this user only`,
      )
    }
    this.#closed.push(`${path} (${modeText(found)})`)
  }

  tryClose(path: string, mode: 0o600 | 0o700): boolean {
    try {
      this.close(path, mode)
      return true
    } catch {
      return false
    }
  }

  report(log: Pick<Logger, 'warn'>): void {
    if (this.#closed.length === 0) return
    log.warn('other users could access private files; they no longer can. Replace keys that someone may have copied', {
      paths: this.#closed,
    })
  }
}

/** Container platforms own the root of a volume and open it to the group of the process. */
const isVolumeOfPlatform = (folder: string, system: FileSystem): boolean => {
  const { uid, dev } = system.lstat(folder)
  return uid === 0 && dev !== system.lstat(dirname(folder)).dev
}

function statIfPresent(path: string, { lstat }: FileSystem): Stats | undefined {
  try {
    return lstat(path)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [] : [entry.name]))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

const modeText = ({ mode }: Stats): string => (mode & 0o7777).toString(8).padStart(4, '0')
