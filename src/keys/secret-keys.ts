import { createSecretKey, hash, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseTrustedUrl } from '#kernel/address.ts'
import { systemClock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { readSmallFileIfPresent, readSmallFileSync } from '#kernel/small-file.ts'
import { TransitClient, type TransitLogin, TransitRefusal } from '#protocols/transit/transit-client.ts'

const variable = 'GATEHOUSE_SECRET_KEY'

/** A 256-bit key and the name by which an encrypted text refers to it. */
export interface SecretKey {
  readonly id: string
  readonly key: KeyObject
}

export interface SecretKeySource {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly dataFolder: string
}

/**
 * The keys that encrypt secrets of runs: the first encrypts, all of them decrypt. They are those of
 * GATEHOUSE_SECRET_KEY, in base64 and separated by commas, or the one in the data folder, created on first use.
 * Transit may wrap either, and unwraps it for this process. Processes that share a database must share them. Throws
 * an Error that does not show the key.
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

/** The same for a command, which does not create a key: without the installation's, it has none. */
export async function presentSecretKeys(source: SecretKeySource): Promise<readonly SecretKey[]> {
  const isSet = (source.environment[variable] ?? '') !== ''
  if (!isSet && !existsSync(join(source.dataFolder, 'keys', 'workflow-secret.key'))) return []
  return await loadSecretKeys(source)
}

/** Throws an Error, without the value, if the variable is not a list of keys, or one can't be unwrapped. */
export function checkSecretKeys(environment: SecretKeySource['environment']): void {
  const given = environment[variable] ?? ''
  const texts = given === '' ? [] : given.split(',')
  if (hasTransit(environment) || texts.some(isWrapped)) checkTransit(environment)
  for (const text of texts) if (!isWrapped(text)) readKey(text, variable)
}

/** The keys of an environment variable, in base64 and separated by commas; undefined if it is not set. */
export function readSecretKeys(
  environment: SecretKeySource['environment'],
  name: string,
): readonly SecretKey[] | undefined {
  const given = environment[name]
  return given === undefined || given === '' ? undefined : given.split(',').map((text) => readKey(text, name))
}

/** Derives a key for one purpose; it reveals nothing about the original key. */
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

type Environment = Readonly<Record<string, string | undefined>>

const podTokenFile = '/var/run/secrets/kubernetes.io/serviceaccount/token'
/** Used only at start, so no request waits for it. */
const startMillis = 10_000

/** Whether a text is a key wrapped by Transit. */
const isWrapped = (text: string): boolean => /^\s*vault:v\d+:/.test(text)

/** Whether new keys are wrapped. */
const hasTransit = ({ GATEHOUSE_TRANSIT_KEY: key }: Environment): boolean => key !== undefined && key !== ''

interface Place {
  readonly client: TransitClient
  readonly mount: string
  readonly key: string
}

/** Keys that this process unwrapped; it needs the service only at its start. */
const unwrapped = new Map<string, Promise<string>>()

/**
 * The key in base64. Rejects with TARGET_UNREACHABLE while Transit is unavailable, and with an Error that names a
 * wrong variable.
 */
function unwrapKey(text: string, environment: Environment): Promise<string> {
  const ciphertext = text.trim()
  let opened = unwrapped.get(ciphertext)
  if (opened === undefined) {
    opened = decrypt(ciphertext, environment)
    unwrapped.set(ciphertext, opened)
    opened.catch(() => unwrapped.delete(ciphertext))
  }
  return opened
}

async function decrypt(ciphertext: string, environment: Environment): Promise<string> {
  const data = await use(environment, ({ client, mount, key }) =>
    client.call('decrypt', 'POST', `${mount}/decrypt/${key}`, { ciphertext }),
  )
  if (typeof data?.['plaintext'] === 'string') return data['plaintext']
  throw new GatewayError('INTERNAL', 'Transit gave no key for the wrapped one')
}

/** A new 256-bit key, encrypted by Transit. */
async function makeWrappedKey(environment: Environment): Promise<string> {
  const data = await use(environment, ({ client, mount, key }) =>
    client.call('datakey', 'POST', `${mount}/datakey/wrapped/${key}`, { bits: 256 }),
  )
  if (typeof data?.['ciphertext'] === 'string') return data['ciphertext']
  throw new GatewayError('INTERNAL', 'Transit gave no wrapped key')
}

/** Throws an Error that names a missing or wrong variable. */
function checkTransit(environment: Environment): void {
  openPlace(environment).client.close()
}

async function use<T>(environment: Environment, work: (place: Place) => Promise<T>): Promise<T> {
  const place = openPlace(environment)
  try {
    return await work(place)
  } catch (error) {
    if (!(error instanceof TransitRefusal)) throw error
    const problem = `Transit refused to use ${place.mount}/${place.key} for the secret key: ${error.message}`
    throw new GatewayError('INTERNAL', problem, { cause: error })
  } finally {
    place.client.close()
  }
}

function openPlace(environment: Environment): Place {
  const given = (name: string): string | undefined => environment[`GATEHOUSE_TRANSIT_${name}`] || undefined
  const path = given('KEY') ?? ''
  const slash = path.lastIndexOf('/')
  if (!/^[A-Za-z0-9_./-]+$/.test(path) || slash < 1) {
    throw new Error(
      'GATEHOUSE_TRANSIT_KEY: a wrapped secret key needs the mount and the key, such as transit/gatehouse',
    )
  }
  let address: string
  try {
    address = parseTrustedUrl(given('ADDRESS') ?? '').origin
  } catch (error) {
    throw new Error(`GATEHOUSE_TRANSIT_ADDRESS: ${error instanceof Error ? error.message : String(error)}`)
  }
  const caFile = given('CA_FILE')
  const place = {
    address,
    namespace: given('NAMESPACE'),
    ca: caFile === undefined ? undefined : readText('CA_FILE', caFile),
    login: readLogin(given),
  }
  const client = new TransitClient(place, { clock: systemClock, timeoutMillis: startMillis })
  return { client, mount: path.slice(0, slash), key: path.slice(slash + 1) }
}

function readLogin(given: (name: string) => string | undefined): TransitLogin {
  const [token, tokenFile, role] = [given('TOKEN'), given('TOKEN_FILE'), given('ROLE')]
  if (token !== undefined) return { type: 'token', token }
  if (tokenFile !== undefined) return { type: 'token', token: readText('TOKEN_FILE', tokenFile) }
  if (role === undefined) {
    throw new Error('GATEHOUSE_TRANSIT_ROLE: set it, or GATEHOUSE_TRANSIT_TOKEN_FILE, so that the gateway can log in')
  }
  return { type: 'jwt', mount: given('LOGIN') ?? 'kubernetes', role, jwtFile: given('JWT_FILE') ?? podTokenFile }
}

function readText(name: string, file: string): string {
  try {
    return readSmallFileSync(file).trim()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`GATEHOUSE_TRANSIT_${name}: ${code === undefined ? message : `${file} cannot be read (${code})`}`)
  }
}

/**
 * The text of a file that only we may read, created if there is none. It is written completely under another name
 * and then linked to its own, which fails if that exists: one of several processes wins, and all return its text.
 */
export async function fileOnce(path: string, make: () => Promise<string>): Promise<string> {
  const present = await readSmallFileIfPresent(path)
  if (present !== undefined) return present
  const text = await make()
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const draft = join(folder, `.${newId()}.tmp`)
  try {
    await writeDurably(draft, text)
    await link(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await unlink(draft).catch(() => {})
  }
  const kept = await readSmallFileIfPresent(path)
  if (kept === undefined) throw new GatewayError('INTERNAL', `${path} vanished while it was made`)
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
