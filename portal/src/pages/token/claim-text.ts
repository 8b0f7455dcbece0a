/** Claims that are seconds since 1970 (RFC 7519, OpenID Connect). */
const times: ReadonlySet<string> = new Set(['exp', 'iat', 'nbf', 'auth_time', 'updated_at'])

/** A claim for users: times as times, lists one by one, all else as JSON. */
export function claimText(name: string, value: unknown, dateTime: (at: number) => string): string {
  if (times.has(name) && typeof value === 'number' && Number.isFinite(value)) return dateTime(value * 1000)
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ')
  return JSON.stringify(value)
}

/** When the token was issued, in milliseconds. */
export function issuedAt(claims: Readonly<Record<string, unknown>> | undefined): number | undefined {
  const seconds = claims?.['iat']
  return typeof seconds === 'number' ? seconds * 1000 : undefined
}
