import { queryOptions } from '@tanstack/react-query'
import type {
  ConsoleGroupDetails,
  ConsolePersonDetails,
  EndedPersonSessions,
  PersonFactors,
  PersonSessions,
  RemovedFactors,
  StartedDeactivation,
} from '#features/portal/contract/console-people.ts'
import { call } from './call.ts'
import { consoleAddress } from './console.ts'

/** The path of a user or group in the console's API, such as `people/ada/runs`. */
export const entryPath = (list: 'people' | 'groups', id: string, ...rest: readonly string[]): string =>
  [list, encodeURIComponent(id), ...rest].join('/')

const read = <T>(path: string) =>
  queryOptions({
    queryKey: ['admin', path],
    queryFn: ({ signal }) => call<T>(consoleAddress(path), { signal }),
  })

export const personQuery = (id: string) => read<ConsolePersonDetails>(entryPath('people', id))

export const personSessionsQuery = (id: string) => read<PersonSessions>(entryPath('people', id, 'sessions'))

export const personFactorsQuery = (id: string) => read<PersonFactors>(entryPath('people', id, 'factors'))

export const groupQuery = (id: string) => read<ConsoleGroupDetails>(entryPath('groups', id))

const change = <T>(id: string, rest: readonly string[], body: object): Promise<T> =>
  call<T>(consoleAddress(entryPath('people', id, ...rest)), { method: 'POST', body })

/** Ends one session, or all without one. */
export const endPersonSessions = (id: string, reason: string, session?: string): Promise<EndedPersonSessions> =>
  change(id, ['sessions', 'end'], { reason, ...(session === undefined ? {} : { session }) })

export const resetFactors = (id: string, reason: string): Promise<RemovedFactors> =>
  change(id, ['factors', 'reset'], { reason })

export const deactivate = (id: string, reason: string): Promise<StartedDeactivation> =>
  change(id, ['deactivate'], { reason })
