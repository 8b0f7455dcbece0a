/** The device, or its user, created none. */
export class PasskeyRefused extends Error {}

/** Browsers create passkeys only on pages with TLS, and parse the gateway's options since 2024. */
export const canMakePasskeys = (): boolean =>
  typeof PublicKeyCredential === 'function' && typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function'

/** Browsers reject passkeys of an IP address. `host` is that of an address, with brackets around IPv6. */
export const allowsPasskeys = (host: string): boolean => !/^(?:\d+(?:\.\d+){3}|\[.*\])$/.test(host)

/** Returns the gateway's data of the new passkey. `options` are those of the contract. */
export async function makePasskey(options: unknown): Promise<unknown> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as PublicKeyCredentialCreationOptionsJSON)
  try {
    const made = await navigator.credentials.create({ publicKey })
    if (made instanceof PublicKeyCredential) return made.toJSON()
  } catch (cause) {
    throw new PasskeyRefused('no passkey was made', { cause })
  }
  throw new PasskeyRefused('no passkey was made')
}
