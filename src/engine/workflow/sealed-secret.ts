import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { SecretKey } from '#engine/keys/secret-keys.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'

const algorithm = 'aes-256-gcm'
const version = 'g1'
const tagLength = 16

/**
 * Seals what is secret in a run: AES-256-GCM with a random nonce, bound to the run, so that a text moved to another run
 * does not open. The text names the key it needs, so that keys can be replaced while runs wait.
 */
export class SecretBox {
  readonly #load: () => Promise<readonly SecretKey[]>
  #keys: Promise<readonly SecretKey[]> | undefined

  /** The keys are loaded at first use; what fails then is tried again. */
  constructor(load: () => Promise<readonly SecretKey[]>) {
    this.#load = load
  }

  async seal(secret: JsonObject, run: string): Promise<string> {
    const [first] = await this.#loaded()
    if (first === undefined) throw new GatewayError('INTERNAL', 'there is no key for secrets')
    const nonce = randomBytes(12)
    const cipher = createCipheriv(algorithm, first.key, nonce, { authTagLength: tagLength })
    cipher.setAAD(boundTo(first.id, run))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(secret), 'utf8'), cipher.final(), cipher.getAuthTag()])
    return [version, first.id, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
  }

  /** Throws INTERNAL when the key is not known here, and WORKFLOW_FAILED when the text is not what was sealed. */
  async open(text: string, run: string): Promise<JsonObject> {
    const [form, id = '', nonce = '', sealed = '', ...rest] = text.split('.')
    if (form !== version || rest.length > 0) throw damaged(run)
    const key = (await this.#loaded()).find((known) => known.id === id)
    if (key === undefined)
      throw new GatewayError('INTERNAL', `the secrets of run ${run} need the key ${id}, which is not here`)
    const bytes = Buffer.from(sealed, 'base64url')
    try {
      const decipher = createDecipheriv(algorithm, key.key, Buffer.from(nonce, 'base64url'), {
        authTagLength: tagLength,
      })
      decipher.setAAD(boundTo(id, run))
      decipher.setAuthTag(bytes.subarray(-tagLength))
      const opened: unknown = JSON.parse(
        Buffer.concat([decipher.update(bytes.subarray(0, -tagLength)), decipher.final()]).toString('utf8'),
      )
      if (isJsonObject(opened)) return opened
    } catch (cause) {
      throw damaged(run, cause)
    }
    throw damaged(run)
  }

  #loaded(): Promise<readonly SecretKey[]> {
    this.#keys ??= this.#load().catch((error: unknown) => {
      this.#keys = undefined
      throw error
    })
    return this.#keys
  }
}

const boundTo = (key: string, run: string): Buffer => Buffer.from(JSON.stringify(['gatehouse run', key, run]))

const damaged = (run: string, cause?: unknown): GatewayError =>
  new GatewayError('WORKFLOW_FAILED', `the secrets of run ${run} are damaged`, cause === undefined ? {} : { cause })
