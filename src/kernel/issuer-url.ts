import { isIPv4 } from 'node:net'

/** 127.0.0.0/8, ::1 and localhost: addresses that only this machine answers. */
export function isLoopback(url: URL): boolean {
  const host = url.hostname
  return host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
}

/**
 * An address whose answers are trusted: `https:`, or `http:` on this machine only.
 * Throws a plain Error that says what is wrong.
 */
export function parseTrustedUrl(text: string): URL {
  if (!URL.canParse(text)) throw new Error(`"${text}" is not an absolute URL`)
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error('must start with https://')
  if (url.protocol === 'http:' && !isLoopback(url)) {
    throw new Error('http is accepted on this machine only (127.0.0.1, ::1, localhost); use https')
  }
  if (url.username !== '' || url.password !== '') throw new Error('must not hold a user name or password')
  return url
}

/** The same for an issuer identifier (OpenID Connect Discovery 2): also without query and fragment. */
export function parseIssuerUrl(text: string): URL {
  const url = parseTrustedUrl(text)
  if (text.includes('?') || text.includes('#')) throw new Error('must not hold a query or a fragment')
  return url
}
