import { createReadStream, existsSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import process from 'node:process'
import { pipeline } from 'node:stream/promises'
import { type CommandOutput, defineCommand, type Values, WrongUsage } from '#cli/command-line/command-line.ts'
import { closeToOthers, databaseUrl } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import { readAddress } from '#database/databases.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { version } from '#kernel/version.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { keyFilesIn, makeBackup } from '#server/backup/backup.ts'
import { refuseLeftover } from '#server/backup/staging-folder.ts'
import { problemLines } from './audit.ts'

const options = {
  ...databaseOptions,
  keys: {
    about: `Include the keys of the data folder. A reader of the backup can then read all secrets in it and
forge its audit`,
  },
  replace: { about: 'Replace FILE if it exists' },
  ...outputOption,
} as const

export const backupCommand = defineCommand({
  name: 'backup',
  about: 'Copy the SQLite database of a gateway, running or not, to a file, and check the copy.',
  usage: 'FILE [--keys] [options]',
  arguments: ['FILE'],
  options,
  notes: `The file has mode 600 and appears when it is complete. Restore it with "gatehouse restore".
With "-" as FILE, the checked copy goes to standard output, and messages to standard error. Until the end, a copy
without a name takes space in the folder of the database.
It has the database: users, sessions, runs, the audit. It does not have the configuration, nor the keys without --keys.
For PostgreSQL use pg_dump; see docs/guides/backup-and-restore.md.
Exit code 1: there is no backup, or its audit has problems, which are printed.`,
  examples: [
    'gatehouse backup /backups/gatehouse-monday.db',
    'gatehouse backup gatehouse.db --data /var/lib/gatehouse --keys',
    'gatehouse backup - --data /data > gatehouse.db',
  ],
  run: runBackup,
})

async function runBackup(values: Values<typeof options>, args: readonly string[], io: CommandOutput): Promise<number> {
  const isStream = args[0] === '-'
  if (isStream && process.stdout.isTTY) throw new WrongUsage('standard output is a terminal; add "> FILE"')
  if (isStream && io.isJson) throw new WrongUsage('standard output is the backup; add a FILE for --output json')
  const say = isStream ? io.stderr : io.stdout
  const given = databaseUrl(values.database)
  const { dialect, address } = readAddress(given ?? `sqlite:${join(values.data, 'gatehouse.db')}`)
  if (dialect === 'postgres') {
    throw new Error(
      'PostgreSQL has its own backups: run pg_dump, as docs/guides/backup-and-restore.md shows. Nothing was written',
    )
  }
  if (!existsSync(address)) {
    refuseLeftover(dirname(address))
    throw new Error(`${address} does not exist; set --data or --database as for the gateway`)
  }
  const file = isStream ? join(dirname(address), `.backup.${newId()}.tmp`) : resolve(args[0] ?? '')
  checkPlace(file, address, values.replace)
  closeToOthers(values.data, given)
  const keyFolder = join(values.data, 'keys')
  const end = (): void => process.exit(130)
  process.once('SIGINT', end).once('SIGTERM', end)
  const progress = new Progress()
  try {
    const made = systemClock()
    const { bytes, schema, rows, heads, audit, keys } = await makeBackup({
      database: address,
      file,
      replace: values.replace,
      ...(values.keys ? { keyFolder } : {}),
      auditKeys: await loadAuditKeys({ environment: process.env, dataFolder: values.data }, 'command'),
      made,
      version: await version(),
      onProgress: (done, total) =>
        progress.update(`Copying: ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`),
    })
    progress.end()
    if (isStream) await sendFile(file)
    const unproven = audit.problems.filter(({ kind }) => kind === 'no key')
    const problems = audit.problems.filter(({ kind }) => kind !== 'no key')
    say(
      `Wrote ${isStream ? 'to standard output' : file}: ${bytes} bytes, ${rows} rows, the state of ${made.toISOString()}`,
    )
    say(`Schema: ${schema.applied.at(-1)}`)
    say(`Audit: ${audit.checked} records, ${headText(heads)}${problems.length === 0 ? ', all unchanged' : ''}`)
    for (const line of problemLines(unproven)) say(`Audit: the seals were not checked. ${line}`)
    if (keys.length > 0) {
      say(`Keys in the backup: ${keys.join(', ')}. Store it where only operators of the gateway can read it`)
    } else {
      const present = keyFilesIn(keyFolder)
      say(
        present.length === 0
          ? noKeys
          : `Not in the backup: ${present.map((name) => `keys/${name}`).join(', ')}. ${apart}`,
      )
    }
    io.result({
      file,
      bytes,
      rows,
      made,
      schema: schema.applied.at(-1),
      keys,
      audit: { checked: audit.checked, heads, problems: audit.problems },
    })
    if (problems.length === 0) return 0
    for (const line of problemLines(problems)) io.stderr(`gatehouse backup: ${line}`)
    io.stderr('gatehouse backup: the file is a true copy, but its audit has problems. See docs/guides/audit.md')
    return 1
  } finally {
    progress.end()
    process.off('SIGINT', end).off('SIGTERM', end)
  }
}

/** Sends a file to standard output. It has no name meanwhile, so nothing of it is left if the process is killed. */
async function sendFile(file: string): Promise<void> {
  const fd = openSync(file, 'r')
  rmSync(file)
  await pipeline(createReadStream('', { fd }), process.stdout, { end: false })
}

const apart = 'Without them the restored secrets cannot be read: copy them to another safe place, or use --keys'
const noKeys = 'Not in the backup: GATEHOUSE_SECRET_KEY and GATEHOUSE_AUDIT_KEY of the gateway. A restore needs them'

const databaseEndings: readonly string[] = ['', '-wal', '-shm', '-journal', '.lock']

/** Throws an Error if the file can't be written there. */
function checkPlace(file: string, database: string, replace: boolean): void {
  const folder = dirname(file)
  if (!existsSync(folder)) throw new Error(`the folder ${folder} does not exist; create it first`)
  // Links may lead to the folder of the database. SQLite finds its logs by their names, whether they exist now or not.
  const [place, used] = [join(realpathSync(folder), basename(file)), realpathSync(database)]
  const ending = place.startsWith(used) ? place.slice(used.length) : undefined
  if (ending !== undefined && databaseEndings.includes(ending)) {
    throw new Error(`${file} is the database itself${ending === '' ? '' : ', or belongs to it'}; choose another file`)
  }
  if (!existsSync(file)) return
  if (!statSync(file).isFile()) throw new Error(`${file} is not a file; add the name of the backup`)
  if (!replace) throw new Error(`${file} exists; choose another file, or add --replace`)
}

export const headText = (heads: readonly { readonly chain: number; readonly number: number }[]): string =>
  heads.length === 0
    ? 'none written yet'
    : `up to ${heads.map(({ chain, number }) => `record ${number} of chain ${chain}`).join(' and ')}`
