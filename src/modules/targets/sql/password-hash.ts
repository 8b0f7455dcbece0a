import { argon2, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'

export const passwordHashes = ['argon2id', 'scrypt'] as const
export type PasswordHash = (typeof passwordHashes)[number]

const saltBytes = 16
const tagBytes = 32

/** RFC 9106, 4: the second recommended option, for memory that is shared with others. */
const argon = { memory: 64 * 1024, passes: 3, parallelism: 4 }
const work = { ln: 15, r: 8, p: 1 }

const scryptAsync = promisify<string, Buffer, number, object, Buffer>(scrypt)

const hashers: Readonly<Record<PasswordHash, (password: string) => Promise<string>>> = {
  async argon2id(password) {
    const nonce = randomBytes(saltBytes)
    const tag = await promisify(argon2)('argon2id', { message: password, nonce, tagLength: tagBytes, ...argon })
    return `$argon2id$v=19$m=${argon.memory},t=${argon.passes},p=${argon.parallelism}$${base64(nonce)}$${base64(tag)}`
  },
  async scrypt(password) {
    const salt = randomBytes(saltBytes)
    const { ln, r, p } = work
    const tag = await scryptAsync(password, salt, tagBytes, { N: 2 ** ln, r, p, maxmem: 64 * 1024 * 1024 })
    return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(tag)}`
  },
}

/** As a PHC string, which says by itself how it was made. */
export const hashPassword = (password: string, hash: PasswordHash): Promise<string> => hashers[hash](password)

/** Base64 without padding, as PHC strings have it. */
const base64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')
