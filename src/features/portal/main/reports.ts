import { loginOf, type MainParts, requireOwnLogin } from '#features/portal/front/main-parts.ts'
import type { ReportCall, Reports } from '#features/reports/report-endpoint.ts'
import { notFound } from '#sdk/api/json-answer.ts'
import type { Handler } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const reportOperations = {
  listReports: {
    summary: 'The reports of one branch',
    answer: 'ReportList',
    handle: byReports((reports, call, org) => reports.list(call, org)),
  },
  runReport: {
    summary: 'Runs a report',
    query: {
      beginDate: 'Where the report declares it',
      endDate: 'Where the report declares it',
      userKey: 'Where the report declares it',
      format: '"csv" or "xlsx": a file instead of JSON',
      excel: '"true": the id of a file instead of the report',
    },
    answer: 'ReportAnswer',
    handle: byReports((reports, call, name) => reports.show(call, name)),
  },
  convertReport: {
    summary: 'A workbook of a report that the caller sees, run again',
    body: 'ShownReport',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
    failures: { '404': 'The report is older than an hour, or the caller may no longer see it' },
    handle: byReports((reports, call) => reports.workbook(call)),
  },
  getReportFile: {
    summary: 'The file of a report',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
    handle: byReports((reports, call, reference) => reports.file(call, reference)),
  },
} satisfies OperationTable<MainParts>

/** What the caller may see of the reports, if there are any. */
function byReports(
  answer: (reports: Reports, call: ReportCall, name: string) => Promise<GatewayResponse>,
): Handler<MainParts> {
  return async (parts, exchange, name = '') => {
    const { host, visibility, translate } = parts
    if (host.reports === undefined) throw notFound('there are no reports')
    const call: ReportCall = {
      exchange,
      orgs: await visibility.orgIds(exchange.subject),
      login: loginOf(parts, exchange.subject),
      translate,
      ownLogin: () => requireOwnLogin(parts, exchange),
    }
    return await answer(host.reports, call, name)
  }
}
