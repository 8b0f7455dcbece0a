import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { type CommandOutput, checkFile, fileProblem, operatorName } from '#cli/command-line/command-line.ts'
import { closeToOthers, databaseUrl } from '#cli/command-line/installation.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { AuditSeal } from '#database/audit-seal.ts'
import { readAddress } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { newId } from '#kernel/ids.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { presentSecretKeys } from '#keys/secret-keys.ts'
import { flush } from '#server/backup/backup.ts'
import { isLeftover, stagingFolder } from '#server/backup/staging-folder.ts'
import type { ExportHeader } from '#server/move/export-format.ts'
import { type InstallationKeys, importData } from '#server/move/import-data.ts'
import { countsText } from './export.ts'

interface ImportValues {
  readonly data: string
  readonly database: string | undefined
  readonly by: string | undefined
}

/** Reads an export into a new database. Nothing is there if it fails or is killed. */
export async function importExport(given: string, values: ImportValues, io: CommandOutput): Promise<void> {
  const name = given === '-' ? 'standard input' : resolve(given)
  // A mistyped name must not leave a data folder behind.
  if (given !== '-') checkFile(name)
  const address = databaseUrl(values.database)
  const url = address ?? `sqlite:${resolve(values.data, 'gatehouse.db')}`
  closeToOthers(values.data, address, address === undefined)
  const lock = await lockInstance({ url, dataFolder: values.data, waitMillis: 0 })
  const progress = new Progress()
  try {
    const { header, counts, audit } = await intoNewFile(url, (url) =>
      importData({
        url,
        name,
        input: given === '-' ? process.stdin : readFile(name),
        openKeys: (found) => openKeys(found, values.data, name),
        by: operatorName(values.by),
        onProgress: (rows) => progress.update(`Importing: ${rows} rows`),
      }).finally(() => progress.end()),
    )
    io.result({ file: name, ...header, counts, audit: { checked: audit } })
    io.stdout(`Imported ${name}: the state of ${header.made} of ${header.database}, made by version ${header.version}`)
    io.stdout(countsText(counts))
    io.stdout(`Audit: ${audit} records, all unchanged. An entry about this import follows them`)
    io.stdout('All users sign in again. Start the gateway with the configuration that belongs to the data')
  } finally {
    await lock.close?.()
  }
}

/** A new file of SQLite gets its name as the last step, so that no command ever finds one without tables. */
async function intoNewFile<T>(url: string, work: (url: string) => Promise<T>): Promise<T> {
  const { dialect, address } = readAddress(url)
  if (dialect !== 'sqlite' || existsSync(address)) return work(url)
  const folder = dirname(address)
  for (const name of readdirSync(folder)) if (isLeftover(name)) rmSync(join(folder, name), { recursive: true })
  const staging = stagingFolder('import', folder, newId())
  mkdirSync(staging, { mode: 0o700 })
  try {
    const file = join(staging, 'gatehouse.db')
    const result = await work(`sqlite:${file}`)
    // Its last connection moves the log into the database, and reports nothing if that fails.
    if (existsSync(`${file}-wal`)) {
      throw new Error('the database could not be completed: the disk is full, or another program has it open')
    }
    flush(file)
    renameSync(file, address)
    flush(folder)
    return result
  } finally {
    rmSync(staging, { recursive: true, force: true })
  }
}

async function* readFile(file: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) yield chunk as Buffer
  } catch (error) {
    throw new Error(fileProblem(file, error))
  }
}

async function openKeys(header: ExportHeader, dataFolder: string, name: string): Promise<InstallationKeys> {
  const source = { environment: process.env, dataFolder }
  const secret = await presentSecretKeys(source)
  if (!secret.some(({ id }) => id === header.key)) {
    const present = secret.map(({ id }) => id).join(', ') || 'none'
    throw new Error(
      `${name} needs the key ${header.key}, and this installation has ${present}: set GATEHOUSE_SECRET_KEY as for that gateway, or copy its keys/ into ${dataFolder}`,
    )
  }
  const [first, ...others] = await loadAuditKeys(source, 'command')
  return { secret, seal: first === undefined ? undefined : new AuditSeal([first, ...others]) }
}
