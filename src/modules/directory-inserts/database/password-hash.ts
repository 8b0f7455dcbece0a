import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify(argon2)

/** What one check of a password costs: RFC 9106's second choice in proportion, as OWASP advises for servers. */
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const
const saltBytes = 16
const tagBytes = 32
/** More than any hash that is made here asks for; a stored one that does was not. */
const most = { memory: 1 << 20, passes: 16, parallelism: 16 } as const

/** The argon2id hash of a password in PHC form. The salt is part of it. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  const tag = await derive('argon2id', parametersOf(password, salt, cost, tagBytes))
  const { memory, passes, parallelism } = cost
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(salt)}$${unpadded(tag)}`
}

/** Whether the hash is this password's. Without a hash the same work is done, and it is not. */
export async function isPassword(password: string, hash: string | undefined): Promise<boolean> {
  const stored = hash === undefined ? undefined : readHash(hash)
  const { salt, tag, ...asked } = stored ?? { ...cost, salt: noSalt, tag: noTag }
  const made = await derive('argon2id', parametersOf(password, salt, asked, tag.length))
  return timingSafeEqual(made, tag) && stored !== undefined
}

const noSalt = Buffer.alloc(saltBytes)
const noTag = Buffer.alloc(tagBytes)

type Cost = Readonly<Record<keyof typeof cost, number>>

/** The same word may be typed in several sequences of characters (RFC 8265 4.2). */
const parametersOf = (password: string, nonce: Buffer, asked: Cost, tagLength: number): Argon2Parameters => ({
  message: password.normalize('NFC'),
  nonce,
  memory: asked.memory,
  passes: asked.passes,
  parallelism: asked.parallelism,
  tagLength,
})

function readHash(text: string): (Cost & { readonly salt: Buffer; readonly tag: Buffer }) | undefined {
  const match = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([\w+/]{11,86})\$([\w+/]{16,86})$/.exec(text)
  if (match === null) return undefined
  const [, memory, passes, parallelism, salt = '', tag = ''] = match
  const asked = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (asked.memory > most.memory || asked.passes > most.passes || asked.parallelism > most.parallelism) return undefined
  return { ...asked, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
