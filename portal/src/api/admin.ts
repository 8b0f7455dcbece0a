import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import type {
  AdminAction,
  AdminIntervention,
  AdminRun,
  AdminRunDetails,
  AdminRuns,
  StatisticsView,
} from '#features/portal/contract/main-admin.ts'
import type { ScimJournalPage } from '#features/scim/contract/journal.ts'
import { call } from './call.ts'
import { admin } from './console.ts'

export const incidentsQuery = infiniteQueryOptions({
  queryKey: ['admin', 'incidents'],
  queryFn: ({ signal, pageParam }) =>
    call<AdminRuns>(admin(consoleRoutes.listIncidents, {}, { limit: '100', ...behind(pageParam) }), { signal }),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'run', id],
    queryFn: ({ signal }) => call<AdminRunDetails>(admin(consoleRoutes.getRun, { id }), { signal }),
  })

export interface Intervention extends AdminIntervention {
  readonly id: string
  readonly action: AdminAction
}

const interventionRoutes = {
  retry: consoleRoutes.retryRun,
  skip: consoleRoutes.skipRun,
  cancel: consoleRoutes.cancelRun,
} as const

export const intervene = ({ id, action, fence, reason, approver }: Intervention): Promise<AdminRun> =>
  call<AdminRun>(admin(interventionRoutes[action], { id }), {
    body: {
      fence,
      ...(reason === undefined || reason === '' ? {} : { reason }),
      ...(approver === undefined ? {} : { approver }),
    },
  })

export interface JournalFilter {
  readonly failed: boolean
  /** For example `1h`. */
  readonly since: string
}

export const journalQuery = ({ failed, since }: JournalFilter) =>
  infiniteQueryOptions({
    queryKey: ['admin', 'journal', failed, since],
    queryFn: ({ signal, pageParam }) =>
      journalPage({ since, limit: '100', ...(failed ? { failed: 'true' } : {}), ...behind(pageParam) }, signal),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  })

/** Statistics of a period, as of the time of the query. */
export const statisticsQuery = (period: string, span: () => Readonly<Record<'by' | 'from' | 'to', string>>) =>
  queryOptions({
    queryKey: ['admin', 'statistics', period],
    queryFn: ({ signal }) => call<StatisticsView>(admin(consoleRoutes.getStatistics, {}, span()), { signal }),
  })

const journalPage = (query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ScimJournalPage> =>
  call<ScimJournalPage>(admin(consoleRoutes.getScimJournal, {}, query), { signal })

const behind = (after: string): Readonly<Record<string, string>> => (after === '' ? {} : { after })
