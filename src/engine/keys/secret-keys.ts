import { createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { fileOnce } from '#engine/keys/file-once.ts'
import { checkTransit, hasTransit, isWrapped, makeWrappedKey, unwrapKey } from '#engine/keys/wrapped-key.ts'

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
 * GATEHOUSE_SECRET_KEY, in base64 and separated by commas, or the one in the data folder, made at first use. Either may be
 * wrapped by Transit, which then unwraps it for this process. Processes that share a database must share them. Throws an
 * Error that does not show the key.
 */
export async function loadSecretKeys({ environment, dataFolder }: SecretKeySource): Promise<readonly SecretKey[]> {
  const open = async (text: string, place: string): Promise<SecretKey> =>
    readKey(isWrapped(text) ? await unwrapKey(text, environment) : text, place)
  const given = environment[variable]
  if (given !== undefined && given !== '') return Promise.all(given.split(',').map((text) => open(text, variable)))
  const path = join(dataFolder, 'keys', 'workflow-secret.key')
  const make = async (): Promise<string> =>
    `${hasTransit(environment) ? await makeWrappedKey(environment) : randomBytes(32).toString('base64')}\n`
  return [await open(await fileOnce(path, make), path)]
}

/** Throws an Error, without the value, when the variable is set to something that is no key, or cannot be unwrapped. */
export function checkSecretKeys(environment: SecretKeySource['environment']): void {
  const given = environment[variable] ?? ''
  const texts = given === '' ? [] : given.split(',')
  if (hasTransit(environment) || texts.some(isWrapped)) checkTransit(environment)
  for (const text of texts) if (!isWrapped(text)) readKey(text, variable)
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
