import { ApiError, call } from './call.ts'
import { noteSessionEnd } from './session-state.ts'

/** Whether to warn: in the configured last minutes, but not before the last quarter of the longest time seen or the last minute. */
export const isEndingSoon = (minutes: number, longest: number, warnMinutes: number): boolean =>
  minutes >= 0 && minutes <= Math.min(warnMinutes, Math.max(1, longest / 4))

/** Minutes until the session ends; -1 if it does not expire. The call does not extend it. */
export async function minutesLeft(path: string): Promise<number> {
  try {
    return (await call<{ readonly minsLeft: number }>(path, { now: true })).minsLeft
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    noteSessionEnd()
    return 0
  }
}
