import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isKeyName } from '#engine/keys/key-name.ts'
import { GatewayError } from '#kernel/errors.ts'

/** Endings of files with private keys, in the order they are looked for. */
const endings = ['.key', '.pem'] as const
const mostBytes = 64 * 1024

/**
 * The private key in `<folder>/<name>.key|pem`; undefined when there is none, or the file has only a certificate or a
 * public key. Calls `onPrivateFile` with the path of a file that holds one. Throws INTERNAL where it cannot be read.
 */
export async function readPrivateKeyFile(
  folder: string,
  name: string,
  onPrivateFile: (path: string) => void = () => {},
): Promise<KeyObject | undefined> {
  if (!isKeyName(name)) return undefined
  for (const ending of endings) {
    const path = join(folder, name + ending)
    const text = await readIfPresent(path)
    if (!text?.includes('PRIVATE KEY-----')) continue
    onPrivateFile(path)
    return readPrivateKey(text, `keys/${name}${ending}`)
  }
  return undefined
}

/** `place` is named in the error, and nothing of the text is. */
export function readPrivateKey(text: string, place: string): KeyObject {
  try {
    return createPrivateKey(text.slice(0, mostBytes))
  } catch {
    throw new GatewayError('INTERNAL', `${place} holds no private key that can be read without a passphrase`)
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
