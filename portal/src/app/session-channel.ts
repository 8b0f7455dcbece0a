import { settings } from './settings.ts'

/** The channel between the tabs of one portal. */
const name = `gatehouse.session ${settings.base}`

const signedIn = 'signed-in'

function announce(message: unknown): void {
  const channel = new BroadcastChannel(name)
  channel.postMessage(message)
  channel.close()
}

/** Returns the function that stops listening. */
function listen(listener: (message: unknown) => void): () => void {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }: MessageEvent<unknown>) => listener(data)
  return () => channel.close()
}

/** Notifies the other tabs that the user has signed in again. */
export const announceSignIn = (): void => announce(signedIn)

export const onSignedIn = (listener: () => void): (() => void) =>
  listen((message) => {
    if (message === signedIn) listener()
  })

/** Notifies the other tabs of the session's user, which they share. */
export const announcePerson = (login: string): void => announce({ login })

/** Called when a tab finds the session of another login. */
export const onOtherPerson = (login: string, listener: () => void): (() => void) =>
  listen((message) => {
    const isPerson = typeof message === 'object' && message !== null && 'login' in message
    if (isPerson && message.login !== login) listener()
  })

/** The address where a browser signs in, which then notifies the other tabs. */
export const signInAddress = `${settings.base}/signed-in`
