/** SHA-256 (FIPS 180-4) without waiting, for many short texts in a row; browsers have it only with a wait for each. */

const primes = firstPrimes(64)
const fraction = (value: number): number => ((value - Math.floor(value)) * 2 ** 32) | 0
const roundConstants = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)))
const initial = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)))

function firstPrimes(count: number): number[] {
  const found: number[] = []
  for (let n = 2; found.length < count; n += 1) if (found.every((prime) => n % prime !== 0)) found.push(n)
  return found
}

const schedule = new Int32Array(64)
const turn = (word: number, by: number): number => (word >>> by) | (word << (32 - by))
const at = (words: Int32Array, i: number): number => words[i] ?? 0

/** One block of 64 bytes into the state. */
function compress(state: Int32Array, block: DataView, offset: number): void {
  for (let i = 0; i < 16; i += 1) schedule[i] = block.getInt32(offset + i * 4)
  for (let i = 16; i < 64; i += 1) {
    const [x, y] = [at(schedule, i - 15), at(schedule, i - 2)]
    const low = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)
    const high = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10)
    schedule[i] = (at(schedule, i - 16) + low + at(schedule, i - 7) + high) | 0
  }
  let [a, b, c, d] = [at(state, 0), at(state, 1), at(state, 2), at(state, 3)]
  let [e, f, g, h] = [at(state, 4), at(state, 5), at(state, 6), at(state, 7)]
  for (let i = 0; i < 64; i += 1) {
    const high = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)
    const one = (h + high + ((e & f) ^ (~e & g)) + at(roundConstants, i) + at(schedule, i)) | 0
    const low = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)
    const two = (low + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + one) | 0
    d = c
    c = b
    b = a
    a = (one + two) | 0
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = (at(state, i) + word) | 0
}

/** The hash as eight words. */
export function sha256(message: Uint8Array): Int32Array {
  const padded = new Uint8Array(Math.ceil((message.length + 9) / 64) * 64)
  padded.set(message)
  padded[message.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29))
  view.setUint32(padded.length - 4, message.length * 8)
  const state = initial.slice()
  for (let offset = 0; offset < padded.length; offset += 64) compress(state, view, offset)
  return state
}
