import { settings } from './settings.ts'

/** Between the tabs of one portal: somebody has signed in again. */
const name = `gatehouse.session ${settings.base}`

export function tellSignedIn(): void {
  const channel = new BroadcastChannel(name)
  channel.postMessage('signed-in')
  channel.close()
}

/** Gives what ends the listening. */
export function onSignedIn(listener: () => void): () => void {
  const channel = new BroadcastChannel(name)
  channel.onmessage = listener
  return () => channel.close()
}

/** Where a browser is asked to sign in, and tells the other tabs when it has. */
export const signInAddress = `${settings.base}/signed-in`
