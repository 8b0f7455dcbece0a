import { useEffect, useState } from 'react'
import { gatewayNow } from '../api/gateway-clock.ts'

/** The gateway's time, refreshed regularly. */
export function useNow(everyMillis: number): number {
  const [now, setNow] = useState(gatewayNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(gatewayNow()), everyMillis)
    return () => clearInterval(timer)
  }, [everyMillis])
  return now
}
