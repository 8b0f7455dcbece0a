import { sha256 } from '@noble/hashes/sha2.js'

/** The number of zero bits that a hash starts with. */
export function leadingZeroBits(hash: Uint8Array): number {
  let bits = 0
  for (const byte of hash) {
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

/** The answer to a challenge of the registration API: `<challenge>.<nonce>`. */
export function solve(challenge: string, difficulty: number): string {
  const encoder = new TextEncoder()
  for (let nonce = 0; ; nonce += 1) {
    const answer = `${challenge}.${nonce.toString(36)}`
    if (leadingZeroBits(sha256(encoder.encode(answer))) >= difficulty) return answer
  }
}
