import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeySource } from '#engine/keys/key-source.ts'
import type { SigningKey } from '#engine/keys/signing-key-file.ts'
import { systemClock } from '#kernel/clock.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { signToken, type TokenContent } from '#protocols/jwt/signing.ts'
import { readArguments } from '#server/commands/arguments.ts'
import type { CommandIo, RunCommand } from '#server/commands/commands.ts'
import { closeToOthers } from '#server/commands/open-database.ts'

const usage = `Usage: gatehouse token mint --subject S [--data DIR] [--issuer URL] [--audience A]
                            [--claim NAME=VALUE ...] [--ttl SECONDS] [--key NAME | --key-file F]

Prints a token for development, signed with the key that filters.DevelopmentIssuer publishes, or one for a client that can
only keep a fixed token, signed with a private key of yours.

  --subject S         the caller, as claim "sub"
  --data DIR          the data folder of the gateway (default .gatehouse)
  --issuer URL        default http://127.0.0.1:8080/dev-issuer
  --audience A        default gatehouse
  --claim NAME=VALUE  one more claim; a name that repeats makes a list
  --ttl SECONDS       how long the token is valid (default 3600)
  --key NAME          the signing key in the data folder (default development-issuer)
  --key-file F        an RSA private key in PEM form instead, whose public key is the chain's validationKey`

const options = {
  data: { type: 'string', default: '.gatehouse' },
  issuer: { type: 'string', default: 'http://127.0.0.1:8080/dev-issuer' },
  audience: { type: 'string', default: 'gatehouse' },
  subject: { type: 'string' },
  claim: { type: 'string', multiple: true },
  ttl: { type: 'string', default: '3600' },
  key: { type: 'string', default: 'development-issuer' },
  'key-file': { type: 'string' },
} as const

const longestLifetime = 366 * 24 * 3600
const registered = ['iss', 'aud', 'sub', 'iat', 'nbf', 'exp']

/** `gatehouse token mint`. */
export const tokenCommand: RunCommand = async (args, io) => {
  const read = readArguments(args, { usage, options, positionals: 1 }, io)
  if ('exit' in read) return read.exit
  const { data, issuer, audience, subject, claim, ttl, key } = read.values
  if (read.positionals[0] !== 'mint') return wrong(`unknown action "${read.positionals[0]}"`, io)
  if (subject === undefined || subject === '') return wrong('--subject is required', io)
  const lifetimeSeconds = /^\d{1,9}$/.test(ttl) ? Number(ttl) : 0
  if (lifetimeSeconds < 1 || lifetimeSeconds > longestLifetime) {
    return wrong(`--ttl must be a number of seconds from 1 to ${longestLifetime}`, io)
  }
  const claims = readClaims(claim ?? [])
  if (typeof claims === 'string') return wrong(claims, io)
  try {
    const content: TokenContent = { issuer, audience, subject, claims, lifetimeSeconds }
    const pair =
      read.values['key-file'] === undefined ? await ownKey(data, key, io) : await keyInFile(read.values['key-file'])
    io.stdout(await signToken(content, pair, systemClock))
    return 0
  } catch (error) {
    io.stderr(`gatehouse: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  }
}

async function ownKey(data: string, key: string, io: CommandIo): Promise<SigningKey> {
  if (!existsSync(join(data, 'keys', `${key}.jwk`))) {
    io.stderr(`gatehouse: made a new key in ${data}: only a gateway with this --data believes its tokens`)
  }
  closeToOthers(data, undefined)
  return createKeySource({ configuration: '.', data }).signingKey(key)
}

/** Throws when the file cannot be read or holds no RSA private key of a sound size. */
async function keyInFile(file: string): Promise<SigningKey> {
  const text = await readFile(file, 'utf8')
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(text)
  } catch (cause) {
    throw new Error(`${file} holds no private key in PEM form without a passphrase`, { cause })
  }
  const { modulusLength = 0 } = privateKey.asymmetricKeyDetails ?? {}
  if (privateKey.asymmetricKeyType !== 'rsa' || modulusLength < 2048) {
    throw new Error(`${file} must hold an RSA key of 2048 bits or more`)
  }
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

function wrong(message: string, io: CommandIo): number {
  io.stderr(`gatehouse: ${message}`)
  io.stderr(usage)
  return 2
}

/** The claims, or what is wrong with them. */
function readClaims(texts: readonly string[]): Map<string, string | string[]> | string {
  const claims = new Map<string, string | string[]>()
  for (const text of texts) {
    const end = text.indexOf('=')
    const name = text.slice(0, Math.max(end, 0))
    if (name === '' || isForbiddenKey(name)) return `--claim must be NAME=VALUE, not "${text}"`
    if (registered.includes(name)) return `--claim cannot set "${name}"; it has an option of its own or is computed`
    const value = text.slice(end + 1)
    const before = claims.get(name)
    claims.set(name, before === undefined ? value : [before, value].flat())
  }
  return claims
}
