import { useSyncExternalStore } from 'react'

/**
 * Whether the user is still signed in. When the session ends, calls wait for a new one, so that no typed text is lost;
 * meanwhile the shell asks the user to sign in, in another tab.
 */
export type SessionState = 'there' | 'ended'

let state: SessionState = 'there'
let waiting: (() => void)[] = []
const listeners = new Set<() => void>()

function become(next: SessionState): void {
  if (state === next) return
  state = next
  for (const listener of listeners) listener()
}

export const noteSessionEnd = (): void => become('ended')

/** Resolves when the user has signed in again. */
export function signedInAgain(): Promise<void> {
  become('ended')
  return new Promise((resolve) => waiting.push(resolve))
}

/** Continues the waiting calls. */
export function resumeSession(): void {
  const resumed = waiting
  waiting = []
  become('there')
  for (const resume of resumed) resume()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useSessionState = (): SessionState => useSyncExternalStore(subscribe, () => state)
