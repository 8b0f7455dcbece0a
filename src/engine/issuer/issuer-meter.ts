/** Labels are of the configuration, or of a list in the code. */
export interface IssuerMeter {
  /** `how`: a grant type, `login` or `token page`; `outcome`: `issued`, `pending` (a device waits), `refused`, `failed`. */
  tokens(issuer: string, how: string, outcome: string): void
  answered(issuer: string, endpoint: string, millis: number): void
}

export const noIssuerMeter: IssuerMeter = { tokens: () => {}, answered: () => {} }

const endpoints = new Map([
  ['/auth', 'authorization'],
  ['/token', 'token'],
  ['/userinfo', 'userinfo'],
  ['/certs', 'keys'],
  ['/revoke', 'revocation'],
  ['/introspect', 'introspection'],
  ['/device/auth', 'device authorization'],
  ['/device', 'device'],
  ['/session/end', 'logout'],
  ['/session/end/confirm', 'logout'],
  ['/session/end/success', 'logout'],
  ['/.well-known/openid-configuration', 'discovery'],
  ['/.well-known/oauth-authorization-server', 'discovery'],
])
/** Where people go on after a login. */
const steps = /^\/(?:auth|device|interaction)\/[\w-]{1,64}$/

/** Whether the issuer serves the path, which is compared as it is written. */
export const isEndpoint = (path: string): boolean => endpoints.has(path) || steps.test(path)

export const endpointOf = (path: string): string => endpoints.get(path) ?? 'other'

const grants = new Map([
  ['authorization_code', 'authorization_code'],
  ['refresh_token', 'refresh_token'],
  ['urn:ietf:params:oauth:grant-type:device_code', 'device_code'],
])

export const grantOf = (grantType: string): string => grants.get(grantType) ?? 'other'

const waiting = new Set(['authorization_pending', 'slow_down'])

/** What the status and body of an answer of the token endpoint come to. */
export function tokenOutcome(status: number, body: unknown): string {
  if (status === 200) return 'issued'
  if (status >= 500) return 'failed'
  return waiting.has(errorIn(body)) ? 'pending' : 'refused'
}

function errorIn(body: unknown): string {
  try {
    const { error } = JSON.parse(String(body)) as { readonly error?: unknown }
    return typeof error === 'string' ? error : ''
  } catch {
    return ''
  }
}
