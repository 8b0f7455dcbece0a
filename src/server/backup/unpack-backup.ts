import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { constants, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isKeyName } from '#protocols/jwt/signing-key.ts'
import { dropOwnTables } from './backup.ts'
import { DamagedCopy } from './checked-copy.ts'

/** What a backup says about itself. A copy that another program made says nothing. */
interface BackupInfo {
  readonly made: Date | undefined
  /** The version of the program that made it, if it is one. */
  readonly version: string | undefined
  /** The names of the key files that were in it. */
  readonly keys: readonly string[]
}

/**
 * Copies a backup to `gatehouse.db` in an empty folder, and its key files to `keys/`, without checking it. The file of
 * the backup stays as it is. Throws DamagedCopy for a file that is not a database.
 */
export async function unpackBackup(file: string, folder: string): Promise<BackupInfo> {
  // A pipe or a device may have no end.
  if (!statSync(file).isFile()) throw new DamagedCopy(`${file} is not a file`)
  if (existsSync(`${file}-wal`) && statSync(`${file}-wal`).size > 0) {
    throw new DamagedCopy(
      `${file} is a database in use: its latest changes are in ${file}-wal. Make a backup with "gatehouse backup"`,
    )
  }
  if (existsSync(`${file}-journal`) && statSync(`${file}-journal`).size > 0) {
    throw new DamagedCopy(
      `${file} is not complete: the program that wrote it was ended, as ${file}-journal shows. Use another backup`,
    )
  }
  const database = join(folder, 'gatehouse.db')
  await copyFile(file, database, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  chmodSync(database, 0o600)
  const opened = new DatabaseSync(database)
  try {
    const tables = opened.prepare("select name from sqlite_schema where type = 'table'").all()
    const has = (table: string): boolean => tables.some(({ name }) => name === table)
    const info = new Map(has('backup_info') ? pairs(opened, 'select name, value from backup_info') : [])
    const files = has('backup_files') ? pairs(opened, 'select path, content from backup_files order by path') : []
    const keys = files.map(([path, content]) => ({ name: keyFileName(path, file), content }))
    if (keys.length > 0) mkdirSync(join(folder, 'keys'), { mode: 0o700 })
    for (const { name, content } of keys) {
      writeFileSync(join(folder, 'keys', name), content, { mode: 0o600, flag: 'wx', flush: true })
    }
    opened.exec(dropOwnTables)
    const made = new Date(info.get('made') ?? Number.NaN)
    return {
      made: Number.isNaN(made.getTime()) ? undefined : made,
      // It is printed, so it must not contain what a terminal interprets.
      version: /^[\w.+-]{1,100}$/.exec(info.get('version') ?? '')?.[0],
      keys: keys.map(({ name }) => name),
    }
  } catch (error) {
    if (error instanceof DamagedCopy) throw error
    throw new DamagedCopy(
      `${file} is not an SQLite database, or is damaged: ${error instanceof Error ? error.message : error}`,
    )
  } finally {
    opened.close()
  }
}

const pairs = (database: DatabaseSync, sql: string): [string, string][] =>
  database
    .prepare(sql)
    .all()
    .map((row) => Object.values(row).map(String) as [string, string])

/** A path that leads elsewhere did not come from us. */
function keyFileName(path: string, file: string): string {
  const [folder, name = '', ...rest] = path.split('/')
  if (folder !== 'keys' || !isKeyName(name) || rest.length > 0) {
    throw new DamagedCopy(`${file} contains a file with the path "${path}", which "gatehouse backup" never writes`)
  }
  return name
}
