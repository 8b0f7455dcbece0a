import { settings } from './settings.ts'

/** Between the tabs of one portal. */
const name = `gatehouse.session ${settings.base}`

const signedIn = 'signed-in'

function tell(message: unknown): void {
  const channel = new BroadcastChannel(name)
  channel.postMessage(message)
  channel.close()
}

/** Gives what ends the listening. */
function listen(listener: (message: unknown) => void): () => void {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }: MessageEvent<unknown>) => listener(data)
  return () => channel.close()
}

/** Somebody has signed in again. */
export const tellSignedIn = (): void => tell(signedIn)

export const onSignedIn = (listener: () => void): (() => void) =>
  listen((message) => {
    if (message === signedIn) listener()
  })

/** Whose session it is by now: all tabs have the same. */
export const tellPerson = (login: string): void => tell({ login })

/** Calls when a tab has found the session of somebody other than this login. */
export const onOtherPerson = (login: string, listener: () => void): (() => void) =>
  listen((message) => {
    const isPerson = typeof message === 'object' && message !== null && 'login' in message
    if (isPerson && message.login !== login) listener()
  })

/** Where a browser is asked to sign in, and tells the other tabs when it has. */
export const signInAddress = `${settings.base}/signed-in`
