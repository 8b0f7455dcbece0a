import { useIdle } from '@mantine/hooks'
import type { QueryKey } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'

/** A user who does nothing for this long may be away. */
export const awayMillis = 2 * 60_000
/** What is announced is read again at once, so this only covers what was missed. */
const announcedMillis = 60_000

let isAnnounced = false
const listeners = new Set<() => void>()

/** Whether the gateway announces changes at present. */
export function setAnnounced(next: boolean): void {
  isAnnounced = next
  for (const listener of listeners) listener()
}

const listen = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/**
 * How often to refresh data that may change; never while the user is away, since every call extends the session, which
 * should expire when unused.
 */
export function useLive(millis: number): number | false {
  const isIdle = useIdle(awayMillis, { initialState: false })
  const announced = useSyncExternalStore(listen, () => isAnnounced)
  if (isIdle) return false
  return announced ? Math.max(millis, announcedMillis) : millis
}

/** A list of sessions that is open: how the gateway is asked to announce changes, and what to read again then. */
export interface WatchedSessions {
  readonly query: Readonly<Record<string, string>>
  readonly queryKey: QueryKey
}

let watched: WatchedSessions | undefined

const setWatched = (next: WatchedSessions | undefined): void => {
  watched = next
  for (const listener of listeners) listener()
}

export const useWatchedSessions = (): WatchedSessions | undefined => useSyncExternalStore(listen, () => watched)

/**
 * Keeps a list of sessions current while it is open; returns how often to refresh it. `of` is the id of another user.
 */
export function useLiveSessions(queryKey: QueryKey, of?: string): number | false {
  const key = JSON.stringify(queryKey)
  useEffect(() => {
    const query: WatchedSessions['query'] = of === undefined ? { sessions: 'true' } : { sessionsOf: of }
    setWatched({ query, queryKey: JSON.parse(key) as QueryKey })
    return () => setWatched(undefined)
  }, [key, of])
  return useLive(30_000)
}

/** How often to refresh what the gateway doesn't announce; never while the user is away. */
export function usePolling(millis: number): number | false {
  return useIdle(awayMillis, { initialState: false }) ? false : millis
}
