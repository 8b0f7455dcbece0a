import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import { digestOf, signingAlgorithm, type TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import { type TransitClient, TransitRefusal } from '#protocols/transit/transit-client.ts'
import type { KeyCustody } from './key-ring.ts'
import type { CustodyVersion, KeyCustodian } from './token-key-pair.ts'

const keyTypes: Readonly<Record<TokenAlgorithm, string>> = {
  RS256: 'rsa-2048',
  ES256: 'ecdsa-p256',
  ES384: 'ecdsa-p384',
  EdDSA: 'ed25519',
}
/** The prefix of the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo. */
const ed25519Prefix = Buffer.from('302a300506032b6570032100', 'hex')

/** A key of a Transit mount. Its versions are the keys of a ring; only the hash of a token leaves the gateway, except for EdDSA. */
export class TransitCustodian implements KeyCustodian {
  readonly name: string
  readonly #client: TransitClient
  readonly #mount: string
  readonly #key: string

  constructor(client: TransitClient, mount: string, key: string) {
    this.#client = client
    this.#mount = mount
    this.#key = key
    this.name = `${mount}/${key}`
  }

  async latest(algorithm: TokenAlgorithm): Promise<CustodyVersion> {
    await this.#client.renew()
    return newestOf(await this.#read(algorithm), algorithm, this.name)
  }

  async rotate(algorithm: TokenAlgorithm): Promise<CustodyVersion> {
    await this.#call('rotate', 'POST', `${this.#mount}/keys/${this.#key}/rotate`, {})
    return this.latest(algorithm)
  }

  async sign({ key, version }: KeyCustody, algorithm: TokenAlgorithm, content: Buffer): Promise<Buffer> {
    const slash = key.lastIndexOf('/')
    const [mount, name] = [key.slice(0, slash), key.slice(slash + 1)]
    const digest = digestOf(algorithm)
    const input = digest === null ? content : createHash(digest).update(content).digest()
    const path = digest === null ? name : `${name}/${digest === 'sha256' ? 'sha2-256' : 'sha2-384'}`
    const data = await this.#call('sign', 'POST', `${mount}/sign/${path}`, {
      input: input.toString('base64'),
      key_version: version,
      ...(digest === null ? {} : { prehashed: true }),
      ...(algorithm === 'RS256' ? { signature_algorithm: 'pkcs1v15' } : {}),
      ...(algorithm === 'ES256' || algorithm === 'ES384' ? { marshaling_algorithm: 'jws' } : {}),
    })
    const [, signer, signature] = /^\w+:v(\d+):([A-Za-z0-9+/=_-]+)$/.exec(String(data?.['signature'])) ?? []
    if (signature === undefined || Number(signer) !== version) {
      throw new GatewayError('INTERNAL', `Transit gave no signature of version ${version} of ${key}`)
    }
    return Buffer.from(signature, 'base64')
  }

  async #read(algorithm: TokenAlgorithm): Promise<JsonObject> {
    const path = `${this.#mount}/keys/${this.#key}`
    try {
      const data = await this.#client.call('read', 'GET', path)
      if (data !== undefined) return data
    } catch (error) {
      if (!(error instanceof TransitRefusal) || error.status !== 404) throw this.#refused('read', error)
    }
    await this.#call('create', 'POST', path, { type: keyTypes[algorithm] })
    return (await this.#call('read', 'GET', path)) ?? {}
  }

  async #call(
    operation: string,
    method: 'GET' | 'POST',
    path: string,
    body?: JsonObject,
  ): Promise<JsonObject | undefined> {
    try {
      return await this.#client.call(operation, method, path, body)
    } catch (error) {
      throw this.#refused(operation, error)
    }
  }

  #refused(operation: string, error: unknown): unknown {
    if (!(error instanceof TransitRefusal)) return error
    const hint = error.status === 403 ? '; check the policy of the gateway' : ''
    return new GatewayError('INTERNAL', `Transit refused to ${operation} ${this.name} (${error.message})${hint}`, {
      cause: error,
    })
  }
}

function newestOf(data: JsonObject, algorithm: TokenAlgorithm, name: string): CustodyVersion {
  const version = data['latest_version']
  const keys = data['keys']
  const entry = isJsonObject(keys) && typeof version === 'number' ? keys[String(version)] : undefined
  const text = isJsonObject(entry) ? entry['public_key'] : undefined
  if (typeof version !== 'number' || typeof text !== 'string') {
    const type = typeof data['type'] === 'string' ? data['type'] : 'unknown'
    throw new GatewayError(
      'INTERNAL',
      `the Transit key ${name} of type ${type} has no public key; use ${keyTypes[algorithm]}`,
    )
  }
  const publicKey = readPublicKey(text, name)
  const signs = signingAlgorithm(publicKey)
  if (signs === algorithm) return { version, publicKey }
  const problem = `signs ${signs}, and the algorithm is ${algorithm}; name another key, of type ${keyTypes[algorithm]}`
  throw new GatewayError('INTERNAL', `the Transit key ${name} ${problem}`)
}

/** PEM, except for Ed25519: the bytes of the key in base64. */
function readPublicKey(text: string, name: string): KeyObject {
  try {
    if (text.includes('-----BEGIN')) return createPublicKey(text)
    const der = Buffer.concat([ed25519Prefix, Buffer.from(text, 'base64')])
    return createPublicKey({ key: der, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new GatewayError('INTERNAL', `the public key of the Transit key ${name} cannot be read`, { cause })
  }
}
