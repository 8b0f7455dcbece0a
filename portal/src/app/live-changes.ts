import { useDocumentVisibility, useIdle } from '@mantine/hooks'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import * as mainRoutes from '#features/portal/contract/main-routes.ts'
import { main } from '../api/main.ts'
import { awayMillis, setAnnounced, useWatchedSessions } from '../components/live.ts'

/** What to read again after an event of the gateway. */
export const staleAfter: Readonly<Record<string, readonly QueryKey[]>> = {
  // A run that ends may have changed the user's groups.
  requests: [['requests'], ['request'], ['access'], ['user'], ['notifications']],
  approvals: [['approvals'], ['approval'], ['decisions'], ['notifications']],
  runs: [
    ['admin', 'incidents'],
    ['admin', 'run'],
    ['admin', 'runs'],
    ['admin', 'statistics'],
    ['admin', 'approvals'],
    ['admin', 'workflows'],
  ],
  all: [
    ['requests'],
    ['request'],
    ['access'],
    ['user'],
    ['approvals'],
    ['approval'],
    ['decisions'],
    ['notifications'],
    ['account', 'sessions'],
    ['admin'],
  ],
}

/**
 * Reads again what the gateway says has changed. Closed while the user is away, since a session should expire when
 * unused, and while the tab is hidden, since a browser has few connections for all tabs; pages also refresh from time
 * to time where no stream can be opened.
 */
export function useLiveChanges(): void {
  const client = useQueryClient()
  const isFirst = useRef(true)
  const isAway = useIdle(awayMillis, { initialState: false })
  const isHidden = useDocumentVisibility() === 'hidden'
  const watched = useWatchedSessions()
  useEffect(() => {
    if (isAway || isHidden) return
    const source = new EventSource(main(mainRoutes.getEvents, {}, watched?.query).address)
    source.onopen = () => setAnnounced(true)
    source.onerror = () => setAnnounced(false)
    for (const [event, keys] of Object.entries(staleAfter)) {
      source.addEventListener(event, () => {
        // A stream begins with `all`; at the first one, what the page shows was read just now.
        const isOpening = isFirst.current && event === 'all'
        isFirst.current = false
        if (isOpening) return
        for (const queryKey of keys) void client.invalidateQueries({ queryKey })
      })
    }
    source.addEventListener('sessions', () => {
      if (watched !== undefined) void client.invalidateQueries({ queryKey: watched.queryKey })
    })
    return () => {
      source.close()
      setAnnounced(false)
    }
  }, [client, isAway, isHidden, watched])
}
