import type { HumanCheckKind } from '#features/registration/contract/register.ts'

export type ProviderKind = 'recaptcha-v2' | 'recaptcha-v3' | 'turnstile'

export const isProvider = (kind: HumanCheckKind): kind is ProviderKind => kind !== 'none' && kind !== 'proof-of-work'

/** The common API of the providers' scripts. */
export interface Provider {
  render(place: HTMLElement, options: Readonly<Record<string, unknown>>): unknown
  ready?(done: () => void): void
  execute?(siteKey: string, options: { readonly action: string }): Promise<string>
}

declare global {
  interface Window {
    grecaptcha?: Provider
    turnstile?: Provider
  }
}

const addresses: Readonly<Record<ProviderKind, (siteKey: string) => string>> = {
  'recaptcha-v2': () => 'https://www.google.com/recaptcha/api.js?render=explicit',
  'recaptcha-v3': (siteKey) => `https://www.google.com/recaptcha/api.js?render=${encodeURIComponent(siteKey)}`,
  turnstile: () => 'https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit',
}

const loaded = new Map<string, Promise<Provider>>()

/** Loads the provider's script, once. The page's policy has to allow it: parameter `captcha` of filters.Portal. */
export function loadProvider(kind: ProviderKind, siteKey: string): Promise<Provider> {
  const address = addresses[kind](siteKey)
  const known = loaded.get(address)
  if (known !== undefined) return known
  const loading = load(kind, address)
  loaded.set(address, loading)
  // A later attempt may succeed.
  loading.catch(() => loaded.delete(address))
  return loading
}

async function load(kind: ProviderKind, address: string): Promise<Provider> {
  await new Promise<void>((resolve, reject) => {
    const script = document.createElement('script')
    script.src = address
    script.async = true
    script.onload = () => resolve()
    script.onerror = () => reject(new Error('the script of the human check does not load'))
    document.head.append(script)
  })
  const provider = kind === 'turnstile' ? window.turnstile : window.grecaptcha
  if (provider === undefined) throw new Error('the script of the human check gave nothing')
  if (provider.ready !== undefined) await new Promise<void>((resolve) => provider.ready?.(resolve))
  return provider
}

/** reCAPTCHA v3 has no widget: it returns a token on request. */
export async function silentToken(siteKey: string, action: string): Promise<string | undefined> {
  const provider = await loadProvider('recaptcha-v3', siteKey)
  return await provider.execute?.(siteKey, { action })
}
