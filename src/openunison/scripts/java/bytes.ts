import { IllegalArgumentException } from './java-exception.ts'
import { javaText, javaValue, TextValue } from './java-value.ts'

/** A Java byte[]: its bytes are signed. */
export type Bytes = Int8Array

/** From a byte[] or an array of numbers. */
export function bytesOf(value: unknown): Uint8Array {
  if (value instanceof Int8Array) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  if (typeof value !== 'object' || value === null || !('length' in value)) {
    throw new IllegalArgumentException('bytes are needed')
  }
  return Uint8Array.from(value as ArrayLike<number>, (byte) => Number(byte) & 0xff)
}

export const signed = (bytes: ArrayLike<number>): Bytes => Int8Array.from(bytes)

/** java.nio.charset.Charset. */
export class Charset extends TextValue {
  readonly #name: string

  constructor(name: string) {
    super()
    this.#name = name
  }

  override toString(): string {
    return this.#name
  }
}

export const StandardCharsets = {
  UTF_8: new Charset('UTF-8'),
  ISO_8859_1: new Charset('ISO-8859-1'),
  US_ASCII: new Charset('US-ASCII'),
}

export function encodeText(text: string, charset?: unknown): Uint8Array {
  if (charsetName(charset) === 'UTF-8') return encodeUtf8(text)
  const limit = charsetName(charset) === 'US-ASCII' ? 0x7f : 0xff
  return Uint8Array.from(text, (letter) => ((letter.codePointAt(0) ?? 0) > limit ? 63 : (letter.codePointAt(0) ?? 0)))
}

export function decodeText(bytes: Uint8Array, charset?: unknown): string {
  if (charsetName(charset) === 'UTF-8') return decodeUtf8(bytes)
  const parts: string[] = []
  for (const byte of bytes) parts.push(String.fromCharCode(byte))
  return parts.join('')
}

/** Throws for an unsupported charset, as Java does for an unknown one. */
export function charsetName(charset: unknown): string {
  const name =
    javaValue(charset) === null
      ? 'UTF-8'
      : javaText(charset)
          .toUpperCase()
          .replace(/^UTF8$/, 'UTF-8')
  if (['UTF-8', 'ISO-8859-1', 'US-ASCII'].includes(name)) return name
  throw new IllegalArgumentException(`the charset ${name} is not served`)
}

/** Half of a surrogate pair becomes a question mark, as in Java. */
function encodeUtf8(text: string): Uint8Array {
  const bytes: number[] = []
  for (const letter of text) {
    const point = letter.codePointAt(0) ?? 0
    const code = point >= 0xd800 && point <= 0xdfff ? 63 : point
    if (code < 0x80) bytes.push(code)
    else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63))
    else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
    else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
  }
  return Uint8Array.from(bytes)
}

/** Invalid UTF-8 becomes U+FFFD. */
function decodeUtf8(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i] ?? 0
    const more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : first >= 0xe0 && first < 0xf0 ? 2 : 3
    const [lowest = 0, mask = 0] =
      [
        [0, 0x7f],
        [0x80, 0x1f],
        [0x800, 0x0f],
        [0x10000, 0x07],
      ][more] ?? []
    let code = first & mask
    let valid = first < 0x80 || (first >= 0xc2 && first < 0xf5)
    let taken = 1
    for (let n = 0; valid && n < more; n++) {
      const next = bytes[i + taken] ?? 0
      if ((next & 0xc0) !== 0x80) valid = false
      else {
        code = (code << 6) | (next & 63)
        taken++
      }
    }
    const isScalar = code >= lowest && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
    parts.push(valid && isScalar ? String.fromCodePoint(code) : '\ufffd')
    i += taken
  }
  return parts.join('')
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const standard = `${letters}+/`
const forUrls = `${letters}-_`

/** java.util.Base64. */
export const Base64 = {
  getEncoder: (): Encoder => new Encoder(standard, true),
  getUrlEncoder: (): Encoder => new Encoder(forUrls, true),
  getDecoder: (): Decoder => new Decoder(standard, false),
  getUrlDecoder: (): Decoder => new Decoder(forUrls, false),
  getMimeDecoder: (): Decoder => new Decoder(standard, true),
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
