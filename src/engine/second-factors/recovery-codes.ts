import { randomBytes } from 'node:crypto'
import { secretHash } from '#kernel/ids.ts'

const howMany = 10
/** Letters and digits that are not mistaken for one another: 32 of them, five bits each. */
const alphabet = 'abcdefghjkmnpqrstuvwxyz023456789'
const length = 16

/** Codes of 80 bits, so that their hashes tell nothing, in groups that can be copied by hand. */
export const newRecoveryCodes = (): readonly string[] => Array.from({ length: howMany }, newCode)

function newCode(): string {
  const letters = Array.from(randomBytes(length), (byte) => alphabet[byte & 31] ?? '').join('')
  return letters.replaceAll(/(.{4})(?=.)/g, '$1-')
}

/** What is kept of a code; undefined for a text that cannot be one. */
export function recoveryCodeHash(owner: string, written: string): string | undefined {
  if (written.length > 64) return undefined
  const code = written.toLowerCase().replaceAll(/[\s-]/g, '')
  if (code.length !== length || [...code].some((letter) => !alphabet.includes(letter))) return undefined
  return secretHash(JSON.stringify(['recovery code', owner, code]))
}
