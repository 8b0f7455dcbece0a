import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CommandIo, CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  readPairs,
  required,
  type Values,
  WrongUsage,
  wholeNumber,
} from '#cli/command-line/command-line.ts'
import { closeToOthers } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { systemClock } from '#kernel/clock.ts'
import { createKeySource, type SigningKey } from '#keys/key-source.ts'
import { signToken, type TokenContent } from '#protocols/jwt/signing.ts'

const options = {
  subject: { value: 'NAME', about: 'The caller, claim "sub"' },
  data: databaseOptions.data,
  issuer: { value: 'URL', default: 'http://127.0.0.1:8080/dev-issuer', about: 'Claim "iss"' },
  audience: { value: 'NAME', default: 'gatehouse', about: 'Claim "aud"' },
  claim: {
    value: 'NAME=VALUE',
    multiple: true,
    about: 'Another claim; can be repeated, also with the same name for a list',
  },
  ttl: { value: 'SECONDS', default: '3600', about: 'Lifetime of the token' },
  key: { value: 'NAME', default: 'development-issuer', about: 'Signing key in the data folder' },
  'key-file': { value: 'FILE', about: 'RSA private key, PEM, whose public key is the validationKey of the chain' },
  ...outputOption,
} as const

export const tokenCommand = defineCommand({
  name: 'token',
  about: 'Create tokens for development.',
  options,
  actions: {
    mint: {
      usage: '--subject NAME [options]',
      about: `Print a token signed with the key that filters.DevelopmentIssuer publishes, or a fixed token that is
signed with a private key of your own`,
      run: mint,
    },
  },
  examples: ['gatehouse token mint --subject ada --claim groups=admins'],
})

const longestLifetime = 366 * 24 * 3600
const registered = ['iss', 'aud', 'sub', 'iat', 'nbf', 'exp']

async function mint(values: Values<typeof options>, _: readonly string[], io: CommandOutput): Promise<void> {
  const { data, issuer, audience, key, 'key-file': keyFile } = values
  const subject = required(values.subject || undefined, 'subject')
  const lifetimeSeconds = wholeNumber(values.ttl, 1, longestLifetime)
  if (lifetimeSeconds === undefined) {
    throw new WrongUsage(`--ttl must be a number of seconds from 1 to ${longestLifetime}`)
  }
  const claims = readClaims(values.claim)
  const content: TokenContent = { issuer, audience, subject, claims, lifetimeSeconds }
  const pair = keyFile === undefined ? await ownKey(data, key, io) : await keyInFile(keyFile)
  const token = await signToken(content, pair, systemClock)
  io.stdout(token)
  io.result({ token, expiresIn: lifetimeSeconds })
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

function readClaims(texts: readonly string[]): Map<string, string | string[]> {
  const claims = new Map<string, string | string[]>()
  for (const [name, values] of readPairs('claim', texts)) {
    if (registered.includes(name)) {
      throw new WrongUsage(`--claim cannot set "${name}"; use its option, or leave it out: it is computed`)
    }
    claims.set(name, values.length === 1 ? (values[0] ?? '') : values)
  }
  return claims
}
