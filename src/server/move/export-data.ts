import { createHash, createHmac } from 'node:crypto'
import { readMigrations, restoreMarker, SchemaMismatch } from '#database/migrations.ts'
import { readSnapshot, type Snapshot } from '#database/snapshot.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { version } from '#kernel/version.ts'
import { derivedKey, type SecretKey } from '#keys/secret-keys.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import {
  type ExportEnd,
  type ExportHeader,
  exportFormat,
  kinds,
  longestLine,
  macPurpose,
  sealedTexts,
  selectOf,
} from './export-format.ts'

/** First migrations that main had before the first release, whose tables have all fields of format 1 but the newer kinds. */
const earlierBaselines: Readonly<Record<SqlDialect, readonly string[]>> = {
  sqlite: [
    '9bf8ccb6048ad46cfe038395c452dde8eff147a3c56cdcb6903bd0013056abb8',
    '675c54d262f663ecdcbe2807df278d646bd09514283b8b2a8f982ceb3e3a2e34',
    '6d70516bfa649d7dcf9c905febb007548249d89630ce00249358408b2f5d2f62',
  ],
  postgres: [
    '495bc955aac1c72558631cf1395b4781d70bae32b64d6bd9caa7ff91b8be1a16',
    '22edbcf54940812be11b53aa0b858a027986d7b893e4e6dd2c8999130e392d26',
    '01fde026aaee5f37995e519620aa93fe23df8eeb201868d43a1be69893fa9be3',
    '3b29973646f19980852fd184f9aac59816fadf00b1f3a7e7ea1a977de76c8879',
  ],
}

/** What is not in an export. */
export interface LeftOut {
  readonly runs: number
  readonly approvals: number
  readonly mails: number
  readonly events: number
  readonly sessions: number
}

interface ExportOptions {
  readonly url: string
  /** The first one signs the export. */
  readonly keys: readonly [SecretKey, ...SecretKey[]]
  /** Called before anything is written; throws to refuse. */
  readonly onLeftOut: (leftOut: LeftOut) => void
  /** Resolves when more may be written. */
  readonly write: (bytes: Buffer) => Promise<void>
  readonly onProgress: (rows: number) => void
}

export interface Exported {
  readonly header: ExportHeader
  readonly counts: Readonly<Record<string, number>>
  readonly bytes: number
}

const bytesAtOnce = 256 * 1024

/** Writes one state of the database, which a gateway may use meanwhile. Throws SchemaMismatch for unknown tables. */
export function exportData(options: ExportOptions): Promise<Exported> {
  return readSnapshot(options.url, silentLogger, (snapshot) => exportSnapshot(snapshot, options))
}

async function exportSnapshot(snapshot: Snapshot, options: ExportOptions): Promise<Exported> {
  const { schema, isEarlier } = await checkSchema(snapshot)
  options.onLeftOut(await countLeftOut(snapshot))
  const [key] = options.keys
  const output = new Output(options.write)
  const header: ExportHeader = {
    gatehouse: 'export',
    format: exportFormat,
    version: await version(),
    made: systemClock().toISOString(),
    database: snapshot.dialect,
    schema,
    key: key.id,
  }
  await output.line(JSON.stringify(header))
  const counts: Record<string, number> = {}
  const sealedWith = new Set<string>()
  let rows = 0
  for (const [kind, each] of Object.entries(kinds)) {
    let count = 0
    for await (const row of isEarlier && each.isNewer === true ? [] : snapshot.rows(selectOf(each))) {
      const present = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
      const sealed = each.sealed === undefined ? '' : String(present[each.sealed])
      for (const [, id = ''] of sealed.matchAll(sealedTexts)) sealedWith.add(id)
      await output.line(JSON.stringify([kind, present]))
      count++
      options.onProgress(++rows)
    }
    counts[kind] = count
  }
  const end = { counts, sealedWith: [...sealedWith].sort(), sha256: output.hash() }
  const last: ExportEnd = { end: { ...end, mac: exportMac(key, end) } }
  await output.line(JSON.stringify(last))
  await output.flush()
  return { header, counts, bytes: output.bytes }
}

/** Covers the whole file, as the hash does. */
export function exportMac(key: SecretKey, { counts, sealedWith, sha256 }: Omit<ExportEnd['end'], 'mac'>): string {
  const text = JSON.stringify([counts, sealedWith, sha256])
  return createHmac('sha256', derivedKey(key.key, macPurpose).key).update(text).digest('base64url')
}

class Output {
  readonly #write: (bytes: Buffer) => Promise<void>
  readonly #sum = createHash('sha256')
  #waiting: Buffer[] = []
  #size = 0
  bytes = 0

  constructor(write: (bytes: Buffer) => Promise<void>) {
    this.#write = write
  }

  async line(text: string): Promise<void> {
    const bytes = Buffer.from(`${text}\n`)
    if (bytes.length > longestLine)
      throw new Error(`a row is larger than ${longestLine} bytes, which no import accepts`)
    this.#sum.update(bytes)
    this.#waiting.push(bytes)
    this.#size += bytes.length
    this.bytes += bytes.length
    if (this.#size >= bytesAtOnce) await this.flush()
  }

  /** Of all lines up to now. */
  hash(): string {
    return this.#sum.copy().digest('base64url')
  }

  async flush(): Promise<void> {
    const bytes = Buffer.concat(this.#waiting)
    this.#waiting = []
    this.#size = 0
    await this.#write(bytes)
  }
}

/** The last migration. Main's tables from before the first release are read too. */
async function checkSchema(snapshot: Snapshot): Promise<{ readonly schema: string; readonly isEarlier: boolean }> {
  const sql =
    snapshot.dialect === 'sqlite'
      ? "select count(*) as count from sqlite_schema where type = 'table' and name = 'schema_migrations'"
      : "select count(*) as count from pg_class where oid = to_regclass('schema_migrations')"
  const [found] = await read<{ count: number }>(snapshot, sql)
  if (Number(found?.count) === 0) throw new Error('the database has no tables of Gatehouse')
  const applied = await read<{ name: string; hash: string }>(
    snapshot,
    'select name, hash from schema_migrations order by name',
  )
  const known = readMigrations(snapshot.dialect)
  const earlier = earlierBaselines[snapshot.dialect]
  for (const { name, hash } of applied) {
    if (name === restoreMarker) {
      throw new SchemaMismatch(
        'RESTORE_UNFINISHED',
        'a restore of this database did not finish: run "gatehouse restore --yes" again',
      )
    }
    if (known.some((each) => each.name === name && each.hash === hash)) continue
    if (applied.length === 1 && earlier.includes(hash)) {
      return { schema: `${name} (${hash.slice(0, 12)})`, isEarlier: true }
    }
    throw new SchemaMismatch(
      'SCHEMA_NEWER',
      `this program does not know the migration ${name} of the database: a newer version wrote it, or a checkout from before the first release. Export it with the version that wrote it`,
    )
  }
  const missing = known.find(({ name }) => !applied.some((each) => each.name === name))
  if (missing !== undefined) {
    throw new SchemaMismatch(
      'SCHEMA_OLDER',
      `the database lacks the migration ${missing.name} of this version. Run "gatehouse migrate"`,
    )
  }
  return { schema: applied.at(-1)?.name ?? '', isEarlier: false }
}

async function countLeftOut(snapshot: Snapshot): Promise<LeftOut> {
  const count = async (of: string): Promise<number> =>
    Number((await read<{ count: number }>(snapshot, `select count(*) as count from ${of}`))[0]?.count)
  return {
    runs: await count('runs where ended is null'),
    approvals: await count("approvals where state = 'open'"),
    mails: await count("mails where state = 'queued'"),
    events: await count('events'),
    sessions: await count('sessions'),
  }
}

const read = async <R>(snapshot: Snapshot, sql: string): Promise<R[]> =>
  await snapshot.query<R>({ sql, params: [], name: undefined })
