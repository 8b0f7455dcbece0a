/** Defaults for responses: a response that is not a page loads nothing and cannot be framed. */
const plain: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
}

/** Browsers use only TLS for a year; subdomains are not included. */
const secure: Readonly<Record<string, string>> = { ...plain, 'strict-transport-security': 'max-age=31536000' }

/** Headers of every response, unless it sets them. `origin` is that of the request, if known. */
export const securityHeaders = (origin?: string): Readonly<Record<string, string>> =>
  origin?.startsWith('https:') === true ? secure : plain
