import { randomBytes } from 'node:crypto'
import type { PortalSettings } from '#contract/portal.ts'
import { escapeHtml } from '#kernel/html.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

const settingsBlock = /(<script id="settings" type="application\/json">)(<\/script>)/
const title = /<title>[^<]*<\/title>/

export const captchas = ['none', 'recaptcha', 'turnstile'] as const
export type Captcha = (typeof captchas)[number]

/** Where the scripts and frames of the providers come from, as it stands behind other sources. */
const captchaSources: Readonly<Record<Captcha, string>> = {
  none: '',
  recaptcha: ' https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/',
  turnstile: ' https://challenges.cloudflare.com',
}

/**
 * The page of every address below the mount. It is made for one visit, since its styles are let in by a number that is
 * used once; scripts are let in from here alone, and none that stand in the page.
 */
export function portalPage(
  template: string,
  settings: Omit<PortalSettings, 'nonce'>,
  captcha: Captcha = 'none',
): GatewayResponse {
  const others = captchaSources[captcha]
  const nonce = randomBytes(18).toString('base64')
  const json = JSON.stringify({ ...settings, nonce } satisfies PortalSettings).replaceAll('<', '\\u003c')
  const body = template
    .replaceAll('="./', () => `="${escapeHtml(settings.base)}/`)
    .replace(title, () => `<title>${escapeHtml(settings.title)}</title>`)
    .replace(settingsBlock, (_, open: string, close: string) => open + json + close)
  const policy = [
    "default-src 'none'",
    `script-src 'self'${others}`,
    ...(others === '' ? [] : [`frame-src${others}`]),
    `style-src 'self' 'nonce-${nonce}'`,
    // Icons of links are part of the answer that lists them.
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${others}`,
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy.join('; '),
      'cache-control': 'no-store',
      'referrer-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    },
    body,
  }
}
