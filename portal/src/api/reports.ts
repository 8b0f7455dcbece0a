import { queryOptions } from '@tanstack/react-query'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import type { ReportList, ReportParameter, ReportResult } from '#features/reports/contract/reports.ts'
import { call } from './call.ts'
import { download } from './download.ts'
import { main } from './main.ts'

export type ReportValues = Readonly<Partial<Record<ReportParameter, string>>>

export const reportListQuery = (org: string) =>
  queryOptions({
    queryKey: ['reports', org],
    queryFn: ({ signal }) => call<ReportList>(main(mainRoutes.listReports, { orgId: org }), { signal }),
    staleTime: 5 * 60_000,
  })

/** A report shows the time of its run, so only the user runs it again. */
export const reportQuery = (name: string, values: ReportValues) =>
  queryOptions({
    queryKey: ['report', name, values],
    queryFn: ({ signal }) => call<ReportResult>(main(mainRoutes.runReport, { name }, values), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    retry: false,
  })

export type ReportFile = 'csv' | 'xlsx'

export const downloadReport = (name: string, values: ReportValues, format: ReportFile): Promise<void> =>
  download(main(mainRoutes.runReport, { name }, { ...values, format }).address)
