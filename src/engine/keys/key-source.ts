import { join } from 'node:path'
import { readPublicKey, readPublicKeyFile } from '#engine/keys/public-key-file.ts'
import { openSigningKey } from '#engine/keys/signing-key-file.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { KeySource } from '#sdk/host.ts'

export interface KeyFolders {
  /** The configuration folder; its `keys/` holds certificates and public keys. */
  readonly configuration: string
  /** The data folder; its `keys/` holds the signing keys of this installation. Absent where there is none. */
  readonly data: string | undefined
  /** The certificate in the secret of that name, where there is one. */
  certificate?(secretName: string): string | undefined
}

/** Keys in files and secrets. Public keys are read anew each time, signing keys once. */
export function createKeySource(folders: KeyFolders): KeySource {
  const signing = new Map<string, ReturnType<KeySource['signingKey']>>()
  return {
    async publicKey(name) {
      const inFile = await readPublicKeyFile(join(folders.configuration, 'keys'), name)
      if (inFile !== undefined) return inFile
      const certificate = folders.certificate?.(name)
      return certificate === undefined ? undefined : readPublicKey(certificate, `the secret ${name}`)
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
  }
}
