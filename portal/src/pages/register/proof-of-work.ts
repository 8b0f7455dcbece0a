import { sha256 } from './sha256.ts'

/** So many zero bits does a hash start with. */
export function leadingZeroBits(words: Int32Array): number {
  let bits = 0
  for (const word of words) {
    if (word !== 0) return bits + Math.clz32(word)
    bits += 32
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
