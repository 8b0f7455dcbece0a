import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

/** The site that passkeys are for. */
export interface RelyingParty {
  /** A domain: the host, or a parent of it. */
  readonly id: string
  readonly name: string
  readonly origin: string
  readonly userVerification: 'required' | 'preferred' | 'discouraged'
}

/** The stored data of a passkey. Binary values are base64url. */
interface PasskeyCredential {
  readonly id: string
  readonly publicKey: string
  readonly transports: readonly string[]
}

interface PasskeyUser {
  /** Always the same for one user, and reveals nothing about them. At most 64 bytes. */
  readonly handle: Buffer
  readonly name: string
  readonly displayName: string
}

/** EdDSA, ES256, RS256: every authenticator supports one of them, and none is experimental in a runtime. */
const algorithms = [-8, -7, -257]
/** How long a browser waits for its user, in milliseconds. */
const timeout = 300_000

/** Options for `navigator.credentials.create`, with the challenge that the response must contain. */
export async function creationOptions(
  site: RelyingParty,
  user: PasskeyUser,
  known: readonly PasskeyCredential[],
): Promise<{ readonly options: JsonObject; readonly challenge: string }> {
  const { generateRegistrationOptions } = await import('@simplewebauthn/server')
  const options = await generateRegistrationOptions({
    rpID: site.id,
    rpName: site.name,
    userID: new Uint8Array(user.handle),
    userName: user.name,
    userDisplayName: user.displayName,
    timeout,
    attestationType: 'none',
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    authenticatorSelection: { residentKey: 'preferred', userVerification: site.userVerification },
  })
  return { options: asJson(options), challenge: options.challenge }
}

/** Options for `navigator.credentials.get`. */
export async function requestOptions(
  site: RelyingParty,
  known: readonly PasskeyCredential[],
): Promise<{ readonly options: JsonObject; readonly challenge: string }> {
  const { generateAuthenticationOptions } = await import('@simplewebauthn/server')
  const options = await generateAuthenticationOptions({
    rpID: site.id,
    timeout,
    allowCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    userVerification: site.userVerification,
  })
  return { options: asJson(options), challenge: options.challenge }
}

type PasskeyRefused = { readonly ok: false; readonly reason: string }

/** `response` is untrusted input from a browser. */
export async function verifyCreation(
  site: RelyingParty,
  challenge: string,
  response: JsonObject,
): Promise<{ readonly ok: true; readonly credential: PasskeyCredential; readonly counter: number } | PasskeyRefused> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: await withoutAttestation(await ownFrame(response as unknown as RegistrationResponseJSON)),
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      supportedAlgorithmIDs: algorithms,
      requireUserVerification: site.userVerification === 'required',
    })
    if (!verified) return refused('the answer does not verify')
    const { id, publicKey, counter } = registrationInfo.credential
    const key = Buffer.from(publicKey).toString('base64url')
    return { ok: true, counter, credential: { id, publicKey: key, transports: transportsIn(response) } }
  } catch (error) {
    return refused(error instanceof Error ? error.message : String(error))
  }
}

/** Verifies against the known credential that the response names; returns it, and the counter of its authenticator. */
export async function verifyRequest<C extends PasskeyCredential & { readonly counter: number }>(
  site: RelyingParty,
  challenge: string,
  response: JsonObject,
  known: readonly C[],
): Promise<{ readonly ok: true; readonly credential: C; readonly counter: number } | PasskeyRefused> {
  const credential = known.find(({ id }) => id === response['id'])
  if (credential === undefined) return refused('the passkey is not known')
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: await ownFrame(response as unknown as AuthenticationResponseJSON),
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      credential: {
        id: credential.id,
        publicKey: new Uint8Array(Buffer.from(credential.publicKey, 'base64url')),
        counter: credential.counter,
      },
      requireUserVerification: site.userVerification === 'required',
    })
    return verified
      ? { ok: true, credential, counter: authenticationInfo.newCounter }
      : refused('the signature does not verify')
  } catch (error) {
    return refused(error instanceof Error ? error.message : String(error))
  }
}

/** Throws for an answer that was given in a frame of another site. */
async function ownFrame<R extends RegistrationResponseJSON | AuthenticationResponseJSON>(response: R): Promise<R> {
  const { decodeClientDataJSON } = await import('@simplewebauthn/server/helpers')
  const { crossOrigin = false } = decodeClientDataJSON(response.response.clientDataJSON)
  if (crossOrigin !== false) throw new Error('the answer is from a frame of another site')
  return response
}

/**
 * No attestation was requested. To verify one would read certificates of the caller's choice, and fetch the addresses
 * in them.
 */
async function withoutAttestation(response: RegistrationResponseJSON): Promise<RegistrationResponseJSON> {
  const { decodeAttestationObject, isoBase64URL, isoCBOR } = await import('@simplewebauthn/server/helpers')
  const given = decodeAttestationObject(isoBase64URL.toBuffer(response.response.attestationObject))
  const plain = new Map<string, string | Map<never, never> | Uint8Array<ArrayBuffer>>([
    ['fmt', 'none'],
    ['attStmt', new Map<never, never>()],
    ['authData', given.get('authData')],
  ])
  const attestationObject = isoBase64URL.fromBuffer(isoCBOR.encode(plain))
  return { ...response, response: { ...response.response, attestationObject } }
}

/** The browser's credential; undefined if it is not a JSON object. */
export function readCredential(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const knownTransports = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb']

function transportsIn(response: JsonObject): string[] {
  const inner = response['response']
  const transports = inner !== undefined && isJsonObject(inner) ? inner['transports'] : undefined
  return Array.isArray(transports) ? knownTransports.filter((name) => transports.includes(name)) : []
}

/** The reason may quote the answer. */
const refused = (reason: string): PasskeyRefused => ({ ok: false, reason: reason.slice(0, 500) })
const asJson = (value: object): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject
