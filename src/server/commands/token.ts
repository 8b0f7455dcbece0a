import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeySource, type SigningKey } from '#engine/keys/key-source.ts'
import { systemClock } from '#kernel/clock.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import { signToken, type TokenContent } from '#protocols/jwt/signing.ts'
import type { CommandIo, RunCommand } from '#server/commands/command-line.ts'
import { readArguments, runAction, wrongUsage } from '#server/commands/command-line.ts'
import { closeToOthers } from '#server/commands/installation.ts'

const usage = `Create a token for development, signed with the key that filters.DevelopmentIssuer publishes, or a fixed token that
is signed with a private key of your own.

Usage:
  gatehouse token mint --subject NAME [options]

Options:
  --subject NAME      The caller, claim "sub"
  --data DIR          Data folder of the gateway (default .gatehouse)
  --issuer URL        Claim "iss" (default http://127.0.0.1:8080/dev-issuer)
  --audience NAME     Claim "aud" (default gatehouse)
  --claim NAME=VALUE  Another claim; can be repeated, also with the same name for a list
  --ttl SECONDS       Lifetime of the token (default 3600)
  --key NAME          Signing key in the data folder (default development-issuer)
  --key-file FILE     RSA private key, PEM, whose public key is the validationKey of the chain`

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

export const tokenCommand: RunCommand = async (args, io) => {
  const read = readArguments(args, { command: 'token', usage, options, positionals: 1, names: ['mint'] }, io)
  if ('exit' in read) return read.exit
  const { data, issuer, audience, subject, claim, ttl, key } = read.values
  const wrong = (message: string): number => wrongUsage('token', message, io)
  if (read.positionals[0] !== 'mint') return wrong(`unknown action "${read.positionals[0]}"`)
  if (subject === undefined || subject === '') return wrong('--subject is required')
  const lifetimeSeconds = /^\d{1,9}$/.test(ttl) ? Number(ttl) : 0
  if (lifetimeSeconds < 1 || lifetimeSeconds > longestLifetime) {
    return wrong(`--ttl must be a number of seconds from 1 to ${longestLifetime}`)
  }
  const claims = readClaims(claim ?? [])
  if (typeof claims === 'string') return wrong(claims)
  return runAction('token', io, async () => {
    const content: TokenContent = { issuer, audience, subject, claims, lifetimeSeconds }
    const pair =
      read.values['key-file'] === undefined ? await ownKey(data, key, io) : await keyInFile(read.values['key-file'])
    io.stdout(await signToken(content, pair, systemClock))
    return 0
  })
}

async function ownKey(data: string, key: string, io: CommandIo): Promise<SigningKey> {
  if (!existsSync(join(data, 'keys', `${key}.jwk`))) {
    io.stderr(`Created a signing key in ${data}. Only gateways that use this data folder accept its tokens.`)
  }
  closeToOthers(data, undefined)
  return createKeySource({ configuration: '.', data }).signingKey(key)
}

/** Throws if the file can't be read or has no RSA private key of at least 2048 bits. */
async function keyInFile(file: string): Promise<SigningKey> {
  const text = await readFile(file, 'utf8')
  let privateKey: KeyObject
  try {
    privateKey = createPrivateKey(text)
  } catch (cause) {
    throw new Error(`${file} is not a private key in PEM form without a passphrase`, { cause })
  }
  const { modulusLength = 0 } = privateKey.asymmetricKeyDetails ?? {}
  if (privateKey.asymmetricKeyType !== 'rsa' || modulusLength < 2048) {
    throw new Error(`${file} must be an RSA key of at least 2048 bits`)
  }
  return { privateKey, publicKey: createPublicKey(privateKey) }
}

/** The claims, or what is wrong with them. */
function readClaims(texts: readonly string[]): Map<string, string | string[]> | string {
  const claims = new Map<string, string | string[]>()
  for (const text of texts) {
    const end = text.indexOf('=')
    const name = text.slice(0, Math.max(end, 0))
    if (name === '' || isForbiddenKey(name)) return `--claim must be NAME=VALUE, not "${text}"`
    if (registered.includes(name))
      return `--claim cannot set "${name}"; use its option, or leave it out: it is computed`
    const value = text.slice(end + 1)
    const before = claims.get(name)
    claims.set(name, before === undefined ? value : [before, value].flat())
  }
  return claims
}
