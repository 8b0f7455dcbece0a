import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import type { AuditProblem } from '#audit/store/audit-report.ts'
import {
  type CommandIo,
  type CommandOutput,
  checkFile,
  checkOptions,
  defineCommand,
  operatorName,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { databaseUrl, withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { Progress } from '#cli/command-line/progress.ts'
import type { AuditKey } from '#database/audit-seal.ts'
import { AuditSeal } from '#database/audit-seal.ts'
import { readAddress } from '#database/databases.ts'
import { lockInstance } from '#database/instance-lock.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { silentLogger } from '#kernel/logger.ts'
import { Scope } from '#kernel/scope.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { flush } from '#server/backup/backup.ts'
import { checkCopy } from '#server/backup/checked-copy.ts'
import { isLeftover, stagingFolder } from '#server/backup/staging-folder.ts'
import { unpackBackup } from '#server/backup/unpack-backup.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { problemLines } from './audit.ts'
import { compareWithAnchors } from './audit-files.ts'
import { headText } from './backup.ts'

const options = {
  ...databaseOptions,
  anchor: {
    value: 'FILE',
    multiple: true,
    about: 'Report what these anchors of the audit have and the backup lacks, JSON Lines; can be repeated',
  },
  unverified: { about: 'Restore although the audit cannot be verified, or was changed' },
  by: { value: 'NAME', about: 'Name of the operator, for the audit (default the system user)' },
  yes: { about: 'Without FILE: confirm' },
  ...outputOption,
} as const
type RestoreValues = Values<typeof options>

export const restoreCommand = defineCommand({
  name: 'restore',
  about: 'Check a backup and put it into an empty data folder, or finish a restore of PostgreSQL.',
  usage: 'FILE --data DIR [--anchor FILE] [options]\n--database URL --yes [--anchor FILE] [options]',
  arguments: ['[FILE]'],
  options,
  notes: `DIR must be empty, except for keys/ if the backup does not contain the keys.
With PostgreSQL, run it without FILE after pg_restore and before the gateways start.
Both end all sessions and tokens of our issuers, and write an audit entry. See docs/guides/backup-and-restore.md.
Exit code 1: nothing was restored. Exit code 3: the backup belongs to a newer version.`,
  examples: [
    'gatehouse restore /backups/gatehouse-monday.db --data /var/lib/gatehouse --anchor anchors.jsonl',
    'gatehouse restore --database postgres://gatehouse@db/gatehouse --yes',
  ],
  run: runRestore,
})

async function runRestore(values: RestoreValues, [file]: readonly string[], io: CommandOutput): Promise<void> {
  const url = databaseUrl(values.database)
  const isPostgres = url !== undefined && readAddress(url).dialect === 'postgres'
  checkOptions({ anchor: () => values.anchor.forEach(checkFile) })
  if (file !== undefined) {
    if (isPostgres)
      throw new WrongUsage('FILE is for SQLite; with PostgreSQL use pg_restore, then restore without FILE')
    if (url !== undefined) throw new WrongUsage('FILE is restored to --data; --database is for PostgreSQL')
    return restoreFile(resolve(file), resolve(values.data), values, io)
  }
  if (!isPostgres) throw new WrongUsage('missing argument: FILE')
  if (!values.yes)
    throw new WrongUsage('this ends all sessions of the database; run it after pg_restore, and add --yes')
  const restored = await withDatabase(values, (storage) => finishPostgres(storage, values, io), 'refuse', 'restore')
  io.stdout('Finished: start the gateways')
  io.result(restored)
}

/** Gateways refuse the database until it ends, also if it is killed. */
async function finishPostgres(storage: Storage, values: RestoreValues, io: CommandIo): Promise<Restored> {
  const foreign = await storage.system.foreignCode()
  if (foreign !== undefined) {
    throw new Error(`the database contains the ${foreign}, which Gatehouse did not create. Remove it there first`)
  }
  const isFirst = await storage.system.beginRestore()
  let canAudit: boolean
  let lost: readonly string[]
  try {
    const { problems } = await storage.audit.verify()
    acceptProblems(problems, values, io)
    canAudit = !lacksKey(problems)
    lost = await reportAnchors(storage, values, io)
  } catch (error) {
    // An earlier attempt may have changed something.
    if (isFirst) await storage.system.endRestore()
    throw error
  }
  const restored = await finish(storage, { ...values, made: undefined, canAudit, lost }, io)
  await storage.system.endRestore()
  return restored
}

/** Everything happens in a folder within the data folder; the last step gives the files their names. */
async function restoreFile(file: string, data: string, values: RestoreValues, io: CommandOutput): Promise<void> {
  checkFile(file)
  const scope = new Scope()
  let restored: object
  try {
    await refuseUsedFolder(data)
    mkdirSync(data, { recursive: true, mode: 0o700 })
    scope.own(await lockInstance({ dataFolder: data, waitMillis: 0 }))
    for (const name of readdirSync(data)) if (isLeftover(name)) rmSync(join(data, name), { recursive: true })
    const staging = stagingFolder('restore', data, newId())
    mkdirSync(staging, { mode: 0o700 })
    scope.defer(() => rmSync(staging, { recursive: true, force: true }))
    const { made, version, keys } = await unpackBackup(file, staging)
    // An earlier restore may have been killed after it put the same keys there.
    const hasKeys = keys.length > 0 && existsSync(join(data, 'keys'))
    if (hasKeys && !haveSameFiles(join(data, 'keys'), join(staging, 'keys'))) {
      throw new Error(`the backup contains keys, and ${join(data, 'keys')} exists; move it away first`)
    }
    const auditKeys = await loadAuditKeys(
      { environment: process.env, dataFolder: keys.length > 0 ? staging : data },
      'command',
    )
    const database = join(staging, 'gatehouse.db')
    const { schema, rows, heads, audit } = await checkCopy(database, file, sealOf(auditKeys))
    const from =
      made === undefined
        ? 'made by another program'
        : `the state of ${made.toISOString()}, made by ${version === undefined ? 'an unknown version' : `version ${version}`}`
    io.stdout(`${file}: ${from}, ${rows} rows, schema ${schema.applied.at(-1)}`)
    io.stdout(`Audit: ${audit.checked} records, ${headText(heads)}`)
    acceptProblems(audit.problems, values, io)
    const storage = openStorage({ dataFolder: staging, clock: systemClock, log: silentLogger, auditKeys })
    try {
      await storage.ready()
      for (const { name } of schema.pending) io.stdout(`Migrated: ${name}`)
      const lost = await reportAnchors(storage, values, io)
      restored = {
        data,
        made,
        rows,
        schema: schema.applied.at(-1),
        migrated: schema.pending.map(({ name }) => name),
        ...(await finish(storage, { ...values, made, canAudit: !lacksKey(audit.problems), lost }, io)),
      }
    } finally {
      await storage.close()
    }
    // Its last connection moves the log into the database, and reports nothing if that fails.
    if (existsSync(`${database}-wal`)) {
      throw new Error('the restored database could not be completed: the disk is full, or another program has it open')
    }
    flush(database)
    if (keys.length > 0 && !hasKeys) renameSync(join(staging, 'keys'), join(data, 'keys'))
    flush(data)
    renameSync(database, join(data, 'gatehouse.db'))
    flush(data)
  } finally {
    await scope.close()
  }
  io.stdout(`Restored to ${data}: start the gateway`)
  io.result(restored)
}

function haveSameFiles(one: string, other: string): boolean {
  const names = readdirSync(other)
  if (readdirSync(one).sort().join('/') !== names.sort().join('/')) return false
  return names.every((name) => readSmallFileSync(join(one, name)) === readSmallFileSync(join(other, name)))
}

/** What an empty folder may contain: keys that the operator put there, our lock, and what a new volume has. */
const allowed = ['keys', 'gatehouse.db.lock', 'lost+found']

async function refuseUsedFolder(data: string): Promise<void> {
  if (!existsSync(data)) return
  const present = readdirSync(data).filter((name) => !allowed.includes(name) && !isLeftover(name))
  if (present.length === 0) return
  // Throws if a gateway runs, which is the more important news.
  if (present.includes('gatehouse.db')) await (await lockInstance({ dataFolder: data, waitMillis: 0 })).close?.()
  throw new Error(`${data} is not empty: it has ${present[0]}. Choose an empty folder, or move its files away`)
}

function sealOf([first, ...others]: readonly AuditKey[]): AuditSeal | undefined {
  return first === undefined ? undefined : new AuditSeal([first, ...others])
}

const lacksKey = (problems: readonly AuditProblem[]): boolean => problems.some(({ kind }) => kind === 'no key')

/** Prints the problems. Throws an Error unless the operator accepts them. */
function acceptProblems(problems: readonly AuditProblem[], { unverified }: RestoreValues, io: CommandIo): void {
  for (const line of problemLines(problems)) io.stderr(`gatehouse restore: ${line}`)
  if (problems.length === 0 || unverified) return
  const help = lacksKey(problems)
    ? 'put the keys/ of that gateway into the data folder, or set the variables'
    : 'use another backup'
  throw new Error(`the audit of the backup is not valid: ${help}, or accept it with --unverified. Nothing was changed`)
}

interface FinishOptions extends RestoreValues {
  readonly made: Date | undefined
  /** False if the key of the audit is missing, so that nothing can be added to it. */
  readonly canAudit: boolean
  /** What anchors prove to be missing. */
  readonly lost: readonly string[]
}

/** What a restore did, for programs. */
interface Restored {
  readonly ended: { readonly sessions: number; readonly issued: number }
  readonly continues: { readonly runs: number; readonly mails: number }
  readonly open: { readonly approvals: number; readonly runs: number }
  /** What anchors prove to be missing. */
  readonly lost: readonly string[]
  readonly audited: boolean
}

/** Ends what must not become valid again, prints what the gateway will repeat, and writes the audit entry. */
async function finish(storage: Storage, options: FinishOptions, io: CommandIo): Promise<Restored> {
  const { sessions, issued } = await storage.system.endLogins()
  io.stdout(
    `Ended ${counted(sessions, 'session')}, and ${counted(issued, 'record')} of issuers (codes, grants, tokens): all users sign in again`,
  )
  const [runs, mails, approvals] = await Promise.all([
    storage.runs.figures(),
    storage.mails.figures(),
    storage.approvals.figures(),
  ])
  io.stdout(
    `The gateway will continue ${counted(runs.ready + runs.running, 'run')} and send ${counted(mails.queued, 'mail')}, again if that happened after the backup`,
  )
  io.stdout(
    `Open as at the time of the backup: ${counted(approvals.open, 'approval')}, ${counted(runs.waiting, 'waiting run')}`,
  )
  const restored: Restored = {
    ended: { sessions, issued },
    continues: { runs: runs.ready + runs.running, mails: mails.queued },
    open: { approvals: approvals.open, runs: runs.waiting },
    lost: options.lost,
    audited: options.canAudit,
  }
  if ((await storage.keys.list()).length > 0) {
    io.stdout(
      'Keys of token endpoints are those of the backup: revoke again what was revoked since, with "gatehouse keys"',
    )
  }
  io.stdout(
    'Before you start: users who were deactivated and passwords that were changed since the backup are valid again, and a client that repeats a call makes a new run. Read "What a restore means" in docs/guides/backup-and-restore.md',
  )
  if (!options.canAudit) {
    io.stderr(
      'gatehouse restore: no audit entry was written, since the key of the audit is missing. Run "gatehouse audit seal"',
    )
    return restored
  }
  const value = options.made === undefined ? 'a backup' : `the backup of ${options.made.toISOString()}`
  const reason = [
    `${counted(sessions, 'session')} ended`,
    ...options.lost,
    ...(options.unverified ? ['--unverified'] : []),
  ].join('; ')
  await storage.audit.record({ action: 'replace', attribute: 'database', value, reason }, operatorName(options.by))
  return restored
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Returns what anchors prove to be missing. Throws an Error for anchors that contradict the backup. */
async function reportAnchors({ audit }: Storage, values: RestoreValues, io: CommandIo): Promise<string[]> {
  if (values.anchor.length === 0) {
    io.stdout('No anchors were given: nothing shows how many audit records are newer than the backup')
    return []
  }
  const heads = new Map((await audit.anchor())?.heads.map(({ chain, number }) => [chain, number]))
  const newest = new Map<number, number>()
  const others: AuditProblem[] = []
  for (const file of values.anchor) {
    const progress = new Progress()
    const { problems } = await compareWithAnchors(audit, file, progress).finally(() => progress.end())
    for (const problem of problems) {
      const { kind, chain, number } = problem
      if (kind !== 'older' || chain === undefined || number === undefined) others.push(problem)
      else newest.set(chain, Math.max(number, newest.get(chain) ?? 0))
    }
  }
  acceptProblems(others, values, io)
  const lost = Array.from(newest, ([chain, number]) => {
    const last = heads.get(chain) ?? 0
    return `chain ${chain}: records ${last + 1} to ${number} are in anchors and not in the backup`
  })
  for (const line of lost) io.stderr(`gatehouse restore: lost: ${line}`)
  if (lost.length === 0 && others.length === 0) io.stdout('The backup has every record that the anchors name')
  return lost
}
