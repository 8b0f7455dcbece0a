import { closeSync, fsyncSync, linkSync, openSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { backup, DatabaseSync } from 'node:sqlite'
import type { AuditKey } from '#database/audit-seal.ts'
import { AuditSeal } from '#database/audit-seal.ts'
import { newId } from '#kernel/ids.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import { isKeyName } from '#protocols/jwt/signing-key.ts'
import { sqliteError } from '#protocols/sql/sqlite.ts'
import { type CopyContents, checkCopy } from './checked-copy.ts'

interface BackupOptions {
  /** The embedded database; a gateway may use it meanwhile. */
  readonly database: string
  readonly file: string
  /** Replace an existing file. */
  readonly replace: boolean
  /** The folder of key files to include; absent for none. */
  readonly keyFolder?: string | undefined
  readonly auditKeys: readonly AuditKey[]
  readonly made: Date
  /** The version of this program. */
  readonly version: string
  readonly onProgress: (done: number, total: number) => void
}

export interface Backup extends CopyContents {
  readonly bytes: number
  /** The names of the key files in it. */
  readonly keys: readonly string[]
}

/** Two tables that only a backup has: what it is, and files of the data folder. */
const ownTables = `
  create table backup_info (name text primary key, value text not null);
  create table backup_files (path text primary key, content text not null);
`
/** Overwrites their pages, which would otherwise keep the keys: a later backup copies unused pages too. */
export const dropOwnTables = `
  pragma secure_delete = on;
  drop table if exists backup_info;
  drop table if exists backup_files;
`
const pagesPerStep = 256

/**
 * Copies a database as it is at one time, while others write to it, and checks the copy. The file appears when it is
 * complete and on disk, readable by its owner only. If anything fails or the process exits early, there is none; a killed
 * process leaves a file that starts with a dot.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { file, replace, keyFolder, auditKeys } = options
  const [firstKey, ...otherKeys] = auditKeys
  const seal = firstKey === undefined ? undefined : new AuditSeal([firstKey, ...otherKeys])
  const draft = join(dirname(file), `.${basename(file)}.${newId()}.tmp`)
  const removeDraft = (): void => {
    for (const ending of ['', '-journal', '-wal', '-shm']) rmSync(draft + ending, { force: true })
  }
  process.once('exit', removeDraft)
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    await copyPages(options, draft)
    const contents = await checkCopy(draft, `the copy of ${options.database}`, seal)
    const keys = keyFolder === undefined ? [] : keyFilesIn(keyFolder)
    addOwnTables(draft, options, keys)
    flush(draft)
    const bytes = statSync(draft).size
    if (replace) renameSync(draft, file)
    else nameNewFile(draft, file)
    flush(dirname(file))
    return { ...contents, bytes, keys }
  } finally {
    removeDraft()
    process.off('exit', removeDraft)
  }
}

/**
 * The source stays in one read transaction: without it, every write of another process would make SQLite start the copy
 * again.
 */
async function copyPages({ database, onProgress }: BackupOptions, draft: string): Promise<void> {
  let source: DatabaseSync | undefined
  try {
    source = new DatabaseSync(database, { readOnly: true })
    source.exec('pragma busy_timeout = 10000; begin; select count(*) from sqlite_schema')
    await backup(source, draft, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) => {
        onProgress(totalPages - remainingPages, totalPages)
      },
    })
  } catch (error) {
    throw sqliteError(error)
  } finally {
    source?.close()
  }
}

function addOwnTables(draft: string, { made, version, keyFolder }: BackupOptions, keys: readonly string[]): void {
  const database = new DatabaseSync(draft)
  try {
    // A database that was copied from a backup by hand has them.
    database.exec(`${dropOwnTables} begin; ${ownTables}`)
    const info = database.prepare('insert into backup_info (name, value) values (?, ?)')
    info.run('made', made.toISOString())
    info.run('version', version)
    const files = database.prepare('insert into backup_files (path, content) values (?, ?)')
    for (const name of keys) files.run(`keys/${name}`, readSmallFileSync(join(keyFolder ?? '', name)))
    database.exec('commit')
  } catch (error) {
    throw sqliteError(error)
  } finally {
    database.close()
  }
}

/** Several codes mean that a file system has no links, as those of some memory sticks and network shares. */
const noLinks: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

/** Gives a draft its name, unless a file has it by now: of two backups to one file, only one succeeds. */
function nameNewFile(draft: string, file: string): void {
  try {
    linkSync(draft, file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') {
      throw new Error(`${file} was created meanwhile, maybe by another backup; choose another file, or add --replace`)
    }
    if (!noLinks.includes(code)) throw error
    // Reserves the name. For an instant the file is empty, which a restore refuses.
    closeSync(openSync(file, 'wx', 0o600))
    renameSync(draft, file)
  }
}

/** Without drafts of keys that are being made. */
export function keyFilesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && isKeyName(entry.name))
      .map(({ name }) => name)
      .sort()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** Waits until a file, or the names in a folder, are on disk. */
export function flush(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
