import type { CookieConfig } from '#config/configuration/configuration.ts'
import type { Identity } from '#identity/identity.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId, secretHash } from '#kernel/ids.ts'
import { isJsonObject, type JsonValue } from '#kernel/json.ts'
import type { SecretBox } from '#keys/secret-box.ts'
import { readCookie } from '#requests/sessions/session-cookie.ts'
import type { GatewayRequest } from '#sdk/http/http.ts'

/** Records that a user logged in with this browser before. */
export interface KnownDevice {
  /** The owner: `entryKey` of the directory entry. */
  readonly entry: string
  /** Random, and new after each login: failures of the browser are counted by it. */
  readonly id: string
  readonly issued: number
}

type CookieParts = { readonly box: SecretBox; readonly clock: Clock }

/** A browser without a login for this long counts as unknown. */
const lifeSeconds = 90 * 86_400
/** How many users may share a browser; the one with the oldest login is dropped. */
const mostPeople = 4
const longestCookie = 2048
const purpose = 'device cookie'

/** Of bounded length, and different for a new entry with the name of a deleted one. */
export const entryKey = (identity: Identity): string => secretHash(identity)

const nameFor = ({ secure }: Pick<CookieConfig, 'secure'>): string =>
  secure ? '__Host-gatehouse-device' : 'gatehouse-device'

/** The users who logged in with this browser before; none if the cookie is absent, too old, or not ours. */
export async function readDevices(
  request: Pick<GatewayRequest, 'headers'>,
  cookies: Pick<CookieConfig, 'secure'>,
  { box, clock }: CookieParts,
): Promise<readonly KnownDevice[]> {
  const value = readCookie(nameFor(cookies), request)
  if (value === undefined || value.length > longestCookie || !/^[\w.-]+$/.test(value)) return []
  const opened = await box.open(value, purpose).catch(() => undefined)
  const devices = opened?.['devices']
  if (!Array.isArray(devices)) return []
  const oldest = clock().getTime() - lifeSeconds * 1000
  return (devices as readonly JsonValue[]).flatMap((one) => {
    const { entry, id, issued } = isJsonObject(one) ? one : {}
    const isWhole = typeof entry === 'string' && typeof id === 'string' && typeof issued === 'number'
    return isWhole && issued > oldest ? [{ entry, id, issued }] : []
  })
}

/** The cookie after a login: a new device for the user, and the browser's existing devices of other users. */
export async function writeDevices(
  known: readonly KnownDevice[],
  entry: string,
  cookies: Pick<CookieConfig, 'secure'>,
  { box, clock }: CookieParts,
): Promise<string> {
  const own = { entry, id: newId(), issued: clock().getTime() }
  const devices = [own, ...known.filter((device) => device.entry !== entry)].slice(0, mostPeople)
  const value = await box.seal({ devices: devices.map((device) => ({ ...device })) }, purpose)
  const parts = [`${nameFor(cookies)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Lax', `Max-Age=${lifeSeconds}`]
  if (cookies.secure) parts.push('Secure')
  return parts.join('; ')
}
