import { argon2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

/** The cost of one hash: kibibytes of memory, passes over them, and lanes. */
export interface Argon2Cost {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

export const derive = promisify(argon2)

export const saltBytes = 16
export const tagBytes = 32

/** The argon2id hash of a password as a PHC string, which includes the parameters and the salt. */
export async function argon2idHash(password: string, { memory, passes, parallelism }: Argon2Cost): Promise<string> {
  const nonce = randomBytes(saltBytes)
  const made = { message: password, nonce, memory, passes, parallelism, tagLength: tagBytes }
  const tag = await derive('argon2id', made)
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`
}

/** Base64 without padding, as in PHC strings. */
export const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
