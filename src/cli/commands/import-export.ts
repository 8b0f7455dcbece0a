import { createReadStream, existsSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import process from 'node:process'
import { type CommandOutput, fileProblem, operatorName } from '#cli/command-line/command-line.ts'
import { closeToOthers, databaseUrl } from '#cli/command-line/installation.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { AuditSeal } from '#database/audit-seal.ts'
import { readAddress } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { presentSecretKeys } from '#keys/secret-keys.ts'
import type { ExportHeader } from '#server/move/export-format.ts'
import { type InstallationKeys, importData } from '#server/move/import-data.ts'
import { countsText } from './export.ts'

interface ImportValues {
  readonly data: string
  readonly database: string | undefined
  readonly by: string | undefined
}

/** Reads an export into a new database. Nothing is there if it fails. */
export async function importExport(given: string, values: ImportValues, io: CommandOutput): Promise<void> {
  const name = given === '-' ? 'standard input' : resolve(given)
  const address = databaseUrl(values.database)
  const url = address ?? `sqlite:${resolve(values.data, 'gatehouse.db')}`
  const { dialect, address: file } = readAddress(url)
  closeToOthers(values.data, address, address === undefined)
  const lock = await lockInstance({ url, dataFolder: values.data, waitMillis: 0 })
  const isNew = dialect === 'sqlite' && !existsSync(file)
  const progress = new Progress()
  let isDone = false
  try {
    const { header, counts, audit } = await importData({
      url,
      name,
      input: given === '-' ? process.stdin : readFile(name),
      openKeys: (found) => openKeys(found, values.data, name),
      by: operatorName(values.by),
      onProgress: (rows) => progress.update(`Importing: ${rows} rows`),
    }).finally(() => progress.end())
    isDone = true
    io.result({ file: name, ...header, counts, audit: { checked: audit } })
    io.stdout(`Imported ${name}: the state of ${header.made} of ${header.database}, made by version ${header.version}`)
    io.stdout(countsText(counts))
    io.stdout(`Audit: ${audit} records, all unchanged. An entry about this import follows them`)
    io.stdout('All users sign in again. Start the gateway with the configuration that belongs to the data')
  } finally {
    if (isNew && !isDone) for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true })
    await lock.close?.()
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
