/** Of answers that say nothing themselves. An answer that is no page loads nothing, and is shown nowhere. */
const plain: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
}

/** Browsers keep to TLS for a year; on hosts below this one it is their own business. */
const secure: Readonly<Record<string, string>> = { ...plain, 'strict-transport-security': 'max-age=31536000' }

/** Headers that every answer has, where it has no other of the same name; `origin` is the request's, where it is known. */
export const securityHeaders = (origin: string | undefined): Readonly<Record<string, string>> =>
  origin?.startsWith('https:') === true ? secure : plain
