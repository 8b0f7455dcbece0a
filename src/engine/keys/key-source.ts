import { join } from 'node:path'
import { certificatesIn, readCertificateFile, readPublicKey, readPublicKeyFile } from '#engine/keys/public-key-file.ts'
import { derivedKey, loadSecretKeys, type SecretKey } from '#engine/keys/secret-keys.ts'
import { openSigningKey } from '#engine/keys/signing-key-file.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { KeySource } from '#sdk/module/host.ts'

export interface KeyFolders {
  /** The configuration folder; its `keys/` holds certificates and public keys. */
  readonly configuration: string
  /** The data folder; its `keys/` holds the signing keys of this installation. Absent where there is none. */
  readonly data: string | undefined
  /** Where secret keys are looked for before the data folder. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** The certificate in the secret of that name, where there is one. */
  certificate?(secretName: string): string | undefined
}

/** Keys in files and secrets. Public keys are read anew each time, all others once. */
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
