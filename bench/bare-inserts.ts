import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The limit that SCIM writes are measured against: durable inserts of one row each, one after the other, per second. */
export function bareInserts(folder: string, seconds: number): number {
  const inside = mkdtempSync(join(folder, 'bare-'))
  const database = new DatabaseSync(join(inside, 'bare.db'))
  database.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table t (id integer primary key, body text)',
  )
  const insert = database.prepare('insert into t (body) values (?)')
  const body = 'x'.repeat(300)
  const started = performance.now()
  let count = 0
  while (performance.now() - started < seconds * 1000) {
    insert.run(body)
    count++
  }
  const perSecond = count / ((performance.now() - started) / 1000)
  database.close()
  rmSync(inside, { recursive: true, force: true })
  return perSecond
}
