import { useSyncExternalStore } from 'react'

/**
 * Whether the person is still signed in. When the session ends, calls wait until there is one again, so that nothing that
 * was typed is lost; the shell meanwhile asks to sign in, in another tab.
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

/** Resolves when somebody has signed in again. */
export function signedInAgain(): Promise<void> {
  become('ended')
  return new Promise((resolve) => waiting.push(resolve))
}

/** Lets the calls that wait go on. */
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
