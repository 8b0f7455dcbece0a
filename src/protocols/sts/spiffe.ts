/** A path has at least one segment, so that an identity is never the trust domain itself. */
const identity = /^spiffe:\/\/([a-z0-9._-]{1,255})((?:\/[A-Za-z0-9._-]+)+)$/

/** Whether a text is a SPIFFE ID of a workload (SPIFFE-ID 2); its length is checked elsewhere. */
export function isSpiffeId(text: string): boolean {
  const [, , path] = identity.exec(text) ?? []
  return path?.split('/').every((segment) => segment !== '.' && segment !== '..') ?? false
}

/** The path of the bundle below the issuer. */
export const bundlePath = '/bundle'

type Jwk = Readonly<Record<string, string>>

/** The document from which verifiers of a trust domain learn its keys (SPIFFE Trust Domain and Bundle 4). */
export type SpiffeBundle = { readonly spiffe_refresh_hint: number; readonly keys: readonly Jwk[] }

/** The key as the bundle has it. */
export const svidKey = (key: Jwk): Jwk => ({ ...key, use: 'jwt-svid' })

export const spiffeBundle = (keys: readonly Jwk[], refreshSeconds: number): SpiffeBundle => ({
  spiffe_refresh_hint: refreshSeconds,
  keys: keys.map(svidKey),
})
