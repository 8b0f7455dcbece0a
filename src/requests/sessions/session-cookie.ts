import type { CookieConfig } from '#config/configuration/configuration.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'

/** The `__Host-` prefix makes browsers reject a cookie that another host or an insecure page set. */
export function cookieName(config: CookieConfig): string {
  return config.secure && config.domain === undefined ? `__Host-${config.name}` : config.name
}

/** The session secret of a request; undefined if there is none, or the cookie appears twice. */
export const readSessionCookie = (config: CookieConfig, request: Pick<GatewayRequest, 'headers'>): string | undefined =>
  readSecretCookie(cookieName(config), request)

/** The secret in the cookie with exactly this name; undefined if there is none, or it appears twice. */
export function readSecretCookie(name: string, request: Pick<GatewayRequest, 'headers'>): string | undefined {
  const value = readCookie(name, request)
  return value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined
}

/** The value of the cookie with exactly this name; undefined if there are none or several. */
export function readCookie(name: string, request: Pick<GatewayRequest, 'headers'>): string | undefined {
  const text = header(request, 'cookie')
  if (text === undefined) return undefined
  const prefix = `${name}=`
  const found = text
    .split(';', 100)
    .map((part) => part.trim())
    .filter((part) => part.startsWith(prefix))
  return found.length === 1 ? found[0]?.slice(prefix.length) : undefined
}

/** Set-Cookie for a secret; without one, the header that removes the cookie. */
export function writeSessionCookie(config: CookieConfig, secret: string | undefined): string {
  const parts = [`${cookieName(config)}=${secret ?? ''}`, 'Path=/', `SameSite=${config.sameSite}`]
  if (config.domain !== undefined) parts.push(`Domain=${config.domain}`)
  if (config.secure) parts.push('Secure')
  if (config.httpOnly) parts.push('HttpOnly')
  if (secret === undefined) parts.push('Max-Age=0')
  return parts.join('; ')
}
