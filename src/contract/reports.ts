import type * as schema from './schemas/reports.ts'
import type { Wire } from './wire.ts'
/** Below `reports` of the Main API. */

/** GET reports/org/{orgId}. */
export type ReportList = Wire<typeof schema.reportList>

/** What the one who asks has to choose before a report can be run; days or times, and a login. */
export type ReportParameter = Wire<typeof schema.reportParameter>

export type ReportInfo = Wire<typeof schema.reportInfo>

/**
 * GET reports/{name}?beginDate=&endDate=&userKey=, with every parameter that the report declares and no other. Times are
 * milliseconds since 1970, or ISO 8601; a day alone is, in endDate, that whole day (UTC). `&format=csv` and `&format=xlsx`
 * give a file instead, `&excel=true` a ReportReference.
 */
export type ReportResult = Wire<typeof schema.reportResult>

export type ReportGroup = Wire<typeof schema.reportGroup>

/** The file is at `reports/excel/{reportid}/{any file name}`, for the one who asked alone, and for ten minutes. */
export type ReportReference = Wire<typeof schema.reportReference>
