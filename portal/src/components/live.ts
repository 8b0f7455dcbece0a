import { useIdle } from '@mantine/hooks'
import { useSyncExternalStore } from 'react'

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
