import type { ServedReport } from '#engine/reports/served-report.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { BoundParameter } from '#sdk/report/report-statement.ts'

export type ReportFormat = 'json' | 'csv' | 'xlsx'
export type ReportValues = Readonly<Partial<Record<BoundParameter, string>>>

export interface AskedReport {
  readonly values: ReportValues
  /** `reference`: a name under which the file can be fetched. */
  readonly format: ReportFormat | 'reference'
}

const formats: readonly ReportFormat[] = ['json', 'csv', 'xlsx']
const maxUserKey = 256

/** BAD_REQUEST, with all that is wrong, for anything but one value for each parameter that the report declares. */
export function readReportQuery(
  query: URLSearchParams,
  report: ServedReport,
  currentUser: string | undefined,
): AskedReport {
  const problems: string[] = []
  const values: Partial<Record<BoundParameter, string>> = {}
  const asked = report.parameters.filter((name) => name !== 'currentUser')
  for (const name of new Set(query.keys())) {
    const known = name === 'format' || name === 'excel' || asked.some((parameter) => parameter === name)
    if (!known) problems.push(`The report has no parameter "${name.slice(0, 80)}".`)
    else if (query.getAll(name).length > 1) problems.push(`${name} may be given once.`)
  }
  for (const name of asked) {
    const given = query.get(name)
    if (given === null || given.trim() === '') problems.push(`${name} is required.`)
    else values[name] = (name === 'userKey' ? readUserKey : readTime)(given, name, problems)
  }
  if ((values.beginDate ?? '') > (values.endDate ?? '\uffff')) problems.push('beginDate must not be after endDate.')
  if (currentUser !== undefined) values.currentUser = currentUser
  const format = readFormat(query, problems)
  if (problems.length > 0) throw new GatewayError('BAD_REQUEST', problems.join(' '), { publicText: problems.join(' ') })
  return { values, format }
}

function readFormat(query: URLSearchParams, problems: string[]): AskedReport['format'] {
  const wanted = query.get('format')
  const excel = query.get('excel')
  const format = formats.find((word) => word === (wanted ?? 'json'))
  if (format === undefined) problems.push(`format must be one of ${formats.join(', ')}.`)
  if (excel !== null && !/^(?:true|false)$/i.test(excel)) problems.push('excel must be true or false.')
  if (excel?.toLowerCase() !== 'true') return format ?? 'json'
  if (wanted !== null) problems.push('format and excel cannot be combined.')
  return 'reference'
}

function readUserKey(given: string, name: string, problems: string[]): string {
  const usable = given.length <= maxUserKey && given.isWellFormed() && !given.includes('\0')
  if (!usable) problems.push(`${name} is not a login.`)
  return given
}

const day = /^\d{4}-\d\d-\d\d$/
const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/
/** The last year that is written with four digits. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** As the views write times, so that texts are compared. A day is all of it. */
function readTime(given: string, name: string, problems: string[]): string {
  const time = toMillis(given, name)
  if (time !== undefined && time >= 0 && time <= latest) return new Date(time).toISOString()
  problems.push(`${name} must be a day such as 2026-01-31, a time in ISO 8601, or milliseconds since 1970.`)
  return ''
}

function toMillis(given: string, name: string): number | undefined {
  if (/^\d{1,15}$/.test(given)) return Number(given)
  if (day.test(given)) {
    const start = Date.parse(`${given}T00:00:00.000Z`)
    const real = !Number.isNaN(start) && new Date(start).toISOString().startsWith(given)
    if (!real) return undefined
    return name === 'endDate' ? start + 86_400_000 - 1 : start
  }
  const time = moment.test(given) ? Date.parse(given) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}
