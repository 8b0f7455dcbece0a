import type { ReportSpec } from '#config/kinds/portal.ts'
import {
  type BoundParameter,
  declaredParameters,
  type ReportStatement,
  readReport,
} from '#config/report-statements/report-statement.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ReportCursor, ReportRow } from './report-reader.ts'

/** A report, ready to run. */
export interface ServedReport {
  readonly name: string
  readonly description: string
  /** Undefined for one that no one sees. */
  readonly org: string | undefined
  /** Each of them must have a value. */
  readonly parameters: readonly BoundParameter[]
  readonly statement: ReportStatement
  /** Empty if rows are not grouped. */
  readonly headerFields: readonly string[]
  readonly dataFields: readonly string[]
  readonly groupBy: string | undefined
}

/** Throws an Error for a statement that the configuration check rejects. */
export function serveReport(spec: ReportSpec): ServedReport {
  const { name, orgId } = spec
  const { statement, problems } = readReport(spec)
  if (statement === undefined) throw new Error(`the sql of the report "${name}" ${problems.join('; ')}`)
  const grouped = spec.groupings === true
  return {
    name,
    description: spec.description ?? '',
    org: orgId === '' ? undefined : orgId,
    parameters: declaredParameters(spec),
    statement,
    headerFields: grouped ? (spec.headerFields ?? []) : [],
    dataFields: spec.dataFields ?? [],
    groupBy: grouped ? spec.groupBy : undefined,
  }
}

/** A row of a report. */
interface TableRow {
  /** The first of a group. */
  readonly opens: boolean
  /** In the order of the report's fields. */
  readonly header: ReportRow
  readonly data: ReportRow
}

/** The rows of a cursor, up to a limit, as the report's fields. */
export class ReportTable {
  readonly #cursor: ReportCursor
  readonly #header: readonly number[]
  readonly #data: readonly number[]
  readonly #groupBy: number | undefined
  readonly #limit: number
  #group: string | null | undefined
  #count = 0
  #truncated = false

  /**
   * The cursor must return rows beyond `limit` if there are any. INTERNAL for a field that the statement did not
   * select.
   */
  constructor(report: ServedReport, cursor: ReportCursor, limit: number) {
    this.#cursor = cursor
    this.#limit = limit
    this.#header = report.headerFields.map((field) => columnOf(field, cursor.columns, report.name))
    this.#data = report.dataFields.map((field) => columnOf(field, cursor.columns, report.name))
    this.#groupBy = report.groupBy === undefined ? undefined : columnOf(report.groupBy, cursor.columns, report.name)
  }

  /** How many rows were read so far. */
  get count(): number {
    return this.#count
  }

  /** There are more rows than the limit; known after all of them were read. */
  get truncated(): boolean {
    return this.#truncated
  }

  /** Undefined after the last row. */
  async next(): Promise<readonly TableRow[] | undefined> {
    if (this.#truncated) return undefined
    const rows = await this.#cursor.next()
    if (rows === undefined) return undefined
    const shown = rows.slice(0, this.#limit - this.#count)
    this.#truncated = shown.length < rows.length
    this.#count += shown.length
    return shown.map((row) => this.#toRow(row))
  }

  #toRow(row: ReportRow): TableRow {
    const group = this.#groupBy === undefined ? undefined : (row[this.#groupBy] ?? null)
    const opens = this.#groupBy !== undefined && group !== this.#group
    this.#group = group
    const pick = (column: number): string | null => row[column] ?? null
    return { opens, header: this.#header.map(pick), data: this.#data.map(pick) }
  }
}

/** Databases differ in the letter case of unquoted names; an exact match wins. */
function columnOf(field: string, columns: readonly string[], report: string): number {
  const exact = columns.indexOf(field)
  const found = exact >= 0 ? exact : columns.findIndex((name) => name.toLowerCase() === field.toLowerCase())
  if (found >= 0) return found
  throw new GatewayError('INTERNAL', `the report "${report}" does not select "${field}"`)
}
