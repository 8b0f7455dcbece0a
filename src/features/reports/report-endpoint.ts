import { Readable } from 'node:stream'
import type { Configuration } from '#config/configuration/configuration.ts'
import { NotCreated, throwFailures } from '#config/configuration/create-at.ts'
import { type BoundParameter, reportParameters } from '#config/report-statements/report-statement.ts'
import type { ReportList, ReportParameter, ReportReference } from '#features/reports/contract/reports.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject } from '#kernel/json.ts'
import { KeyedQueue } from '#kernel/keyed-queue.ts'
import type { Logger } from '#kernel/logger.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { answer, emptyAnswer } from '#sdk/api/json-answer.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import type { Translate } from '#sdk/page/configured-texts.ts'
import { ReportTable, type ServedReport, serveReport } from './report.ts'
import { reportCsv } from './report-csv.ts'
import type { ReportReader, ReportRow } from './report-reader.ts'
import { reportXlsx } from './report-xlsx.ts'
import { maxReference, readShownReport } from './shown-report.ts'

/** A request to the reports of a portal. */
export interface ReportCall {
  readonly exchange: Exchange
  /** The ids of the orgs that the caller may see. A report without one of them does not exist for the caller. */
  readonly orgs: ReadonlySet<string>
  /** The caller, by the attribute that identifies users in the portal; for the log. */
  readonly login: string
  /** Names and descriptions in the caller's language. */
  readonly translate: Translate
  /** The login, for `currentUser`. Throws ACCESS_DENIED if it belongs to another user. */
  ownLogin(): Promise<string>
}

export interface ReportParts {
  readonly reports: readonly ServedReport[]
  readonly store: ReportReader
  readonly secrets: Pick<SecretBox, 'seal' | 'open'>
  readonly clock: Clock
  readonly log: Logger
  readonly limits?: ReportLimits
  readonly meter?: ReportMeter | undefined
}

export interface ReportLimits {
  readonly rows: Readonly<Record<ReportFormat, number>>
  /** From the request to the last byte. */
  readonly timeoutMillis: number
}

/** A workbook has to fit in memory, and no one reads a page with more rows. */
export const usualLimits: ReportLimits = { rows: { json: 10_000, csv: 100_000, xlsx: 10_000 }, timeoutMillis: 30_000 }

const busy = (reason: string): GatewayError =>
  new GatewayError('TOO_MANY_REQUESTS', reason, {
    publicText: 'Other reports are running. Try again in a few seconds.',
    retryAfter: 5,
  })

const types: Readonly<Record<ReportFormat, string>> = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
}

interface Run {
  readonly report: ServedReport
  readonly values: ReportValues
  readonly format: ReportFormat
}

/** The operations of the Main API below `reports`. What the caller may not see is answered like what does not exist. */
export class Reports {
  readonly #parts: ReportParts
  readonly #limits: ReportLimits
  readonly #references: ReportReferences
  /** Reports take long, so no user runs more than two at once, and all users together four. */
  readonly #running = new KeyedQueue({ width: 2, maxPerKey: 2, maxPending: 4, refuse: busy })
  /** Bodies that arrive. A slow one takes no place of a report that runs. */
  readonly #arriving = new KeyedQueue({ width: 2, maxPerKey: 2, maxPending: 16, refuse: busy })

  constructor(parts: ReportParts) {
    this.#parts = parts
    this.#limits = parts.limits ?? usualLimits
    this.#references = new ReportReferences(parts.secrets, parts.clock)
  }

  async list({ orgs, login, translate }: ReportCall, org: string): Promise<GatewayResponse> {
    if (!orgs.has(org)) throw new GatewayError('NOT_FOUND', `no org "${org}" for "${login}"`)
    const reports = this.#parts.reports.filter((report) => report.org === org)
    return answer({
      reports: reports.map((report) => ({
        ...titleOf(report, translate),
        orgID: org,
        parameters: report.parameters.filter((parameter): parameter is ReportParameter => parameter !== 'currentUser'),
      })),
    } satisfies ReportList)
  }

  async show(call: ReportCall, name: string): Promise<GatewayResponse> {
    const { request } = call.exchange
    const report = this.#find(name, call)
    if (report === undefined) {
      // OpenUnison's page asks whether the address of workbooks exists before it sends a report to it.
      if (name === 'excelx') return emptyAnswer(204)
      throw new GatewayError('NOT_FOUND', `no report "${name}" for "${call.login}"`, { publicText: 'Report not found' })
    }
    const currentUser = report.parameters.includes('currentUser') ? await call.ownLogin() : undefined
    const { values, format } = readReportQuery(request.query, report, currentUser)
    if (format !== 'reference') return await this.#run({ report, values, format }, call)
    const reportid = await this.#references.make({ report, values }, call.exchange.subject.identity, fileMillis)
    return answer({ reportid } satisfies ReportReference)
  }

  #find(name: string, { orgs }: ReportCall): ServedReport | undefined {
    const wanted = name.toLowerCase()
    const found = this.#parts.reports.find((report) => report.name.toLowerCase() === wanted)
    return found?.org !== undefined && orgs.has(found.org) ? found : undefined
  }

  /** A user who may no longer see the report does not get it by an earlier reference either. */
  async #referred(reference: string, call: ReportCall): Promise<Run> {
    const referred = await this.#references.read(reference, call.exchange.subject.identity)
    const report = referred && this.#find(referred.name, call)
    if (report === undefined || report.parameters.some((name) => referred?.values[name] === undefined)) {
      const publicText = 'Report no longer available'
      throw new GatewayError('NOT_FOUND', `no report of that reference for "${call.login}"`, { publicText })
    }
    return { report, values: referred?.values ?? {}, format: 'xlsx' }
  }

  async file(call: ReportCall, reference: string): Promise<GatewayResponse> {
    return await this.#run(await this.#referred(reference, call), call)
  }

  /**
   * OpenUnison's page sends back the report that it shows, and gets a workbook. Nothing that was sent is written into
   * the workbook: the report runs again, with the same values, for a caller who may still see it.
   */
  async workbook(call: ReportCall): Promise<GatewayResponse> {
    const { request, subject } = call.exchange
    return await this.file(call, await this.#arriving.run(subject.identity, () => readShownReport(request)))
  }

  async #run(run: Run, { exchange, login, translate }: ReportCall): Promise<GatewayResponse> {
    const { report, values, format } = run
    const { request } = exchange
    const headers = headersOf(report, format)
    if (request.method === 'HEAD') return { status: 200, headers }
    const { store, log } = this.#parts
    const { rows, timeoutMillis } = this.#limits
    const reportid = format === 'json' ? await this.#references.make(run, exchange.subject.identity, shownMillis) : ''
    const started = performance.now()
    const count = (outcome: string): void =>
      this.#parts.meter?.ran(report.name, format, outcome, performance.now() - started)
    const endTurn = await this.#takeTurn(exchange.subject.identity, count)
    let stop = async (): Promise<void> => endTurn()
    try {
      const { places, ...statement } = report.statement
      const cursor = await store.run({
        ...statement,
        values: places.map((name) => values[name] ?? ''),
        limit: rows[format] + 1,
        timeoutMillis,
      })
      stop = async () => {
        request.signal.removeEventListener('abort', stop)
        await cursor.close?.()
        endTurn()
      }
      request.signal.addEventListener('abort', stop, { once: true })
      if (request.signal.aborted) throw new GatewayError('REQUEST_TIMEOUT', 'the client is gone')
      const table = new ReportTable(report, cursor, rows[format])
      const finish = (): void => {
        const millis = Math.round(performance.now() - started)
        const { count: found, truncated } = table
        count('done')
        log.info('report', {
          report: report.name,
          login,
          format,
          rows: found,
          truncated,
          millis,
          requestId: request.id,
        })
      }
      if (format === 'xlsx') {
        const body = await reportXlsx(report, table, timeoutMillis - (performance.now() - started))
        await stop()
        finish()
        return { status: 200, headers, body }
      }
      const pieces = format === 'csv' ? reportCsv(report, table) : reportJson(report, table, { translate, reportid })
      return { status: 200, headers, body: streamed(pieces, stop, finish, () => count('failed')) }
    } catch (error) {
      count('failed')
      await stop()
      throw error
    }
  }

  async #takeTurn(identity: Identity, count: (outcome: string) => void): Promise<() => void> {
    try {
      return await this.#running.enter(identity)
    } catch (error) {
      count('refused')
      throw error
    }
  }
}

/**
 * Any end of the stream ends the report; one that fails half-way cuts off the response, so that it does not look
 * complete.
 */
function streamed(
  pieces: AsyncGenerator<string>,
  stop: () => Promise<void>,
  finish: () => void,
  cutOff: () => void,
): Readable {
  const body = Readable.from(endedBy(pieces, stop), { objectMode: false })
  body.once('end', finish)
  body.once('close', () => {
    if (!body.readableEnded) cutOff()
    void stop()
  })
  return body
}

/** Ends the report before the last byte, so that sequential requests find a free slot. */
async function* endedBy(pieces: AsyncGenerator<string>, stop: () => Promise<void>): AsyncGenerator<string> {
  try {
    yield* pieces
  } finally {
    await stop()
  }
}

/** Personal data must not be cached. */
function headersOf({ name }: ServedReport, format: ReportFormat): Record<string, string> {
  const headers = { 'content-type': types[format], 'cache-control': 'no-store' }
  if (format === 'json') return headers
  const plain = name.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replaceAll(/^[-.]+|[-.]+$/g, '') || 'report'
  const exact = encodeURIComponent(name.toWellFormed()).replaceAll(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  const disposition = `attachment; filename="${plain}.${format}"; filename*=UTF-8''${exact}.${format}`
  return { ...headers, 'content-disposition': disposition }
}

/** The name identifies the report in every language. */
function titleOf({ name, description }: ServedReport, translate: Translate) {
  const label = translate(name)
  return { name, ...(label === name ? {} : { label }), description: translate(description) }
}

/** OpenUnison's form, written while rows arrive. */
async function* reportJson(
  report: ServedReport,
  table: ReportTable,
  { translate, reportid }: { readonly translate: Translate; readonly reportid: string },
): AsyncGenerator<string> {
  const { headerFields, dataFields } = report
  const head = JSON.stringify({ ...titleOf(report, translate), headerFields, dataFields, reportid })
  const grouped = report.groupBy !== undefined
  const members = [memberWriter(headerFields), memberWriter(dataFields)] as const
  // Without groups there is one group of all rows, even if there are none.
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

interface ReferredReport {
  readonly name: string
  readonly values: ReportValues
}

/** A page may show a report for a while before its reader wants the file. */
const shownMillis = 60 * 60_000
const fileMillis = 10 * 60_000

/**
 * References to reports with their values, each for one user and for a limited time. Any gateway of the
 * installation reads them.
 */
class ReportReferences {
  readonly #secrets: Pick<SecretBox, 'seal' | 'open'>
  readonly #clock: Clock

  constructor(secrets: Pick<SecretBox, 'seal' | 'open'>, clock: Clock) {
    this.#secrets = secrets
    this.#clock = clock
  }

  async make({ report, values }: Pick<Run, 'report' | 'values'>, user: Identity, millis: number): Promise<string> {
    const until = this.#clock().getTime() + millis
    return await this.#secrets.seal({ name: report.name, values: { ...values }, until }, user)
  }

  /** Undefined for one that is expired, another user's, or invalid. */
  async read(reference: string, user: Identity): Promise<ReferredReport | undefined> {
    if (reference.length > maxReference) return undefined
    const opened = await this.#secrets.open(reference, user).catch(() => undefined)
    const { name, values, until } = opened ?? {}
    if (typeof name !== 'string' || typeof until !== 'number' || !isJsonObject(values)) return undefined
    if (until < this.#clock().getTime()) return undefined
    const given = reportParameters.flatMap((parameter) => {
      const value = values[parameter]
      return typeof value === 'string' ? [[parameter, value] as const] : []
    })
    return { name, values: Object.fromEntries(given) }
  }
}

/**
 * Throws an Error, with the place in the YAML, for a statement that the database rejects, so that it is found
 * before anyone runs it. A database that does not answer is ignored.
 */
export async function createReports(
  configured: Configuration['reports'],
  parts: Omit<ReportParts, 'reports'>,
): Promise<Reports> {
  const reports = Array.from(configured.values(), ({ spec, at }) => ({ report: serveReport(spec), at }))
  const failures: NotCreated[] = []
  for (const { report, at } of reports) {
    try {
      await parts.store.check(report.statement)
    } catch (cause) {
      if (cause instanceof GatewayError && cause.code === 'INTERNAL') {
        const reason = `spec.sql: the database does not understand it: ${cause.message}`
        failures.push(new NotCreated(at, new Error(reason, { cause })))
        continue
      }
      parts.log.warn('the reports were not checked against the database', { err: cause })
      break
    }
  }
  throwFailures(failures)
  return new Reports({ ...parts, reports: reports.map(({ report }) => report) })
}

export interface ReportMeter {
  /** `outcome`: `done`, `refused` if too many run already, or `failed`, also for a response that was cut off. */
  ran(report: string, format: string, outcome: string, millis: number): void
}

type ReportFormat = 'json' | 'csv' | 'xlsx'
type ReportValues = Readonly<Partial<Record<BoundParameter, string>>>

interface AskedReport {
  readonly values: ReportValues
  /** `reference`: a name under which the file can be fetched. */
  readonly format: ReportFormat | 'reference'
}

const formats: readonly ReportFormat[] = ['json', 'csv', 'xlsx']
const maxUserKey = 256

/** BAD_REQUEST, with all errors, for anything but one value for each parameter that the report declares. */
function readReportQuery(query: URLSearchParams, report: ServedReport, currentUser: string | undefined): AskedReport {
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
/** The last year with four digits. */
const latest = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** In the format of the views, so that texts can be compared. A date means the whole day. */
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
