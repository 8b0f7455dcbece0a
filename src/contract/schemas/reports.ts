import * as z from 'zod'

/** What the one who asks has to choose before a report can be run; days or times, and a login. */
export const reportParameter = z.enum(['beginDate', 'endDate', 'userKey'])

export const reportInfo = z.object({
  name: z.string(),
  description: z.string(),
  orgID: z.string(),
  parameters: z.array(reportParameter),
})

/** GET reports/org/{orgId}. */
export const reportList = z.object({
  reports: z.array(reportInfo),
})

export const reportGroup = z.object({
  header: z
    .record(z.string(), z.string())
    .describe(
      'By header field; empty where the report has no groups. A field without a value is left out, also in the rows.',
    ),
  data: z.array(z.record(z.string(), z.string())).describe('By data field.'),
})

/** GET reports/{name}?beginDate=&endDate=&userKey=, with every parameter that the report declares and no other. Times are milliseconds since 1970, or ISO 8601; a day alone is, in endDate, that whole day (UTC). `&format=csv` and `&format=xlsx` give a file instead, `&excel=true` a ReportReference. */
export const reportResult = z.object({
  name: z.string(),
  description: z.string(),
  headerFields: z.array(z.string()),
  dataFields: z.array(z.string()),
  grouping: z.array(reportGroup),
  truncated: z.literal(true).describe('There are more rows than are shown. Absent when there are not.').optional(),
})

/** The file is at `reports/excel/{reportid}/{any file name}`, for the one who asked alone, and for ten minutes. */
export const reportReference = z.object({
  reportid: z.string(),
})
