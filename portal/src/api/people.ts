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
import * as consoleRoutes from '#features/portal/contract/console-routes.ts'
import { call } from './call.ts'
import { admin, consoleAddress, consolePath } from './console.ts'

const read = <T>(path: string) =>
  queryOptions({
    queryKey: ['admin', path],
    queryFn: ({ signal }) => call<T>(consoleAddress(path), { signal }),
  })

export const personQuery = (id: string) => read<ConsolePersonDetails>(consolePath(consoleRoutes.getPerson, { id }))

export const personSessionsQuery = (id: string) =>
  read<PersonSessions>(consolePath(consoleRoutes.listSessionsOfPerson, { id }))

export const personFactorsQuery = (id: string) =>
  read<PersonFactors>(consolePath(consoleRoutes.listFactorsOfPerson, { id }))

export const groupQuery = (id: string) => read<ConsoleGroupDetails>(consolePath(consoleRoutes.getGroup, { id }))

/** Ends one session, or all without one. */
export const endPersonSessions = (id: string, reason: string, session?: string): Promise<EndedPersonSessions> =>
  call(admin(consoleRoutes.endSessionsOfPerson, { id }), { body: { reason, session } })

export const resetFactors = (id: string, reason: string): Promise<RemovedFactors> =>
  call(admin(consoleRoutes.resetFactorsOfPerson, { id }), { body: { reason } })

export const deactivate = (id: string, reason: string): Promise<StartedDeactivation> =>
  call(admin(consoleRoutes.deactivatePerson, { id }), { body: { reason } })
