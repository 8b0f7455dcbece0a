import { timingSafeEqual } from 'node:crypto'
import { type Argon2Cost, argon2idHash, derive, saltBytes, tagBytes } from '#kernel/argon2id.ts'

/** What one check of a password costs: RFC 9106's second choice in proportion, as OWASP advises for servers. */
export const usualCost: Argon2Cost = { memory: 19_456, passes: 2, parallelism: 1 }
/** More than any hash that is made here asks for; a stored one that does was not. */
const most = { memory: 1 << 20, passes: 16, parallelism: 16 } as const

/** The argon2id hash of a password in PHC form. The salt is part of it. */
export const hashPassword = (password: string, cost = usualCost): Promise<string> =>
  argon2idHash(asTyped(password), cost)

/** Whether the hash is this password's. Without a hash the same work is done, and it is not. */
export async function isPassword(password: string, hash: string | undefined, cost = usualCost): Promise<boolean> {
  const stored = hash === undefined ? undefined : readHash(hash)
  const { salt, tag, ...asked } = stored ?? { ...cost, salt: noSalt, tag: noTag }
  const made = await derive('argon2id', {
    message: asTyped(password),
    nonce: salt,
    memory: asked.memory,
    passes: asked.passes,
    parallelism: asked.parallelism,
    tagLength: tag.length,
  })
  return timingSafeEqual(made, tag) && stored !== undefined
}

const noSalt = Buffer.alloc(saltBytes)
const noTag = Buffer.alloc(tagBytes)

/** The same word may be typed in several sequences of characters (RFC 8265 4.2). */
const asTyped = (password: string): string => password.normalize('NFC')

function readHash(text: string): (Argon2Cost & { readonly salt: Buffer; readonly tag: Buffer }) | undefined {
  const match = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([\w+/]{11,86})\$([\w+/]{16,86})$/.exec(text)
  if (match === null) return undefined
  const [, memory, passes, parallelism, salt = '', tag = ''] = match
  const asked = { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) }
  if (asked.memory > most.memory || asked.passes > most.passes || asked.parallelism > most.parallelism) return undefined
  return { ...asked, salt: Buffer.from(salt, 'base64'), tag: Buffer.from(tag, 'base64') }
}
