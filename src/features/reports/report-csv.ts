import { byteOrderMark, csvLine } from '#kernel/text/csv.ts'
import type { ReportTable, ServedReport } from './report.ts'

/** RFC 4180, one line per row, with the fields of its group first. */
export async function* reportCsv(report: ServedReport, table: ReportTable): AsyncGenerator<string> {
  yield byteOrderMark + csvLine([...report.headerFields, ...report.dataFields])
  for (let rows = await table.next(); rows !== undefined; rows = await table.next()) {
    yield rows.map(({ header, data }) => csvLine([...header, ...data])).join('')
  }
  if (table.truncated) yield csvLine([leftOut(table.count)])
}

export const leftOut = (rows: number): string => `The first ${rows} rows. The others were left out.`
