import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { type ErrorCode, GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { SecretKey } from './secret-keys.ts'

const algorithm = 'aes-256-gcm'
const version = 'g1'
const tagLength = 16

/** The owner of secrets, and the error if they can't be decrypted. */
interface SecretOwners {
  readonly what: string
  readonly damaged: ErrorCode
}

const runs: SecretOwners = { what: 'run', damaged: 'WORKFLOW_FAILED' }

/**
 * Encrypts secrets of a run: AES-256-GCM with a random nonce, bound to the run, so that a text moved to another run
 * can't be decrypted. The text names its key, so that keys can be replaced while runs wait. Other owners than runs
 * use it too.
 */
export class SecretBox {
  readonly #load: () => Promise<readonly SecretKey[]>
  readonly #owners: SecretOwners
  #keys: Promise<readonly SecretKey[]> | undefined

  /** Loads the keys on first use; retries after a failure. */
  constructor(load: () => Promise<readonly SecretKey[]>, owners: SecretOwners = runs) {
    this.#load = load
    this.#owners = owners
  }

  async seal(secret: JsonObject, owner: string): Promise<string> {
    const [first] = await this.#loaded()
    if (first === undefined) throw new GatewayError('INTERNAL', 'there is no key for secrets')
    const nonce = randomBytes(12)
    const cipher = createCipheriv(algorithm, first.key, nonce, { authTagLength: tagLength })
    cipher.setAAD(this.#boundTo(first.id, owner))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(secret), 'utf8'), cipher.final(), cipher.getAuthTag()])
    return [version, first.id, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
  }

  /**
   * Throws INTERNAL if the key is unknown here, and WORKFLOW_FAILED for a run if the text is not what was
   * encrypted.
   */
  async open(text: string, owner: string): Promise<JsonObject> {
    const [form, id = '', nonce = '', sealed = '', ...rest] = text.split('.')
    if (form !== version || rest.length > 0) throw this.#damaged(owner)
    const key = (await this.#loaded()).find((known) => known.id === id)
    if (key === undefined)
      throw new GatewayError(
        'INTERNAL',
        `the secrets of ${this.#owners.what} ${owner} need the key ${id}, which is not here`,
      )
    const bytes = Buffer.from(sealed, 'base64url')
    try {
      const decipher = createDecipheriv(algorithm, key.key, Buffer.from(nonce, 'base64url'), {
        authTagLength: tagLength,
      })
      decipher.setAAD(this.#boundTo(id, owner))
      decipher.setAuthTag(bytes.subarray(-tagLength))
      const opened: unknown = JSON.parse(
        Buffer.concat([decipher.update(bytes.subarray(0, -tagLength)), decipher.final()]).toString('utf8'),
      )
      if (isJsonObject(opened)) return opened
    } catch (cause) {
      throw this.#damaged(owner, cause)
    }
    throw this.#damaged(owner)
  }

  #loaded(): Promise<readonly SecretKey[]> {
    this.#keys ??= this.#load().catch((error: unknown) => {
      this.#keys = undefined
      throw error
    })
    return this.#keys
  }

  #boundTo(key: string, owner: string): Buffer {
    return Buffer.from(JSON.stringify([`gatehouse ${this.#owners.what}`, key, owner]))
  }

  #damaged(owner: string, cause?: unknown): GatewayError {
    const { what, damaged } = this.#owners
    return new GatewayError(
      damaged,
      `the secrets of ${what} ${owner} are damaged`,
      cause === undefined ? {} : { cause },
    )
  }
}
