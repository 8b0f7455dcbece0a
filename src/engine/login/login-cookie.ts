import { readSecretCookie } from '#engine/session/session-cookie.ts'
import type { GatewayRequest } from '#sdk/filter/http.ts'

type CookieRequest = Pick<GatewayRequest, 'headers' | 'origin'>

const isSecure = ({ origin }: CookieRequest): boolean => origin.startsWith('https:')
const nameFor = (request: CookieRequest): string => (isSecure(request) ? '__Host-gatehouse-login' : 'gatehouse-login')

/** The secret that binds logins to this browser. */
export const readLoginCookie = (request: CookieRequest): string | undefined =>
  readSecretCookie(nameFor(request), request)

/** `Lax`, since an outside issuer's redirect back must bring it; a form of another site never does. */
export function writeLoginCookie(request: CookieRequest, secret: string, seconds: number): string {
  const parts = [`${nameFor(request)}=${secret}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${seconds}`]
  if (isSecure(request)) parts.push('Secure')
  return parts.join('; ')
}
