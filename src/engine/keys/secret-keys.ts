import { createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileOnce } from '#engine/keys/file-once.ts'

const variable = 'GATEHOUSE_SECRET_KEY'

/** A key of 256 bits and the name by which a sealed text says that it needs this one. */
export interface SecretKey {
  readonly id: string
  readonly key: KeyObject
}

export interface SecretKeySource {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly dataFolder: string
}

/**
 * The keys that secrets of runs are sealed with: the first seals, all of them open. They are those of
 * GATEHOUSE_SECRET_KEY, in base64 and separated by commas, or the one in the data folder, made at first use. Processes
 * that share a database must share them. Throws an Error that does not show the key.
 */
export async function loadSecretKeys({ environment, dataFolder }: SecretKeySource): Promise<readonly SecretKey[]> {
  const given = readSecretKeys(environment, variable)
  if (given !== undefined) return given
  const path = join(dataFolder, 'keys', 'workflow-secret.key')
  return [readKey(await fileOnce(path, async () => `${randomBytes(32).toString('base64')}\n`), path)]
}

/** Throws an Error, without the value, when the variable is set to something that is no key. */
export function checkSecretKeys(environment: SecretKeySource['environment']): void {
  readSecretKeys(environment, variable)
}

/** The keys of an environment variable, in base64 and separated by commas; undefined where it is not set. */
export function readSecretKeys(
  environment: SecretKeySource['environment'],
  name: string,
): readonly SecretKey[] | undefined {
  const given = environment[name]
  return given === undefined || given === '' ? undefined : given.split(',').map((text) => readKey(text, name))
}

/** Another key for one purpose; nothing can be learned from it about the key it was derived from. */
export const derivedKey = (key: KeyObject, purpose: string): SecretKey =>
  namedKey(Buffer.from(hkdfSync('sha256', key, '', purpose, 32)))

function readKey(text: string, place: string): SecretKey {
  const bytes = Buffer.from(text.trim(), 'base64')
  if (bytes.length !== 32)
    throw new Error(`${place}: a key is 32 bytes in base64, as "openssl rand -base64 32" makes it`)
  return namedKey(bytes)
}

const namedKey = (bytes: Buffer): SecretKey => ({
  id: hash('sha256', Buffer.concat([Buffer.from('gatehouse key'), bytes]), 'base64url').slice(0, 12),
  key: createSecretKey(bytes),
})
