/** The few forms of DER (X.690) that a certificate needs. */

const tag = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31 }

function encoded(kind: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([kind]), lengthOf(content.length), content])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

export const sequence = (...members: readonly Buffer[]): Buffer => encoded(tag.sequence, ...members)
export const set = (...members: readonly Buffer[]): Buffer => encoded(tag.set, ...members)
export const boolean = (value: boolean): Buffer => encoded(tag.boolean, Buffer.from([value ? 0xff : 0]))
export const utf8 = (text: string): Buffer => encoded(tag.utf8, Buffer.from(text))
export const octets = (content: Buffer): Buffer => encoded(tag.octets, content)

/** A number that is not negative, from its bytes, the highest first. */
export function integer(bytes: Buffer): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1
  const short = bytes.subarray(start)
  const isNegative = (short[0] ?? 0) >= 0x80
  return encoded(tag.integer, ...(isNegative ? [Buffer.from([0]), short] : [short]))
}

/** Bits of whole bytes, or fewer where `unused` ones at the end do not count. */
export const bits = (content: Buffer, unused = 0): Buffer => encoded(tag.bits, Buffer.from([unused]), content)

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return encoded(tag.oid, ...[first * 40 + second, ...rest].map(base128))
}

function base128(value: number): Buffer {
  const bytes = [value & 0x7f]
  for (let left = value >>> 7; left > 0; left >>>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return Buffer.from(bytes)
}

/** UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 demands. */
export function time(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)
  return at.getUTCFullYear() < 2050
    ? encoded(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : encoded(0x18, Buffer.from(`${digits}Z`))
}

/** `[n]` around whole values (constructed), or in place of a value's own tag (primitive). */
export const explicit = (number: number, ...contents: readonly Buffer[]): Buffer => encoded(0xa0 | number, ...contents)
export const implicit = (number: number, content: Buffer): Buffer => encoded(0x80 | number, content)
