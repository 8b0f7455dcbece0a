import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/** The program of the thread that reads a database file, one table with its indexes at a time; it posts the first damage, or undefined. */

const database = new DatabaseSync(workerData as string, { readOnly: true, timeout: 10_000 })
const tables = database.prepare("select name from sqlite_schema where type = 'table'").all()
const check = database.prepare('select quick_check as found from pragma_quick_check(?)')
let damage: string | undefined
for (const { name } of tables) {
  const started = performance.now()
  const found = String(check.get(String(name))?.['found'] ?? 'ok')
  if (found !== 'ok') damage = `${name}: ${found}`
  if (damage !== undefined) break
  // Half of the disk's time is for others.
  await delay(performance.now() - started)
}
database.close()
parentPort?.postMessage(damage)
