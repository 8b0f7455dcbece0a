import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { AuditProblem } from '#audit/store/audit-report.ts'
import type { AuditStore } from '#audit/store/audit-store.ts'
import type { AuditComparison } from '#audit/store/audit-verification.ts'
import type { Progress } from '#cli/command-line/progress.ts'
import type { AuditAnchor } from '#database/audit-seal.ts'
import type { AuditLink } from '#kernel/audit-link.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { AuditEntry, AuditRecord } from '#sdk/audit/audit-entry.ts'

const batchSize = 100
const maxProblems = 100
const maxLineChars = 16 * 1024 * 1024

export interface FileProblem extends AuditProblem {
  /** The line that can't be read, counted from 1. */
  readonly line?: number
}

export interface FileComparison extends AuditComparison {
  readonly file: string
  readonly problems: readonly FileProblem[]
}

interface LineFormat<T> {
  /** The meaning of each line. */
  readonly what: string
  /** The origin of such a file. */
  readonly source: string
  readonly read: (line: JsonObject) => T | undefined
  /** Non-JSON lines that such a file may have. */
  readonly isOther: (line: string) => boolean
}

/** The gateway also prints text to the stream of its log, such as the addresses it listens on. */
const anchorFormat: LineFormat<AuditAnchor> = {
  what: 'anchor',
  source:
    'use the file of an AuditAnchor, or a log of the gateway, which has an anchor every five minutes and at shutdown',
  read: readAnchor,
  isOther: (line) => !line.trimStart().startsWith('{'),
}
const exportFormat: LineFormat<KeptRow> = {
  what: 'audit record',
  source: 'use the output of "gatehouse audit export", or the file of an audit sink',
  read: readRecord,
  isOther: () => false,
}

/**
 * Compares the audit with a file of anchors: one JSON object per line, bare or as `anchor` of a line of the
 * gateway's log. Skips other lines of a log. Throws an Error for a file that can't be read, or that has no anchor.
 */
export function compareWithAnchors(store: AuditStore, file: string, progress: Progress): Promise<FileComparison> {
  return compareLines(file, anchorFormat, progress, (anchors) => store.compareAnchors(anchors))
}

/** Compares the audit with a file written by `audit export` or an audit sink. Throws an Error in the same cases. */
export function compareWithExport(store: AuditStore, file: string, progress: Progress): Promise<FileComparison> {
  return compareLines(file, exportFormat, progress, (rows) => store.compareRecords(joinRows(rows)))
}

async function compareLines<T>(
  file: string,
  { what, source, read, isOther }: LineFormat<T>,
  progress: Progress,
  compare: (batch: readonly T[]) => Promise<AuditComparison>,
): Promise<FileComparison> {
  const problems: FileProblem[] = []
  let [compared, pruned, found, number] = [0, 0, 0, 0]
  let batch: T[] = []
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return
    const outcome = await compare(batch)
    batch = []
    compared += outcome.compared
    pruned += outcome.pruned
    problems.push(...outcome.problems)
  }
  if (!existsSync(file)) throw new Error(`${file} does not exist`)
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Number.POSITIVE_INFINITY })
  for await (const line of lines) {
    number++
    progress.update(`Comparing with ${file}: line ${number}`)
    if (line.trim() === '' || isOther(line)) continue
    const parsed = line.length > maxLineChars ? undefined : parseLine(line)
    const item = parsed === undefined ? undefined : read(parsed)
    if (item === undefined) {
      if (parsed === undefined) problems.push({ kind: 'invalid', line: number })
      if (problems.length >= maxProblems) break
      continue
    }
    found++
    batch.push(item)
    if (batch.length >= batchSize) await flush()
    if (problems.length >= maxProblems) break
  }
  await flush()
  if (found === 0 && problems.length === 0) throw new Error(`${file} has no ${what}; ${source}`)
  return { file, compared, pruned, problems: problems.slice(0, maxProblems) }
}

function parseLine(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function readAnchor(line: JsonObject): AuditAnchor | undefined {
  const anchor = isJsonObject(line['anchor']) ? line['anchor'] : line
  const { time, key, mac, heads } = anchor
  if (typeof time !== 'string' || typeof key !== 'string' || typeof mac !== 'string') return undefined
  if (!Array.isArray(heads) || heads.length > 1000) return undefined
  const read = heads.map(readLink)
  return read.every((head) => head !== undefined) ? { time, key, mac, heads: read } : undefined
}

interface KeptRow {
  readonly link: AuditLink
  readonly row: AuditEntry
}

function readRecord({ record, ...row }: JsonObject): KeptRow | undefined {
  const link = readLink(record)
  return link && { link, row: row as unknown as AuditEntry }
}

function readLink(value: JsonValue | undefined): AuditLink | undefined {
  if (!isJsonObject(value)) return undefined
  const { chain, number, hash } = value
  if (typeof chain !== 'number' || typeof number !== 'number' || typeof hash !== 'string') return undefined
  return Number.isSafeInteger(chain) && Number.isSafeInteger(number) ? { chain, number, hash } : undefined
}

/** A batch may end within a record, and a sink may repeat rows. */
function joinRows(rows: readonly KeptRow[]): AuditRecord[] {
  const records = new Map<string, { link: KeptRow['link']; rows: Map<string, AuditEntry> }>()
  for (const { link, row } of rows) {
    const place = `${link.chain} ${link.number} ${link.hash}`
    const record = records.get(place) ?? { link, rows: new Map() }
    records.set(place, record)
    record.rows.set(row.id, row)
  }
  return [...records.values()].map((record) => ({ link: record.link, rows: [...record.rows.values()] }))
}
