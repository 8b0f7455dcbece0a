import type { ReportSpec } from '#model/report.ts'
import {
  type BoundParameter,
  declaredParameters,
  type ReportStatement,
  readReport,
} from '#sdk/report/report-statement.ts'

/** A report as it is run. */
export interface ServedReport {
  readonly name: string
  readonly description: string
  /** Undefined for one that nobody sees. */
  readonly org: string | undefined
  /** Every one of them has to have a value. */
  readonly parameters: readonly BoundParameter[]
  readonly statement: ReportStatement
  /** Empty where rows are not grouped. */
  readonly headerFields: readonly string[]
  readonly dataFields: readonly string[]
  readonly groupBy: string | undefined
}

/** Throws an Error for a statement that the check of the configuration refuses. */
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
