import { randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import { argon2idHash, saltBytes, tagBytes, unpadded } from '#kernel/argon2id.ts'

export const passwordHashes = ['argon2id', 'scrypt'] as const
export type PasswordHash = (typeof passwordHashes)[number]

/** RFC 9106, 4: the second recommended option, for memory that is shared with others. */
const argon = { memory: 64 * 1024, passes: 3, parallelism: 4 }
const work = { ln: 15, r: 8, p: 1 }

const scryptAsync = promisify<string, Buffer, number, object, Buffer>(scrypt)

const hashers: Readonly<Record<PasswordHash, HashPassword>> = {
  argon2id: (password) => argon2idHash(password, argon),
  async scrypt(password) {
    const salt = randomBytes(saltBytes)
    const { ln, r, p } = work
    const tag = await scryptAsync(password, salt, tagBytes, { N: 2 ** ln, r, p, maxmem: 64 * 1024 * 1024 })
    return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(tag)}`
  },
}

/** Makes of a password a PHC string, which says by itself how it was made. */
export type HashPassword = (password: string) => Promise<string>

export const hasherOf = (hash: PasswordHash): HashPassword => hashers[hash]
