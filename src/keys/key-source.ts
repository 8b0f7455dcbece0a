import { createPrivateKey, createPublicKey, generateKeyPair, type JsonWebKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { GatewayError } from '#kernel/errors.ts'
import { readSmallFileIfPresent } from '#kernel/small-file.ts'
import { isKeyName } from '#protocols/jwt/signing-key.ts'
import type { KeySource } from '#sdk/auth/key-source.ts'
import { derivedKey, fileOnce, loadSecretKeys, type SecretKey } from './secret-keys.ts'

interface KeyFolders {
  /** The configuration folder; its `keys/` has certificates and public keys. */
  readonly configuration: string
  /** The data folder; its `keys/` has the signing keys of this installation. Absent without one. */
  readonly data: string | undefined
  /** Read for secret keys before the data folder. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** The certificate in the secret of that name, if there is one. */
  certificate?(secretName: string): string | undefined
}

/** Keys in files and secrets. Public keys are read each time, all others once. */
export function createKeySource(folders: KeyFolders): KeySource {
  const signing = new Map<string, ReturnType<KeySource['signingKey']>>()
  let secret: Promise<readonly SecretKey[]> | undefined
  return {
    async publicKey(name) {
      const inFile = await readPublicKeyFile(join(folders.configuration, 'keys'), name)
      if (inFile !== undefined) return inFile
      const certificate = folders.certificate?.(name)
      return certificate === undefined ? undefined : readPublicKey(certificate, `the secret ${name}`)
    },
    async certificate(name) {
      const inFile = await readCertificateFile(join(folders.configuration, 'keys'), name)
      return inFile ?? certificatesIn(folders.certificate?.(name) ?? '')
    },
    async signingKey(name) {
      if (folders.data === undefined) {
        throw new GatewayError('INTERNAL', `signing key "${name}" needs a data folder (--data)`)
      }
      let opened = signing.get(name)
      if (opened === undefined) {
        opened = openSigningKey(join(folders.data, 'keys'), name)
        signing.set(name, opened)
        opened.catch(() => signing.delete(name))
      }
      return opened
    },
    async secretKeys(purpose) {
      const { data: dataFolder, environment = {} } = folders
      if (dataFolder === undefined) throw new GatewayError('INTERNAL', 'secret keys need a data folder (--data)')
      secret ??= loadSecretKeys({ environment, dataFolder })
      secret.catch(() => {
        secret = undefined
      })
      return (await secret).map(({ key }) => derivedKey(key, purpose).key)
    },
  }
}

/** Extensions of key files in search order; each may contain a certificate, a public or a private key. */
const keyFileEndings = ['.pem', '.crt', '.key'] as const

/**
 * The public key in `<folder>/<name>.pem|crt|key`; undefined without such a file. Throws INTERNAL if the file has
 * no key.
 */
async function readPublicKeyFile(folder: string, name: string): Promise<KeyObject | undefined> {
  const file = await readKeyFile(folder, name)
  return file === undefined ? undefined : readPublicKey(file.text, file.place)
}

/** The certificates in `<folder>/<name>.pem|crt|key`; undefined without such a file, or if it has none. */
async function readCertificateFile(folder: string, name: string): Promise<string | undefined> {
  const file = await readKeyFile(folder, name)
  return file === undefined ? undefined : certificatesIn(file.text)
}

/** Only the certificates of a text: a private key may be beside them. */
function certificatesIn(text: string): string | undefined {
  const found = text.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g)
  return found === null ? undefined : `${found.join('\n')}\n`
}

async function readKeyFile(folder: string, name: string) {
  if (!isKeyName(name)) return undefined
  for (const ending of keyFileEndings) {
    const text = await readSmallFileIfPresent(join(folder, name + ending))
    if (text !== undefined) return { text, place: `keys/${name}${ending}` }
  }
  return undefined
}

/** The error names `place` if the text has no key. */
function readPublicKey(text: string, place: string): KeyObject {
  try {
    return createPublicKey(text)
  } catch (cause) {
    throw new GatewayError('INTERNAL', `${place} holds neither a certificate nor a key in PEM form`, { cause })
  }
}

export interface SigningKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

const generate = promisify(generateKeyPair)

/** The signing key in `<folder>/<name>.jwk`, created if there is none; concurrent processes all return the same. */
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
