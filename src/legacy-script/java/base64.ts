import { type Bytes, bytesOf, decodeText, encodeText, signed } from './bytes.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { javaText, javaValue } from './java-value.ts'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const standard = `${letters}+/`
const forUrls = `${letters}-_`

/** java.util.Base64. */
export const Base64 = {
  getEncoder(): Encoder {
    return new Encoder(standard, true)
  },

  getUrlEncoder(): Encoder {
    return new Encoder(forUrls, true)
  },

  getDecoder(): Decoder {
    return new Decoder(standard, false)
  },

  getUrlDecoder(): Decoder {
    return new Decoder(forUrls, false)
  },

  getMimeDecoder(): Decoder {
    return new Decoder(standard, true)
  },
}

export class Encoder {
  readonly #alphabet: string
  readonly #padded: boolean

  constructor(alphabet: string, padded: boolean) {
    this.#alphabet = alphabet
    this.#padded = padded
  }

  encodeToString(bytes: unknown): string {
    return toBase64(bytesOf(bytes), this.#alphabet, this.#padded)
  }

  encode(bytes: unknown): Bytes {
    return signed(encodeText(this.encodeToString(bytes)))
  }

  withoutPadding(): Encoder {
    return new Encoder(this.#alphabet, false)
  }
}

export class Decoder {
  readonly #alphabet: string
  readonly #lenient: boolean

  constructor(alphabet: string, lenient: boolean) {
    this.#alphabet = alphabet
    this.#lenient = lenient
  }

  /** Of a text, or of the bytes of one. */
  decode(source: unknown): Bytes {
    const plain = javaValue(source)
    const text = typeof plain === 'string' ? plain : decodeText(bytesOf(plain), 'ISO-8859-1')
    return signed(fromBase64(text, this.#alphabet, this.#lenient))
  }
}

export function toBase64(bytes: Uint8Array, alphabet = standard, padded = true): string {
  const parts: string[] = []
  for (let i = 0; i < bytes.length; i += 3) {
    const [a = 0, b = 0, c = 0] = bytes.subarray(i, i + 3)
    const left = bytes.length - i
    const bits = (a << 16) | (b << 8) | c
    const group = [bits >> 18, (bits >> 12) & 63, (bits >> 6) & 63, bits & 63].map((n) => alphabet[n] ?? '')
    const used = left >= 3 ? 4 : left + 1
    parts.push(group.slice(0, used).join(''), padded ? '='.repeat(4 - used) : '')
  }
  return parts.join('')
}

export function fromBase64(source: string, alphabet = standard, lenient = false): Uint8Array {
  const text = (lenient ? source.replace(/[^A-Za-z0-9+/]/g, '') : source).replace(/={0,2}$/, '')
  if (text.length % 4 === 1) throw new IllegalArgumentException('Last unit does not have enough valid bits')
  const bytes: number[] = []
  let bits = 0
  let held = 0
  for (const letter of text) {
    const value = alphabet.indexOf(letter)
    if (value < 0) throw new IllegalArgumentException(`Illegal base64 character ${javaText(letter.charCodeAt(0))}`)
    bits = ((bits << 6) | value) & 0xffff
    held += 6
    if (held >= 8) {
      held -= 8
      bytes.push((bits >> held) & 0xff)
    }
  }
  return Uint8Array.from(bytes)
}
