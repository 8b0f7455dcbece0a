import * as z from 'zod'
import type { Wire } from '#kernel/wire.ts'

/** The parameters that the caller has to fill in before running a report: days or times, and a login. */
export const reportParameter = z.enum(['beginDate', 'endDate', 'userKey'])
export type ReportParameter = Wire<typeof reportParameter>

export const reportInfo = z.object({
  name: z.string(),
  label: z.string().describe("The name in the caller's language; absent where it is the same.").optional(),
  description: z.string(),
  orgID: z.string(),
  parameters: z.array(reportParameter),
})
export type ReportInfo = Wire<typeof reportInfo>

/** GET reports/org/{orgId}. */
export const reportList = z.object({ reports: z.array(reportInfo) })
export type ReportList = Wire<typeof reportList>

export const reportGroup = z.object({
  header: z
    .record(z.string(), z.string())
    .describe(
      'By header field; empty where the report has no groups. A field without a value is left out, also in the rows.',
    ),
  data: z.array(z.record(z.string(), z.string())).describe('By data field.'),
})
export type ReportGroup = Wire<typeof reportGroup>

/**
 * GET reports/{name}?beginDate=&endDate=&userKey=, with exactly the parameters that the report declares. Times are
 * milliseconds since 1970, or ISO 8601; a date in endDate includes that whole day (UTC). `&format=csv` and
 * `&format=xlsx` return a file instead, `&excel=true` a ReportReference.
 */
export const reportResult = z.object({
  name: z.string(),
  label: z.string().describe("The name in the caller's language; absent where it is the same.").optional(),
  description: z.string(),
  headerFields: z.array(z.string()),
  dataFields: z.array(z.string()),
  grouping: z.array(reportGroup),
  truncated: z.literal(true).describe('There are more rows than are shown. Absent when there are not.').optional(),
  reportid: z.string().describe('What PUT reports/excelx finds the report by, for this caller and an hour.'),
})
export type ReportResult = Wire<typeof reportResult>

/**
 * PUT reports/excelx: the whole result, as OpenUnison's page sends it, or its `reportid` alone. Only that is read: the
 * workbook is made from the database.
 */
export const shownReport = z.object({ reportid: z.string() })

/** The file is at `reports/excel/{reportid}/{any file name}` for ten minutes, for this caller only. */
export const reportReference = z.object({ reportid: z.string() })
export type ReportReference = Wire<typeof reportReference>
