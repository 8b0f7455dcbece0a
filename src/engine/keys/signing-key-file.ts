import { createPrivateKey, createPublicKey, generateKeyPair, type JsonWebKey, type KeyObject } from 'node:crypto'
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isKeyName } from '#engine/keys/key-name.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'

export interface SigningKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const generate = promisify(generateKeyPair)

/**
 * The signing key in `<folder>/<name>.jwk`, made when there is none. The file is written whole under another name and
 * then linked to its own, which fails when that is taken: of several processes one wins, and all return its key.
 */
export async function openSigningKey(folder: string, name: string): Promise<SigningKey> {
  if (!isKeyName(name)) throw new GatewayError('INTERNAL', `"${name}" cannot be the name of a key`)
  const path = join(folder, `${name}.jwk`)
  const present = await readSigningKey(path)
  if (present !== undefined) return present
  const { privateKey } = await generate('rsa', { modulusLength: 2048 })
  const text = JSON.stringify(privateKey.export({ format: 'jwk' }))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, `.${newId()}.tmp`)
  try {
    await writeDurably(draft, text)
    await link(draft, path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  } finally {
    await unlink(draft).catch(() => {})
  }
  const kept = await readSigningKey(path)
  if (kept === undefined) throw new GatewayError('INTERNAL', `the signing key ${name} vanished while it was made`)
  return kept
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function readSigningKey(path: string): Promise<SigningKey | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    const privateKey = createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' })
    return { privateKey, publicKey: createPublicKey(privateKey) }
  } catch (cause) {
    throw new GatewayError('INTERNAL', `${path} holds no private key in JWK form`, { cause })
  }
}

const hasCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
