import { closeSync, existsSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { type CommandOutput, defineCommand, type Values, WrongUsage } from '#cli/command-line/command-line.ts'
import { closeToOthers, databaseUrl } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { readAddress } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { Closable } from '#kernel/scope.ts'
import { presentSecretKeys } from '#keys/secret-keys.ts'
import { flush } from '#server/backup/backup.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { type Exported, exportData, type LeftOut } from '#server/move/export-data.ts'

const options = {
  ...databaseOptions,
  'leave-unfinished': { about: 'Export although runs, mails or events are not finished; they are left out' },
  replace: { about: 'Replace FILE if it exists' },
  ...outputOption,
} as const
type ExportValues = Values<typeof options>

export const exportCommand = defineCommand({
  name: 'export',
  about: `Write users, groups, grants, keys and the audit of a gateway to a file that "gatehouse import FILE" reads into a new
database: of another kind, or of another version.`,
  usage: 'FILE [options]',
  arguments: ['FILE'],
  options,
  notes: `Stop the gateway before, since what changes afterwards is not in the file. "-" writes to standard output.
The file contains password hashes and the audit, and has mode 600. Secrets stay encrypted: the import needs the same key.
Left out: sessions and tokens, runs that have not ended, mails and events on their way, the journal.
Exit code 3: a version that this one doesn't know wrote the database.`,
  examples: [
    'gatehouse export gatehouse.jsonl --data /var/lib/gatehouse',
    'gatehouse export - --data old | gatehouse import - --data new --database postgres://gatehouse@db/gatehouse',
  ],
  run: runExport,
})

async function runExport(values: ExportValues, [given = '']: readonly string[], io: CommandOutput): Promise<void> {
  const toOutput = given === '-'
  if (toOutput && process.stdout.isTTY) throw new WrongUsage('standard output is a terminal; add "> FILE"')
  if (toOutput && io.isJson) throw new WrongUsage('standard output is the export; add a FILE for --output json')
  const file = toOutput ? 'standard output' : resolve(given)
  const address = databaseUrl(values.database)
  const url = address ?? `sqlite:${resolve(values.data, 'gatehouse.db')}`
  const place = readAddress(url)
  if (place.dialect === 'sqlite' && !existsSync(place.address)) {
    refuseLeftover(dirname(place.address))
    throw new Error(`${place.address} does not exist; set --data or --database as for the gateway`)
  }
  if (!toOutput && !existsSync(dirname(file)))
    throw new Error(`the folder ${dirname(file)} does not exist; create it first`)
  if (!toOutput && existsSync(file) && !values.replace) {
    throw new Error(`${file} exists; choose another file, or add --replace`)
  }
  closeToOthers(values.data, address)
  const [key, ...others] = await presentSecretKeys({ environment: process.env, dataFolder: values.data })
  if (key === undefined) {
    throw new Error(
      'the key of the gateway, which signs the export, is not here: set GATEHOUSE_SECRET_KEY, or --data to the data folder with keys/',
    )
  }
  const lock = await lockOrWarn(url, values.data, io)
  // Standard output has the export alone.
  const say = (line: string): void => (toOutput ? io.stderr(line) : io.stdout(line))
  const progress = new Progress()
  let leftOut: LeftOut | undefined
  const work = (write: (bytes: Buffer) => Promise<void>): Promise<Exported> =>
    exportData({
      url,
      keys: [key, ...others],
      write,
      onLeftOut: (found) => {
        leftOut = found
        if (!values['leave-unfinished']) refuseUnfinished(found)
      },
      onProgress: (rows) => progress.update(`Exporting: ${rows} rows`),
    }).finally(() => progress.end())
  const written = toOutput ? work(writeOutput) : toFile(file, work)
  const { counts, bytes, header } = await written.finally(() => lock?.close?.())
  say(`Wrote ${file}: ${bytes} bytes, format ${header.format}, the state of ${header.made}, schema ${header.schema}`)
  say(countsText(counts))
  if (leftOut !== undefined) say(leftOutText(leftOut))
  io.result({ file, bytes, ...header, counts, leftOut })
  say(`The import needs the key ${header.key}: in GATEHOUSE_SECRET_KEY, or keys/ of the data folder`)
}

/** Keeps a gateway from starting on an SQLite file meanwhile. One that runs is no reason to refuse a rehearsal. */
async function lockOrWarn(url: string, dataFolder: string, io: CommandOutput): Promise<Closable | undefined> {
  try {
    return await lockInstance({ url, dataFolder, waitMillis: 0 })
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
    io.stderr('gatehouse export: a gateway uses the database: what changes from now on is not in the file')
    return undefined
  }
}

function refuseUnfinished({ runs, approvals, mails, events }: LeftOut): void {
  if (runs + mails + events === 0) return
  throw new Error(
    `not finished: ${runs} runs (${approvals} approvals are open), ${mails} unsent mails, ${events} undelivered events. Let the gateway finish them, or cancel them ("gatehouse workflow", "gatehouse mail"), or leave them out with --leave-unfinished. Nothing was written`,
  )
}

/** What operators count; rows that belong to these are in the file as well. */
export const countsText = (counts: Readonly<Record<string, number>>): string =>
  `Users and groups: ${counts['entry']}, memberships: ${(counts['membership'] ?? 0) + (counts['nestedGroup'] ?? 0)}, grants: ${counts['grant']}, second factors: ${counts['secondFactor']}, signing keys of endpoints: ${counts['signingKeys']}, finished runs: ${counts['run']}, audit records: ${counts['audit']}`

const leftOutText = ({ runs, approvals, mails, events, sessions }: LeftOut): string =>
  `Left out: ${sessions} sessions, ${runs} unfinished runs with ${approvals} open approvals, ${mails} unsent mails, ${events} undelivered events; also tokens, links to reset passwords and the journal`

/** The file appears when it is complete and on disk. */
async function toFile(
  file: string,
  work: (write: (bytes: Buffer) => Promise<void>) => Promise<Exported>,
): Promise<Exported> {
  const draft = join(dirname(file), `.${basename(file)}.${newId()}.tmp`)
  const removeDraft = (): void => rmSync(draft, { force: true })
  const end = (): void => process.exit(130)
  process.once('exit', removeDraft).once('SIGINT', end).once('SIGTERM', end)
  const opened = openSync(draft, 'wx', 0o600)
  try {
    const exported = await work(async (bytes) => {
      for (let done = 0; done < bytes.length; ) done += writeSync(opened, bytes, done)
    })
    flush(draft)
    renameSync(draft, file)
    flush(dirname(file))
    return exported
  } finally {
    closeSync(opened)
    removeDraft()
    process.off('exit', removeDraft).off('SIGINT', end).off('SIGTERM', end)
  }
}

/** Waits until the reader of the pipe has taken it. If that has ended, so does the process. */
const writeOutput = (bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(bytes, (error) => (error ? reject(error) : resolve())))
