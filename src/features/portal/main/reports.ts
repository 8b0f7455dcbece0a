import { loginOf, type MainParts, requireOwnLogin } from '#features/portal/front/main-parts.ts'
import { notFound } from '#sdk/api/json-answer.ts'
import { pathBelow } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

export const reportOperations = {
  listReports: {
    summary: 'The reports of one branch',
    answer: 'ReportList',
    handle: answerReports,
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
    handle: answerReports,
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
    handle: answerReports,
  },
  getReportFile: {
    summary: 'The file of a report',
    answers: {
      '200': {
        description: 'A workbook',
        type: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
      },
    },
    handle: answerReports,
  },
} satisfies OperationTable<MainParts>

async function answerReports(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const { host, visibility } = parts
  if (host.reports === undefined) throw notFound('there are no reports')
  return await host.reports.answer({
    exchange,
    path: pathBelow('/main', exchange).replace(/^\/[^/]+/, ''),
    orgs: await visibility.orgIds(exchange.subject),
    login: loginOf(parts, exchange.subject),
    translate: parts.translate,
    ownLogin: () => requireOwnLogin(parts, exchange),
  })
}
