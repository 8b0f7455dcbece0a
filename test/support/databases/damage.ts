import { closeSync, openSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Overwrites the first page of a table in an SQLite file that is closed, as a bad disk would. */
export function damageTable(file: string, table: string): void {
  const database = new DatabaseSync(file)
  const row = database.prepare('select rootpage from sqlite_schema where name = ?').get(table)
  database.close()
  const page = 4096
  const opened = openSync(file, 'r+')
  writeSync(opened, Buffer.alloc(page, 0xa5), 0, page, (Number(row?.['rootpage']) - 1) * page)
  closeSync(opened)
}
