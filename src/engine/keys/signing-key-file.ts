import { createPrivateKey, createPublicKey, generateKeyPair, type JsonWebKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileOnce } from '#engine/keys/file-once.ts'
import { GatewayError } from '#kernel/errors.ts'
import { isKeyName } from '#kernel/signing-key.ts'

export interface SigningKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const generate = promisify(generateKeyPair)

/** The signing key in `<folder>/<name>.jwk`, made when there is none; of several processes all return the same. */
export async function openSigningKey(folder: string, name: string): Promise<SigningKey> {
  if (!isKeyName(name)) throw new GatewayError('INTERNAL', `"${name}" cannot be the name of a key`)
  const path = join(folder, `${name}.jwk`)
  const text = await fileOnce(path, async () => {
    const { privateKey } = await generate('rsa', { modulusLength: 2048 })
    return JSON.stringify(privateKey.export({ format: 'jwk' }))
  })
  try {
    const privateKey = createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' })
    return { privateKey, publicKey: createPublicKey(privateKey) }
  } catch (cause) {
    throw new GatewayError('INTERNAL', `${path} holds no private key in JWK form`, { cause })
  }
}
