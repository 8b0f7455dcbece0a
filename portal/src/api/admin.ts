import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { mainPaths } from '#contract/main.ts'
import type {
  AdminAction,
  AdminIntervention,
  AdminRun,
  AdminRunDetails,
  AdminRuns,
  ScimCall,
  ScimJournalPage,
} from '#contract/main-admin.ts'
import { call } from './call.ts'
import { mainAddress } from './main.ts'

const pageSize = 500
/** A picture of so many calls or runs says enough. */
const maxPages = 6

export const incidentsQuery = infiniteQueryOptions({
  queryKey: ['admin', 'incidents'],
  queryFn: ({ signal, pageParam }) =>
    call<AdminRuns>(mainAddress([mainPaths.admin, 'incidents'], { limit: '100', ...behind(pageParam) }), { signal }),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
})

export const runQuery = (id: string) =>
  queryOptions({
    queryKey: ['admin', 'run', id],
    queryFn: ({ signal }) => call<AdminRunDetails>(mainAddress([mainPaths.admin, 'runs', id]), { signal }),
  })

export interface Intervention extends AdminIntervention {
  readonly id: string
  readonly action: AdminAction
}

export const intervene = ({ id, action, fence, reason }: Intervention): Promise<AdminRun> =>
  call<AdminRun>(mainAddress([mainPaths.admin, 'runs', id, action]), {
    method: 'POST',
    body: { fence, ...(reason === undefined || reason === '' ? {} : { reason }) },
  })

export interface JournalFilter {
  readonly failed: boolean
  /** Such as `1h`. */
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

/** What pictures are drawn from. `whole`: there is nothing older that was left out. */
export interface Sample<T> {
  readonly items: readonly T[]
  readonly whole: boolean
}

/** Runs since then, latest first. */
export const recentRunsQuery = (since: string, sinceMillis: number) =>
  queryOptions({
    queryKey: ['admin', 'recent-runs', since],
    queryFn: async ({ signal }): Promise<Sample<AdminRun>> => {
      const from = new Date(Date.now() - sinceMillis).toISOString()
      const sample = await collect(
        async (after) => {
          const query = { limit: String(pageSize), ...behind(after) }
          const { runs, next } = await call<AdminRuns>(mainAddress([mainPaths.admin, 'runs'], query), { signal })
          return { items: runs, next }
        },
        ({ created }) => created < from,
      )
      return { ...sample, items: sample.items.filter(({ created }) => created >= from) }
    },
  })

/** Calls of SCIM clients since then, latest first. */
export const recentCallsQuery = (since: string) =>
  queryOptions({
    queryKey: ['admin', 'recent-calls', since],
    queryFn: ({ signal }): Promise<Sample<ScimCall>> =>
      collect(async (after) => {
        const { entries, next } = await journalPage({ since, limit: String(pageSize), ...behind(after) }, signal)
        return { items: entries, next }
      }),
  })

const journalPage = (query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ScimJournalPage> =>
  call<ScimJournalPage>(mainAddress(mainPaths.scimJournal.split('/'), query), { signal })

const behind = (after: string): Readonly<Record<string, string>> => (after === '' ? {} : { after })

/** Page after page, until there are no more, one is too old, or there are enough. */
async function collect<T>(
  page: (after: string) => Promise<{ readonly items: readonly T[]; readonly next: string | undefined }>,
  isOld: (item: T) => boolean = () => false,
): Promise<Sample<T>> {
  const items: T[] = []
  let after = ''
  for (let pages = 0; pages < maxPages; pages += 1) {
    const { items: more, next } = await page(after)
    items.push(...more)
    const last = more.at(-1)
    if (next === undefined || (last !== undefined && isOld(last))) return { items, whole: true }
    after = next
  }
  return { items, whole: false }
}
