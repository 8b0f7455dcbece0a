import { bytesOf, charsetName, decodeText, encodeText } from './bytes.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { javaText, TextValue } from './java-value.ts'

/** RFC 3986, appendix B. */
const parts = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/

/** java.net.URI. */
export class URI extends TextValue {
  readonly #text: string
  readonly #parts: readonly (string | undefined)[]

  constructor(source: unknown) {
    super()
    this.#text = javaText(source)
    const illegal = /[\s<>"{}|\\^`\p{Cc}]|%(?![0-9a-f]{2})/iu.exec(this.#text)
    const found = parts.exec(this.#text)
    if (illegal !== null || found === null) {
      throw new IllegalArgumentException(`Illegal character in URI at index ${illegal?.index ?? 0}: ${this.#text}`)
    }
    this.#parts = found
  }

  static create(source: unknown): URI {
    return new URI(source)
  }

  getScheme(): string | null {
    return this.#parts[1] ?? null
  }

  getAuthority(): string | null {
    return this.#parts[2] ?? null
  }

  getHost(): string | null {
    return this.getAuthority()?.replace(/^.*@/, '').replace(/:\d*$/, '') ?? null
  }

  getPort(): number {
    const digits = /:(\d+)$/.exec(this.getAuthority() ?? '')?.[1]
    return digits === undefined ? -1 : Number(digits)
  }

  getPath(): string {
    return decoded(this.getRawPath())
  }

  getRawPath(): string {
    return this.#parts[3] ?? ''
  }

  getQuery(): string | null {
    const raw = this.getRawQuery()
    return raw === null ? null : decoded(raw)
  }

  getRawQuery(): string | null {
    return this.#parts[4] ?? null
  }

  getFragment(): string | null {
    const raw = this.#parts[5]
    return raw === undefined ? null : decoded(raw)
  }

  override toString(): string {
    return this.#text
  }
}

/** java.net.URLEncoder: the form encoding, with `+` for a space. */
export const URLEncoder = {
  encode(source: unknown, charset?: unknown): string {
    const encoded: string[] = []
    for (const byte of encodeText(javaText(source), charset)) {
      const letter = String.fromCharCode(byte)
      if (/[A-Za-z0-9.*_-]/.test(letter)) encoded.push(letter)
      else encoded.push(letter === ' ' ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    }
    return encoded.join('')
  },
}

/** java.net.URLDecoder. */
export const URLDecoder = {
  decode(source: unknown, charset?: unknown): string {
    charsetName(charset)
    const text = javaText(source).replaceAll('+', ' ')
    if (/%(?![0-9a-f]{2})/i.test(text)) throw new IllegalArgumentException('Illegal hex characters in escape pattern')
    return decoded(text, charset)
  },
}

/** A part of a form, as servers read it: what isn't an escape stays as it is. */
export const formText = (text: string): string => decoded(text.replaceAll('+', ' '))

function decoded(text: string, charset?: unknown): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const bytes = run
      .slice(1)
      .split('%')
      .map((hex) => Number.parseInt(hex, 16))
    return decodeText(bytesOf(bytes), charset)
  })
}
