import { type ReportParts, Reports } from '#engine/reports/report-endpoint.ts'
import { serveReport } from '#engine/reports/served-report.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { ReportEndpoint } from '#sdk/filter/reports.ts'
import type { Configuration } from '#sdk/module/configuration.ts'

/**
 * Throws an Error, with the place in the YAML, for a report that the database does not understand, so that it is found
 * out before anybody runs it. A database that does not answer is not such a case.
 */
export async function createReports(
  configured: Configuration['reports'],
  parts: Omit<ReportParts, 'reports'>,
): Promise<ReportEndpoint> {
  const reports = Array.from(configured.values(), ({ spec, at }) => ({ report: serveReport(spec), at }))
  for (const { report, at } of reports) {
    try {
      await parts.store.check(report.statement.parts)
    } catch (cause) {
      if (cause instanceof GatewayError && cause.code === 'INTERNAL') {
        throw new Error(`${at}: spec.sql: the database does not understand it: ${cause.message}`, { cause })
      }
      parts.log.warn('the reports were not checked against the database', { err: cause })
      break
    }
  }
  return new Reports({ ...parts, reports: reports.map(({ report }) => report) })
}
