import { createPrivateKey, type KeyObject, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose/jwt/sign'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#kernel/json.ts'
import type { HttpAnswer, HttpSend } from '#protocols/http/http-client.ts'

/** How a client authenticates (RFC 6749 2.3, RFC 7523 2.2). */
export type ClientProof =
  | { readonly kind: 'basic'; readonly secret: string }
  | { readonly kind: 'post'; readonly secret: string }
  | { readonly kind: 'key'; readonly key: ClientKey }

interface ClientTokenOptions {
  readonly tokenUrl: URL
  readonly clientId: string
  readonly proof: ClientProof
  readonly scope?: string | undefined
  /** Not in the standard, but required by several servers: the audience of the token. */
  readonly audience?: string | undefined
  /** The target's name in errors. */
  readonly name: string
  readonly clock: Clock
}

const maxBytes = 64 * 1024
const maxLifetime = 24 * 60 * 60
const unknownLifetime = 5 * 60
const tokenPattern = /^[\x21-\x7e]{1,16384}$/

/**
 * An access token by client credentials (RFC 6749 4.4), cached until shortly before it expires. Concurrent callers
 * share one request. Rejects with TARGET_UNREACHABLE, or TARGET_FAILED if the client is refused; errors contain no
 * secrets.
 */
export class ClientToken {
  readonly #send: HttpSend
  readonly #options: ClientTokenOptions
  #kept: { readonly token: string; readonly until: number } | undefined
  #asked: Promise<string> | undefined

  constructor(send: HttpSend, options: ClientTokenOptions) {
    this.#send = send
    this.#options = options
  }

  /** The timeout is that of the request itself, since other callers may wait for it too. */
  get(timeoutMillis: number): Promise<string> {
    if (this.#kept !== undefined && this.#kept.until > this.#options.clock().getTime()) {
      return Promise.resolve(this.#kept.token)
    }
    this.#asked ??= this.#ask(AbortSignal.timeout(timeoutMillis)).finally(() => {
      this.#asked = undefined
    })
    return this.#asked
  }

  forget(): void {
    this.#kept = undefined
  }

  async #ask(signal: AbortSignal): Promise<string> {
    const { tokenUrl, name } = this.#options
    const { body, headers } = await this.#request()
    let answer: HttpAnswer
    try {
      answer = await this.#send({ method: 'POST', url: tokenUrl, headers, body }, { signal, bytes: maxBytes })
    } catch (error) {
      throw new GatewayError('TARGET_UNREACHABLE', `target "${name}": no token from ${tokenUrl.href}`, { cause: error })
    }
    const { token, lifetime } = this.#read(answer)
    const early = Math.min(60, lifetime / 5)
    this.#kept = { token, until: this.#options.clock().getTime() + (lifetime - early) * 1000 }
    return token
  }

  async #request() {
    const { clientId, proof, scope, audience, tokenUrl, clock } = this.#options
    const form = new URLSearchParams({ grant_type: 'client_credentials' })
    if (scope !== undefined) form.set('scope', scope)
    if (audience !== undefined) form.set('audience', audience)
    const headers: Record<string, string> = {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    }
    if (proof.kind === 'basic') {
      const pair = `${formEncoded(clientId)}:${formEncoded(proof.secret)}`
      headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
      return { body: form.toString(), headers }
    }
    form.set('client_id', clientId)
    if (proof.kind === 'key') {
      form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
      const content = { clientId, audience: tokenUrl.href, id: randomUUID(), now: clock() }
      form.set('client_assertion', await signAssertion(content, proof.key))
    } else {
      form.set('client_secret', proof.secret)
    }
    return { body: form.toString(), headers }
  }

  #read({ status, body }: HttpAnswer): { readonly token: string; readonly lifetime: number } {
    const { name, tokenUrl } = this.#options
    const message = parsed(body)
    const where = `target "${name}": ${tokenUrl.href}`
    if (status !== 200) {
      const code = message['error']
      const reason = typeof code === 'string' && /^[\w.-]{1,60}$/.test(code) ? ` ${code}` : ''
      const later = status >= 500 || status === 429 || status === 408
      throw new GatewayError(later ? 'TARGET_UNREACHABLE' : 'TARGET_FAILED', `${where} answered ${status}${reason}`)
    }
    const token = message['access_token']
    const type = message['token_type'] ?? 'Bearer'
    if (typeof token !== 'string' || !tokenPattern.test(token) || String(type).toLowerCase() !== 'bearer') {
      throw new GatewayError('TARGET_FAILED', `${where} answered without a bearer token`)
    }
    const given = Number(message['expires_in'] ?? unknownLifetime)
    return { token, lifetime: given > 0 ? Math.min(given, maxLifetime) : unknownLifetime }
  }
}

/** Both parts are form-encoded (RFC 6749 2.3.1). */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

function parsed(text: string): JsonObject {
  try {
    const value: JsonValue = JSON.parse(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** A private key with which a client authenticates. */
interface ClientKey {
  readonly key: KeyObject
  readonly algorithm: string
  /** The key id for the server; left out if absent. */
  readonly id?: string | undefined
}

const lifetimeSeconds = 60
const leastRsaBits = 2048

/** Reads PEM text. Throws a plain Error, without anything of the key, if it can't sign. */
export function readClientKey(pem: string, id?: string): ClientKey {
  const key = privateKey(pem)
  const algorithm = algorithmOf(key)
  if (algorithm === undefined) throw new Error('must be an RSA key of 2048 bits or more, an EC key or an Ed25519 key')
  return { key, algorithm, id }
}

interface AssertionContent {
  readonly clientId: string
  readonly audience: string
  readonly id: string
  readonly now: Date
}

/** The assertion of RFC 7523 3. */
function signAssertion({ clientId, audience, id, now }: AssertionContent, client: ClientKey): Promise<string> {
  const seconds = Math.floor(now.getTime() / 1000)
  return new SignJWT({})
    .setProtectedHeader({ alg: client.algorithm, typ: 'JWT', ...(client.id === undefined ? {} : { kid: client.id }) })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(id)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + lifetimeSeconds)
    .sign(client.key)
}

function privateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    // The library's message may quote the text.
    throw new Error('must be a private key as PEM text')
  }
}

const curves: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  switch (asymmetricKeyType) {
    case 'rsa':
      return (asymmetricKeyDetails?.modulusLength ?? 0) >= leastRsaBits ? 'RS256' : undefined
    case 'ec':
      return curves[asymmetricKeyDetails?.namedCurve ?? '']
    case 'ed25519':
      return 'EdDSA'
    default:
      return undefined
  }
}
