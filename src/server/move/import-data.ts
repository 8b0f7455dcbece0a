import { timingSafeEqual } from 'node:crypto'
import { appendToChain, auditEntry } from '#audit/store/audit-chain.ts'
import type { AuditProblem } from '#audit/store/audit-report.ts'
import { verifyAudit } from '#audit/store/audit-verification.ts'
import type { AuditSeal } from '#database/audit-seal.ts'
import { connect, readAddress } from '#database/databases.ts'
import { migrateWithin, readMigrations } from '#database/migrations.ts'
import type { DatabaseTransaction } from '#database/sql-client.ts'
import { columnName, RowInsert, statement } from '#database/statement.ts'
import { isStorable } from '#database/text-keys.ts'
import { insertMoved, type MovedEntry } from '#directory/store/moved-entries.ts'
import { systemClock } from '#kernel/clock.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { silentLogger } from '#kernel/logger.ts'
import type { SecretKey } from '#keys/secret-keys.ts'
import type { SqlDialect } from '#protocols/sql/sql-database.ts'
import { exportMac } from './export-data.ts'
import { type ExportEnd, type ExportHeader, exportFormat, exportStart, type Kind, kinds } from './export-format.ts'
import { type ExportLine, readLines } from './export-lines.ts'

interface ImportOptions {
  readonly url: string
  readonly input: AsyncIterable<Buffer>
  /** Of the input, for messages. */
  readonly name: string
  /** The keys of this installation, once the header is known. */
  readonly openKeys: (header: ExportHeader) => Promise<InstallationKeys>
  readonly by: string
  readonly onProgress: (rows: number) => void
}

export interface InstallationKeys {
  readonly secret: readonly SecretKey[]
  readonly seal: AuditSeal | undefined
}

export interface Imported {
  readonly header: ExportHeader
  readonly counts: Readonly<Record<string, number>>
  /** Records of the audit, all verified. */
  readonly audit: number
}

/**
 * Reads an export into a database without data, in one transaction with the migrations: all of it is there, signed by the
 * installation's key and with an audit that verifies, or nothing changes. Throws an Error that names the line.
 */
export async function importData(options: ImportOptions): Promise<Imported> {
  const lines = readLines(options.input, options.name)
  try {
    const first = await lines.next()
    if (first.done === true) throw new Error(`${options.name} is empty`)
    const header = readHeader(options.name, first.value)
    const keys = await options.openKeys(header)
    const { dialect, address } = readAddress(options.url)
    const client = await connect(dialect, address, silentLogger, keys.seal)
    try {
      let imported: Imported | undefined
      await client.migrate(async (tx, runScript) => {
        if (dialect === 'postgres') await runScript("set local idle_in_transaction_session_timeout = '10min'")
        await migrateWithin(tx, runScript, readMigrations(dialect), systemClock, silentLogger)
        await refuseData(tx, dialect)
        await run(tx, 'delete from audit_chains')
        const counts = await load(tx, lines, header, keys, options)
        await complete(tx, dialect)
        const { problems, checked } = await verifyAudit(tx, keys.seal)
        refuseProblem(problems[0], options.name)
        const reason = `an export of ${header.database}, made by version ${header.version}`
        const entry = {
          action: 'replace',
          attribute: 'database',
          value: `the export of ${header.made}`,
          reason,
        } as const
        await appendToChain(tx, [auditEntry(entry, options.by)])
        imported = { header, counts, audit: checked }
      })
      if (imported === undefined) throw new Error('the import ended without a result')
      return imported
    } finally {
      await client.close()
    }
  } finally {
    await lines.return(undefined)
  }
}

function refuseProblem(problem: AuditProblem | undefined, name: string): void {
  if (problem === undefined) return
  const { kind, chain, number, key } = problem
  if (kind === 'no key') {
    throw new Error(
      `${name}: the audit is sealed with the key ${key}, which is not here: set GATEHOUSE_AUDIT_KEY or GATEHOUSE_SECRET_KEY as for that gateway`,
    )
  }
  const place = chain === undefined ? '' : ` (chain ${chain}${number === undefined ? '' : `, record ${number}`})`
  throw new Error(
    `${name}: the audit is not valid: ${kind}${place}. Run "gatehouse audit verify" on the exported database; "gatehouse audit seal" there accepts it as it is`,
  )
}

/** Throws an Error for a line that does not begin an export of a known format. */
function readHeader(name: string, { text }: ExportLine): ExportHeader {
  const notOne = `${name} is not an export of Gatehouse: "gatehouse export" writes them`
  if (!text.startsWith(exportStart)) throw new Error(notOne)
  const header = parse(text)
  if (!isJsonObject(header)) throw new Error(notOne)
  const { format, ...others } = header
  if (format !== exportFormat) {
    throw new Error(
      `${name} has format ${JSON.stringify(format)}, which this version does not know: a newer version wrote it`,
    )
  }
  const known = ['gatehouse', 'version', 'made', 'database', 'schema', 'key', 'keys']
  const strange = Object.keys(others).find((field) => !known.includes(field))
  if (strange !== undefined) throw new Error(`${name}: its header has "${strange}", which this version does not know`)
  const wrong = known.find((field) => field !== 'keys' && !isShortText(others[field]))
  if (wrong !== undefined) throw new Error(`${name}: its header lacks "${wrong}"`)
  return header as unknown as ExportHeader
}

const isShortText = (value: unknown): boolean => typeof value === 'string' && /^[\w.:+() -]{1,100}$/.test(value)

const rowsAtOnce = 512
const bytesAtOnce = 4_000_000

/** Stores the rows, and returns their number by kind. Throws an Error without a valid end. */
async function load(
  tx: DatabaseTransaction,
  lines: AsyncGenerator<ExportLine>,
  header: ExportHeader,
  keys: InstallationKeys,
  { name, onProgress }: ImportOptions,
): Promise<Readonly<Record<string, number>>> {
  const order = Object.keys(kinds)
  const counts: Record<string, number> = Object.fromEntries(order.map((kind) => [kind, 0]))
  const batch = new Batch(tx, name)
  let place = 0
  let total = 0
  for (;;) {
    const next = await lines.next()
    if (next.done === true) throw new Error(`${name} was cut off: it has no end`)
    const line = next.value
    const at = `${name}: line ${line.number}`
    const read = parse(line.text)
    if (isJsonObject(read)) {
      await batch.flush()
      checkEnd(at, read, line, { counts, header, keys })
      const after = await lines.next()
      if (after.done !== true) throw new Error(`${name}: line ${after.value.number} comes after the end`)
      return counts
    }
    if (!Array.isArray(read) || read.length !== 2 || typeof read[0] !== 'string') {
      throw new Error(`${at} is not a row of an export: the file was changed`)
    }
    const [kind, row] = read as [string, unknown]
    const position = order.indexOf(kind)
    const described = kinds[kind]
    if (position < 0 || described === undefined) {
      throw new Error(`${at} is a row of the kind "${kind.slice(0, 50)}", which this version does not know`)
    }
    if (position < place) throw new Error(`${at} is not in order: the file was changed`)
    if (position > place) await batch.flush()
    place = position
    await batch.add(kind, described, checkRow(at, described, row), line)
    counts[kind] = (counts[kind] ?? 0) + 1
    onProgress(++total)
  }
}

/** Undefined for what is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Row = Readonly<Record<string, string | number | null>>

function checkRow(at: string, { fields }: Kind, row: unknown): Row {
  if (!isJsonObject(row)) throw new Error(`${at} is not a row of an export: the file was changed`)
  const strange = Object.keys(row).find((field) => !Object.hasOwn(fields, field))
  if (strange !== undefined) {
    throw new Error(`${at} has the field "${strange.slice(0, 50)}", which this version does not know`)
  }
  const checked: Record<string, string | number | null> = {}
  for (const [field, type] of Object.entries(fields)) {
    const value = row[field] ?? null
    if (value === null ? !type.endsWith('?') : !hasType(value, type)) {
      throw new Error(`${at}: "${field}" must be a ${type.startsWith('text') ? 'text' : 'whole number'}`)
    }
    checked[field] = value as string | number | null
  }
  return checked
}

const hasType = (value: unknown, type: string): boolean =>
  type.startsWith('text') ? typeof value === 'string' && isStorable(value) : Number.isSafeInteger(value)

interface EndContext {
  readonly counts: Readonly<Record<string, number>>
  readonly header: ExportHeader
  readonly keys: InstallationKeys
}

function checkEnd(at: string, read: JsonObject, line: ExportLine, { counts, header, keys }: EndContext): void {
  const end = read['end']
  const isEnd =
    Object.keys(read).length === 1 &&
    isJsonObject(end) &&
    Object.keys(end).sort().join() === 'counts,mac,sealedWith,sha256' &&
    isJsonObject(end['counts']) &&
    Array.isArray(end['sealedWith']) &&
    typeof end['sha256'] === 'string' &&
    typeof end['mac'] === 'string'
  if (!isEnd) throw new Error(`${at} is neither a row nor the end of an export: the file was changed`)
  const given = end as unknown as ExportEnd['end']
  if (given.sha256 !== line.hashBefore()) {
    throw new Error(`${at}: the hash does not match: the file was changed or damaged after it was written`)
  }
  const key = keys.secret.find(({ id }) => id === header.key)
  const { mac, ...signed } = given
  if (key === undefined || !isSame(exportMac(key, signed), mac)) {
    throw new Error(`${at}: the signature is not valid: the installation ${header.key} did not write this file`)
  }
  const wrong = Object.entries(counts).find(([kind, count]) => (given.counts[kind] ?? 0) !== count)
  if (wrong !== undefined)
    throw new Error(`${at}: the file has ${wrong[1]} rows of the kind ${wrong[0]}, and says otherwise`)
  const missing = given.sealedWith.find((id) => !keys.secret.some((known) => known.id === id))
  if (missing !== undefined) {
    throw new Error(
      `${at}: secrets in it are encrypted with the key ${missing}, which is not here: add it to GATEHOUSE_SECRET_KEY, after the current one`,
    )
  }
}

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Rows of one kind that are stored together. */
class Batch {
  readonly #tx: DatabaseTransaction
  readonly #name: string
  readonly #inserts = new Map<string, RowInsert<Record<string, string | number | null>>>()
  #kind: readonly [name: string, kind: Kind] | undefined
  #rows: Row[] = []
  #size = 0
  #first = 0
  #last = 0

  constructor(tx: DatabaseTransaction, name: string) {
    this.#tx = tx
    this.#name = name
  }

  async add(name: string, kind: Kind, row: Row, { number, text }: ExportLine): Promise<void> {
    if (this.#rows.length === 0) this.#first = number
    this.#last = number
    this.#kind = [name, kind]
    this.#rows.push({ ...row, ...kind.fixed })
    this.#size += text.length
    if (this.#rows.length >= rowsAtOnce || this.#size >= bytesAtOnce) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.#kind === undefined || this.#rows.length === 0) return
    const [name, kind] = this.#kind
    const rows = this.#rows
    this.#rows = []
    this.#size = 0
    try {
      if (name === 'entry') insertMoved(this.#tx, rows as unknown as MovedEntry[])
      else this.#insertOf(name, kind).run(this.#tx, rows)
      // Waits for the database, so that not all rows are under way at once.
      await selectOne.all(this.#tx, {})
    } catch (error) {
      const place = `${this.#name}: lines ${this.#first} to ${this.#last}`
      const message = error instanceof Error ? error.message : String(error)
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      const problem =
        code === 'CONFLICT' || code === uniqueViolation
          ? `have rows of the kind "${name}" that exclude each other`
          : 'cannot be stored'
      throw new Error(`${place} ${problem}: ${message}`, { cause: error })
    }
  }

  #insertOf(name: string, { table, fields, fixed = {} }: Kind): RowInsert<Record<string, string | number | null>> {
    const known = this.#inserts.get(name)
    if (known !== undefined) return known
    const insert = new RowInsert<Record<string, string | number | null>>(table, [
      ...Object.keys(fields),
      ...Object.keys(fixed),
    ])
    this.#inserts.set(name, insert)
    return insert
  }
}

/** Of PostgreSQL. */
const uniqueViolation = '23505'
const selectOne = statement<object, unknown>('select 1')

/** Rows of a new database, and of gateways that looked at it. */
const unimportant = ['schema_migrations', 'audit_chains', 'replicas', 'rate_limits']

/** Throws an Error unless the database is new. */
async function refuseData(tx: DatabaseTransaction, dialect: SqlDialect): Promise<void> {
  const scripts = readMigrations(dialect).map(({ script }) => script)
  const tables = scripts.flatMap((script) =>
    Array.from(script.matchAll(/^create (?:unlogged )?table (\w+)/gm), ([, table = '']) => table),
  )
  for (const table of tables.filter((each) => !unimportant.includes(each))) {
    const [found] = await query<{ filled: number }>(
      tx,
      `select count(*) as filled from (select 1 from ${table} limit 1) as first`,
    )
    if (Number(found?.filled) > 0) {
      throw new Error(
        `the database is not empty: its table ${table} has rows. Import into a new one; nothing was changed`,
      )
    }
  }
  const [chain] = await query<{ filled: number }>(tx, 'select count(*) as filled from audit_chains where seq > 0')
  if (Number(chain?.filled) > 0) throw new Error('the database is not empty: it had an audit. Nothing was changed')
}

/** What follows from the rows: sizes, and numbers for new rows. */
async function complete(tx: DatabaseTransaction, dialect: SqlDialect): Promise<void> {
  await run(
    tx,
    'insert into collection_sizes (collection, slot, size) select collection, 0, count(*) from entries group by collection',
  )
  if (dialect === 'sqlite') return
  for (const { table, counted } of Object.values(kinds)) {
    if (counted === undefined) continue
    const column = columnName(counted)
    await query(
      tx,
      `select setval(pg_get_serial_sequence('${table}', '${column}'), (select coalesce(max(${column}), 0) + 1 from ${table}), false)`,
    )
  }
}

const query = async <R>(tx: DatabaseTransaction, sql: string): Promise<R[]> =>
  await tx.query<R>({ sql, params: [], name: undefined })
const run = async (tx: DatabaseTransaction, sql: string): Promise<unknown> =>
  await tx.run({ sql, params: [], name: undefined })
