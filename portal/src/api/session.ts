import { ApiError, call } from './call.ts'
import { noteSessionEnd } from './session-state.ts'

/** Minutes until the session ends; -1 where it does not end by itself. Asking is no use of it. */
export async function minutesLeft(path: string): Promise<number> {
  try {
    return (await call<{ readonly minsLeft: number }>(path, { now: true })).minsLeft
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    noteSessionEnd()
    return 0
  }
}
