import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'
import type { JsonObject } from '#kernel/json.ts'

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest()
const text = (data: Uint8Array): string => Buffer.from(data).toString('base64url')

export interface SoftAnswer {
  readonly origin: string
  readonly rpId: string
  readonly challenge: string
  readonly type?: string
  /** The device's counter; its own count if absent. */
  readonly counter?: number
  readonly userVerified?: boolean
  readonly userPresent?: boolean
  readonly crossOrigin?: boolean
  /** The algorithm of the new key, as its public key names it. */
  readonly algorithm?: number
  /** Of the new key, instead of none. */
  attestation?(clientDataHash: Buffer, publicKey: KeyObject): SoftAttestation
}

interface SoftAttestation {
  readonly fmt: string
  readonly attStmt: Map<string, number | Uint8Array<ArrayBuffer> | Uint8Array<ArrayBuffer>[]>
}

/** A passkey whose answers a test can spoil. */
export class SoftAuthenticator {
  readonly id = text(randomBytes(16))
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject
  #counter = 0

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#privateKey = privateKey
    this.#publicKey = publicKey
  }

  /** RegistrationResponseJSON, attestation none. */
  create(answer: SoftAnswer): JsonObject {
    const { x = '', y = '' } = this.#publicKey.export({ format: 'jwk' })
    const cose = isoCBOR.encode(
      new Map<number, number | Uint8Array<ArrayBuffer>>([
        [1, 2],
        [3, answer.algorithm ?? -7],
        [-1, 1],
        [-2, new Uint8Array(Buffer.from(x, 'base64url'))],
        [-3, new Uint8Array(Buffer.from(y, 'base64url'))],
      ]),
    )
    const id = Buffer.from(this.id, 'base64url')
    const length = Buffer.alloc(2)
    length.writeUInt16BE(id.length)
    const data = Buffer.concat([this.#data(answer, 0x40), Buffer.alloc(16), length, id, cose])
    const clientData = this.#clientData(answer, 'webauthn.create')
    const none: SoftAttestation = { fmt: 'none', attStmt: new Map() }
    const { fmt, attStmt } = answer.attestation?.(sha256(clientData), this.#publicKey) ?? none
    const attestation = isoCBOR.encode(
      new Map<string, string | SoftAttestation['attStmt'] | Uint8Array<ArrayBuffer>>([
        ['fmt', fmt],
        ['attStmt', attStmt],
        ['authData', new Uint8Array(data)],
      ]),
    )
    return this.#response({
      clientDataJSON: text(clientData),
      attestationObject: text(attestation),
      transports: ['internal', 'evil'],
    })
  }

  /** AuthenticationResponseJSON. */
  get(answer: SoftAnswer): JsonObject {
    this.#counter++
    const data = this.#data(answer, 0)
    const clientData = this.#clientData(answer, 'webauthn.get')
    const signature = sign('sha256', Buffer.concat([data, sha256(clientData)]), this.#privateKey)
    return this.#response({
      clientDataJSON: text(clientData),
      authenticatorData: text(data),
      signature: text(signature),
    })
  }

  #response(response: JsonObject): JsonObject {
    return { id: this.id, rawId: this.id, type: 'public-key', clientExtensionResults: {}, response }
  }

  #clientData({ origin, challenge, type, crossOrigin = false }: SoftAnswer, usual: string): Buffer {
    return Buffer.from(JSON.stringify({ type: type ?? usual, challenge, origin, crossOrigin }))
  }

  #data({ rpId, counter = this.#counter, userVerified = true, userPresent = true }: SoftAnswer, more: number): Buffer {
    const counted = Buffer.alloc(4)
    counted.writeUInt32BE(counter)
    const flags = (userPresent ? 0x01 : 0) | (userVerified ? 0x04 : 0) | more
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), counted])
  }
}
