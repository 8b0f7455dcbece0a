import { useIdle } from '@mantine/hooks'

/** A user who does nothing for this long may be away. */
const patienceMillis = 2 * 60_000

/**
 * How often to refresh data that may change; never while the user is away, since every call extends the session, which
 * should expire when unused.
 */
export function useLive(millis: number): number | false {
  const isIdle = useIdle(patienceMillis, { initialState: false })
  return isIdle ? false : millis
}
