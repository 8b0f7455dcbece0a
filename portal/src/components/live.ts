import { useIdle } from '@mantine/hooks'

/** Whoever does nothing for so long may be gone. */
const patienceMillis = 2 * 60_000

/**
 * How often to ask again for what may change by itself; never while nobody is there, since every call is a use of the
 * session, which is to end when it is not used.
 */
export function useLive(millis: number): number | false {
  const isIdle = useIdle(patienceMillis, { initialState: false })
  return isIdle ? false : millis
}
