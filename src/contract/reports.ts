/** Below `reports` of the Main API. */

/** GET reports/org/{orgId}. */
export interface ReportList {
  readonly reports: readonly ReportInfo[]
}

/** What the one who asks has to choose before a report can be run; days or times, and a login. */
export type ReportParameter = 'beginDate' | 'endDate' | 'userKey'

export interface ReportInfo {
  readonly name: string
  readonly description: string
  readonly orgID: string
  readonly parameters: readonly ReportParameter[]
}

/**
 * GET reports/{name}?beginDate=&endDate=&userKey=, with every parameter that the report declares and no other. Times are
 * milliseconds since 1970, or ISO 8601; a day alone is, in endDate, that whole day (UTC). `&format=csv` and `&format=xlsx`
 * give a file instead, `&excel=true` a ReportReference.
 */
export interface ReportResult {
  readonly name: string
  readonly description: string
  readonly headerFields: readonly string[]
  readonly dataFields: readonly string[]
  readonly grouping: readonly ReportGroup[]
  /** There are more rows than are shown. Absent when there are not. */
  readonly truncated?: true
}

export interface ReportGroup {
  /** By header field; empty where the report has no groups. A field without a value is left out, also in the rows. */
  readonly header: Readonly<Record<string, string>>
  /** By data field. */
  readonly data: readonly Readonly<Record<string, string>>[]
}

/** The file is at `reports/excel/{reportid}/{any file name}`, for the one who asked alone, and for ten minutes. */
export interface ReportReference {
  readonly reportid: string
}
