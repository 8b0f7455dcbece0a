import type { Browser, Page } from 'playwright-core'
import { inject } from 'vitest'
import { launchChromium } from '#testing/browser/chromium-program.ts'

/** Whether there is a browser to test with. */
export const hasChromium = (): boolean => inject('chromium') !== ''

let running: Promise<Browser> | undefined

/** Debian's Chromium, without a window: one for all files of a worker, with which it ends; another one after a crash. */
export async function sharedChromium(): Promise<Browser> {
  running ??= launchChromium(inject('chromium'))
  const browser = await running.catch(() => undefined)
  if (browser?.isConnected() === true) return browser
  running = launchChromium(inject('chromium'))
  return await running
}

export interface VirtualAuthenticator {
  /** Its number of passkeys, and how often they signed. */
  credentials(): Promise<readonly { readonly credentialId: string; readonly signCount: number }[]>
  /** From now on its user declines. */
  refuse(): Promise<void>
}

/** A device with a fingerprint reader that confirms, for the pages of one tab. */
export async function addAuthenticator(page: Page): Promise<VirtualAuthenticator> {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    credentials: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
    refuse: async () => {
      await session.send('WebAuthn.clearCredentials', { authenticatorId })
    },
  }
}
