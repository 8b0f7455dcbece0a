import type { ReportTable, ServedReport } from '#engine/reports/report.ts'

/** Makes spreadsheets read the file as UTF-8. */
const byteOrderMark = '\ufeff'

/** RFC 4180, one line per row, with the fields of its group first. */
export async function* reportCsv(report: ServedReport, table: ReportTable): AsyncGenerator<string> {
  yield byteOrderMark + line([...report.headerFields, ...report.dataFields])
  for (let rows = await table.next(); rows !== undefined; rows = await table.next()) {
    yield rows.map(({ header, data }) => line([...header, ...data])).join('')
  }
  if (table.truncated) yield line([leftOut(table.count)])
}

export const leftOut = (rows: number): string => `The first ${rows} rows. The others were left out.`

const line = (values: readonly (string | null)[]): string => `${values.map((value) => cell(value ?? '')).join(',')}\r\n`

/**
 * A spreadsheet evaluates a cell that starts like a formula, even one that a user wrote into their own name; an
 * apostrophe makes it a text. Plain numbers stay unchanged.
 */
export function cell(value: string): string {
  const formula = /^[\s\p{C}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(value) && !/^[+-]?\d+(?:\.\d+)?$/.test(value)
  const text = formula ? `'${value}` : value
  return /[",\r\n;\t]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
