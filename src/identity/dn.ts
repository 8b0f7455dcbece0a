interface Rdn {
  readonly type: string
  readonly value: string
  /** The value is a claim of a token: its letter case and white space count. */
  readonly isClaim?: true
}

/** A distinguished name (RFC 4514). Values are plain text; escaping happens when it is written out. */
export class Dn {
  /** Most specific first; a multi-valued RDN has several parts. */
  readonly rdns: readonly (readonly Rdn[])[]
  #keys: readonly string[] | undefined
  #key: string | undefined

  constructor(rdns: readonly (readonly Rdn[])[]) {
    this.rdns = rdns
  }

  /** Throws DnSyntaxError. The empty text is the root, which everything is within. */
  static parse(text: string): Dn {
    return new Dn(readDn(text))
  }

  /** From single-valued RDNs, most specific first. Values are never parsed. */
  static of(...rdns: readonly (readonly [type: string, value: string])[]): Dn {
    return new Dn(rdns.map(([type, value]) => [checkedRdn(type, value)]))
  }

  /** The name one level below. The value is never parsed; throws RangeError for an invalid attribute type. */
  child(type: string, value: string): Dn {
    return new Dn([[checkedRdn(type, value)], ...this.rdns])
  }

  /** The same name with its most specific value marked as a claim, which is compared exactly. */
  claimed(): Dn {
    const [leaf = [], ...above] = this.rdns
    return new Dn([leaf.map((part) => ({ ...part, isClaim: true as const })), ...above])
  }

  get isClaimed(): boolean {
    return this.rdns[0]?.some(({ isClaim }) => isClaim === true) ?? false
  }

  /** Undefined for the root. */
  get parent(): Dn | undefined {
    return this.rdns.length === 0 ? undefined : new Dn(this.rdns.slice(1))
  }

  /**
   * The key is the same for names that differ in letter case, order within an RDN or width of white space. It is
   * unambiguous, so it serves as a map key or a database key. Names that differ in a claim's letter case have the
   * same key, and are not equal.
   */
  get key(): string {
    this.#key ??= this.#rdnKeys().join(',')
    return this.#key
  }

  equals(other: Dn): boolean {
    return this.rdns.length === other.rdns.length && this.isWithin(other)
  }

  /** True for the ancestor itself and everything below it. Compares whole RDNs, so a value can't pass for a suffix. */
  isWithin(ancestor: Dn): boolean {
    const own = this.#rdnKeys()
    const theirs = ancestor.#rdnKeys()
    const depth = own.length - theirs.length
    return (
      depth >= 0 &&
      theirs.every((key, i) => own[depth + i] === key && sameClaims(this.rdns[depth + i], ancestor.rdns[i]))
    )
  }

  /** This name after its ancestor `from` has moved to `to`; undefined if it isn't within `from`. */
  rebase(from: Dn, to: Dn): Dn | undefined {
    if (!this.isWithin(from)) return undefined
    return new Dn([...this.rdns.slice(0, this.rdns.length - from.rdns.length), ...to.rdns])
  }

  /** RFC 4514 text that parses to the same name. */
  toString(): string {
    return this.rdns.map((rdn) => rdn.map(printPart).join('+')).join(',')
  }

  #rdnKeys(): readonly string[] {
    this.#keys ??= this.rdns.map((rdn) => rdn.map(normalizePart).map(printPart).sort().join('+'))
    return this.#keys
  }
}

/** Compares two RDNs that differ at most in letter case and white space. */
function sameClaims(one: readonly Rdn[] = [], other: readonly Rdn[] = []): boolean {
  if (![...one, ...other].some(({ isClaim }) => isClaim === true)) return true
  const exact = (rdn: readonly Rdn[]) => rdn.map(({ value }) => value).sort()
  return JSON.stringify(exact(one)) === JSON.stringify(exact(other))
}

const printPart = ({ type, value }: Rdn): string => `${type}=${escapeValue(value)}`

const normalizePart = ({ type, value }: Rdn): Rdn => ({
  type: type.toLowerCase(),
  value: value.toLowerCase().trim().replace(/\s+/g, ' '),
})

function checkedRdn(type: string, value: string): Rdn {
  if (!isAttributeType(type)) throw new RangeError(`"${type}" cannot be an attribute type of a distinguished name`)
  return { type, value }
}

const maxLength = 8192
const maxParts = 100

export class DnSyntaxError extends Error {
  /** Counted from 1. */
  readonly position: number

  constructor(reason: string, position: number) {
    super(`distinguished name: ${reason} at character ${position}`)
    this.name = 'DnSyntaxError'
    this.position = position
  }
}

/**
 * A short name or a numeric OID. RFC 4512 has no underscore, but names made from token claims, such as
 * `preferred_username=…`, need it.
 */
export const isAttributeType = (text: string): boolean =>
  text.length <= 256 && /^(?:[A-Za-z][A-Za-z0-9_-]*|\d+(?:\.\d+)+)$/.test(text)

/** The value as it is written in a name's text (RFC 4514 section 2.4). */
function escapeValue(value: string): string {
  let escaped = ''
  const last = value.length - 1
  for (let i = 0; i <= last; i++) {
    const char = value.charAt(i)
    if (char === '\0') escaped += '\\00'
    else if ('"+,;<>\\='.includes(char)) escaped += `\\${char}`
    else if (char === ' ' && (i === 0 || i === last)) escaped += '\\ '
    else if (char === '#' && i === 0) escaped += '\\#'
    else if (char < ' ' || char === '\x7f') escaped += `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`
    else escaped += char
  }
  return escaped
}

function readDn(text: string): Rdn[][] {
  if (text.length > maxLength) throw new DnSyntaxError(`longer than ${maxLength} characters`, maxLength + 1)
  return new DnReader(text).read()
}

class DnReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  read(): Rdn[][] {
    this.#skipSpaces()
    if (this.#at === this.#text.length) return []
    let rdn: Rdn[] = []
    const rdns = [rdn]
    for (let parts = 1; ; parts++) {
      if (parts > maxParts) throw this.#error(`more than ${maxParts} parts`)
      rdn.push(this.#readPart())
      const separator = this.#text[this.#at]
      if (separator === undefined) return rdns
      if (separator === ',') {
        rdn = []
        rdns.push(rdn)
      } else if (separator !== '+') {
        throw this.#error(`"${separator}" must be escaped with "\\"`)
      }
      this.#at++
    }
  }

  #readPart(): Rdn {
    this.#skipSpaces()
    const start = this.#at
    const equals = this.#text.indexOf('=', start)
    const type = (equals < 0 ? this.#text.slice(start) : this.#text.slice(start, equals)).trimEnd()
    if (!isAttributeType(type)) throw this.#error('expected an attribute type such as "cn"')
    if (equals < 0) throw this.#error('expected "=" behind the attribute type', this.#text.length)
    this.#at = equals + 1
    this.#skipSpaces()
    const next = this.#text[this.#at]
    if (next === '#') return { type, value: this.#readHexValue() }
    return { type, value: next === '"' ? this.#readQuoted() : this.#readPlain() }
  }

  #readPlain(): string {
    let value = ''
    /** Spaces after this length are padding, unless something follows them. */
    let kept = 0
    while (this.#at < this.#text.length) {
      const char = this.#text.charAt(this.#at)
      if (char === ',' || char === '+') break
      if (char === '\\') {
        value += this.#readEscapes()
        kept = value.length
        continue
      }
      if ('";<>\0'.includes(char)) throw this.#error(`"${char}" must be escaped with "\\"`)
      value += char
      if (char !== ' ') kept = value.length
      this.#at++
    }
    return value.slice(0, kept)
  }

  #readQuoted(): string {
    const start = this.#at++
    let value = ''
    for (;;) {
      const char = this.#text[this.#at]
      if (char === undefined) throw this.#error('the quoted value has no end', start)
      if (char === '\\') {
        value += this.#readEscapes()
        continue
      }
      this.#at++
      if (char === '"') break
      value += char
    }
    this.#skipSpaces()
    return value
  }

  /** One escaped character, or a run of hex pairs, which are the bytes of UTF-8 text. */
  #readEscapes(): string {
    const start = this.#at
    const bytes: number[] = []
    while (this.#text[this.#at] === '\\') {
      const pair = this.#text.slice(this.#at + 1, this.#at + 3)
      if (!/^[0-9A-Fa-f]{2}$/.test(pair)) break
      bytes.push(Number.parseInt(pair, 16))
      this.#at += 3
    }
    if (bytes.length > 0) return this.#decode(bytes, start)
    const char = this.#text.charAt(this.#at + 1)
    if (char === '' || !' "#+,;<=>\\'.includes(char))
      throw this.#error('"\\" must escape a special character or a byte')
    this.#at += 2
    return char
  }

  /** `#` and the BER encoding of a string; other types have no text to compare. */
  #readHexValue(): string {
    const start = this.#at++
    const digits = /^[0-9A-Fa-f]*/.exec(this.#text.slice(this.#at))?.[0] ?? ''
    this.#at += digits.length
    this.#skipSpaces()
    const [tag, length, ...content] = Buffer.from(digits, 'hex')
    const isString = tag === 0x04 || tag === 0x0c || tag === 0x13 || tag === 0x16
    if (digits.length % 2 !== 0 || !isString || length !== content.length || length > 127) {
      throw this.#error('a "#" value must be the BER encoding of a string of at most 127 bytes', start)
    }
    return this.#decode(content, start)
  }

  #decode(bytes: readonly number[], start: number): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
    } catch {
      throw this.#error('the bytes are not UTF-8', start)
    }
  }

  #skipSpaces(): void {
    while (this.#text[this.#at] === ' ') this.#at++
  }

  #error(reason: string, at = this.#at): DnSyntaxError {
    return new DnSyntaxError(reason, at + 1)
  }
}
