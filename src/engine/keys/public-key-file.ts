import { createPublicKey, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { GatewayError } from '#kernel/errors.ts'
import { isKeyName } from '#kernel/signing-key.ts'
import { readSmallFileIfPresent } from '#kernel/small-file.ts'

/** Endings of key files in the order they are looked for; each may hold a certificate, a public or a private key. */
const keyFileEndings = ['.pem', '.crt', '.key'] as const

/**
 * The public key in `<folder>/<name>.pem|crt|key`; undefined when there is no such file.
 * Throws INTERNAL when there is one that holds no key.
 */
export async function readPublicKeyFile(folder: string, name: string): Promise<KeyObject | undefined> {
  const file = await readKeyFile(folder, name)
  return file === undefined ? undefined : readPublicKey(file.text, file.place)
}

/** The certificates in `<folder>/<name>.pem|crt|key`; undefined when there is no such file, or none in it. */
export async function readCertificateFile(folder: string, name: string): Promise<string | undefined> {
  const file = await readKeyFile(folder, name)
  return file === undefined ? undefined : certificatesIn(file.text)
}

/** The certificates of a text, and nothing else of it: a private key may stand beside them. */
export function certificatesIn(text: string): string | undefined {
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

/** `place` is named in the error when the text holds no key. */
export function readPublicKey(text: string, place: string): KeyObject {
  try {
    return createPublicKey(text)
  } catch (cause) {
    throw new GatewayError('INTERNAL', `${place} holds neither a certificate nor a key in PEM form`, { cause })
  }
}
