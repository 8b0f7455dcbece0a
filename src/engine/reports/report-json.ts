import type { ReportTable } from '#engine/reports/report-table.ts'
import type { ServedReport } from '#engine/reports/served-report.ts'
import type { ReportRow } from '#storage/reports/report-store.ts'

/** The predecessor's form, written while rows come in. */
export async function* reportJson(report: ServedReport, table: ReportTable): AsyncGenerator<string> {
  const { name, description, headerFields, dataFields } = report
  const head = JSON.stringify({ name, description, headerFields, dataFields })
  const grouped = report.groupBy !== undefined
  const members = [memberWriter(headerFields), memberWriter(dataFields)] as const
  // Without groups there is one that has everything, also when that is nothing.
  let text = `${head.slice(0, -1)},"grouping":[${grouped ? '' : '{"header":{},"data":['}`
  let inGroup = !grouped
  let first = true
  for (let rows = await table.next(); rows !== undefined; rows = await table.next()) {
    for (const { opens, header, data } of rows) {
      if (opens) {
        text += `${inGroup ? ']},' : ''}{"header":${members[0](header)},"data":[`
        inGroup = true
        first = true
      }
      text += `${first ? '' : ','}${members[1](data)}`
      first = false
    }
    yield text
    text = ''
  }
  yield `${text}${inGroup ? ']}' : ''}]${table.truncated ? ',"truncated":true' : ''}}`
}

/** An object with these members; those without a value are left out. */
function memberWriter(fields: readonly string[]): (row: ReportRow) => string {
  const names = fields.map((field) => `${JSON.stringify(field)}:`)
  return (row) => {
    const members = row.flatMap((value, i) => (value === null ? [] : [`${names[i]}${JSON.stringify(value)}`]))
    return `{${members.join(',')}}`
  }
}
