import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { accessQuery } from '../api/access.ts'
import { requestsQuery } from '../api/requests.ts'
import { stateFilters } from './request-states.ts'

/** What the user has of one workflow. */
export interface Owned {
  /** The user has access that this workflow granted. */
  readonly has: boolean
  /** When that access expires, if it does. */
  readonly expires?: string
  /** The id of an open request about the user. */
  readonly pending?: string
}

const nothing: Owned = { has: false }

/**
 * What the user has, by workflow, as far as requests say: access that came in another way is not known. Rows of a
 * dynamic workflow share one name, so nothing is known about them.
 */
export function useOwned(): (workflow: { readonly name: string; readonly encryptedParams?: string }) => Owned {
  const access = useQuery(accessQuery).data
  const open = useInfiniteQuery(requestsQuery('me', stateFilters['open']?.states ?? [])).data
  const byName = useMemo(() => {
    const owned = new Map<string, Owned>()
    for (const { workflow } of access?.groups ?? []) if (workflow !== undefined) owned.set(workflow.name, { has: true })
    // The soonest is the first, and the one that an extension must be later than.
    for (const { workflow, expires } of access?.access ?? []) {
      if (workflow === undefined || owned.get(workflow.name)?.expires !== undefined) continue
      owned.set(workflow.name, { has: true, expires })
    }
    for (const { id, name } of open?.pages.flatMap(({ requests }) => requests) ?? []) {
      owned.set(name, { ...(owned.get(name) ?? nothing), pending: id })
    }
    return owned
  }, [access, open])
  return ({ name, encryptedParams }) => (encryptedParams === undefined ? (byName.get(name) ?? nothing) : nothing)
}
