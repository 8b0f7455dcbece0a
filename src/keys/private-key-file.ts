import type { KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { GatewayError } from '#kernel/errors.ts'
import { readSmallFileIfPresent } from '#kernel/small-file.ts'
import {
  isKeyName,
  looksLikePrivateKey,
  privateKeyEndings,
  readSigningKey,
  type TokenAlgorithm,
} from '#protocols/jwt/signing-key.ts'

/**
 * The private key in `<folder>/<name>.key|pem`; undefined if there is none, or the file has only a certificate or a
 * public key. Calls `onPrivateFile` with the path of a file with a private key. Throws INTERNAL if it can't be read
 * or does not sign with the algorithm.
 */
export async function readPrivateKeyFile(
  folder: string,
  name: string,
  algorithm: TokenAlgorithm,
  onPrivateFile: (path: string) => void = () => {},
): Promise<KeyObject | undefined> {
  if (!isKeyName(name)) return undefined
  for (const ending of privateKeyEndings) {
    const path = join(folder, name + ending)
    const text = await readSmallFileIfPresent(path)
    if (text === undefined || !looksLikePrivateKey(text)) continue
    onPrivateFile(path)
    return readPrivateKey(text, `keys/${name}${ending}`, algorithm)
  }
  return undefined
}

/** The error names `place`, and nothing of the text. */
export function readPrivateKey(text: string, place: string, algorithm: TokenAlgorithm): KeyObject {
  try {
    return readSigningKey(text, algorithm)
  } catch (error) {
    throw new GatewayError('INTERNAL', `${place} ${error instanceof Error ? error.message : String(error)}`)
  }
}
