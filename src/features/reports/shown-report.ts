import { GatewayError } from '#kernel/errors.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'

/** As large as a report that a page shows can be. */
const maxShownBytes = 32 * 1024 * 1024
/** A longer reference is not one of this gateway. */
export const maxReference = 4_000

/**
 * The `reportid` of a report that a page sends back. Nothing else of the body is read, checked or stored: it is
 * searched piece by piece as it arrives. Throws UNSUPPORTED_MEDIA_TYPE, INVALID_JSON for a body that ends too early,
 * and BAD_REQUEST if it has no reference.
 */
export async function readShownReport(request: GatewayRequest): Promise<string> {
  const type = header(request, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') {
    throw new GatewayError('UNSUPPORTED_MEDIA_TYPE', `content type "${type ?? ''}"`, {
      publicText: 'The body must be application/json.',
    })
  }
  const search = new ReferenceSearch()
  await request.readBody((piece) => search.take(piece), maxShownBytes)
  if (!search.isComplete) {
    const publicText = 'The request body is not valid JSON: it ends too early.'
    throw new GatewayError('INVALID_JSON', 'a report that ends too early', { publicText })
  }
  if (search.found !== undefined) return search.found
  const publicText = 'The body must be a report as GET reports/{name} returns it, with its reportid.'
  throw new GatewayError('BAD_REQUEST', 'a report without its reportid', { publicText })
}

/** Of `reportid` with each letter as an escape. */
const longestName = 'reportid'.length * '\\u0072'.length

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openList = 0x5b
const closeList = 0x5d
const openObject = 0x7b
const closeObject = 0x7d

/** Finds the text of the member `reportid` of the outermost object. */
class ReferenceSearch {
  found: string | undefined
  #depth = 0
  #hasBegun = false
  #isObject = false
  #inText = false
  #isEscaped = false
  /** In the outermost object, whether a name comes next or its value. */
  #wants: 'name' | 'value' = 'name'
  #isReference = false
  /** The bytes of a text that matters; a longer one does not. */
  readonly #bytes = Buffer.alloc(maxReference)
  #length = 0
  #most = 0

  get isComplete(): boolean {
    return this.#depth === 0 && !this.#inText
  }

  take(piece: Buffer): void {
    for (let i = 0; i < piece.length; i++) {
      const byte = piece[i] ?? 0
      if (this.#inText) this.#takeText(byte)
      else this.#takeStructure(byte)
    }
  }

  #takeText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === backslash) this.#isEscaped = true
    else if (byte === quote) {
      this.#inText = false
      this.#endText()
      return
    }
    if (this.#length < this.#most) this.#bytes[this.#length] = byte
    if (this.#length <= this.#most) this.#length++
  }

  #endText(): void {
    if (this.#depth !== 1 || !this.#isObject) return
    if (this.#wants === 'name') this.#isReference = this.#mayBeName && this.#text === 'reportid'
    else if (this.#isReference) this.found = this.#text
  }

  /** Most names are shorter or longer; to build their texts would take most of the time. */
  get #mayBeName(): boolean {
    const plain = 'reportid'.length
    if (this.#length <= plain || this.#length > longestName) return this.#length === plain
    return this.#bytes.subarray(0, this.#length).includes(backslash)
  }

  get #text(): string | undefined {
    return this.#length > this.#most ? undefined : textOf(this.#bytes.toString('utf8', 0, this.#length))
  }

  #takeStructure(byte: number): void {
    switch (byte) {
      case quote:
        this.#inText = true
        this.#length = 0
        this.#most = 0
        if (this.#depth !== 1) break
        if (this.#wants === 'name') this.#most = longestName
        else if (this.#isReference) this.#most = maxReference
        break
      case openObject:
      case openList:
        if (!this.#hasBegun) this.#isObject = byte === openObject
        this.#hasBegun = true
        this.#depth++
        break
      case closeObject:
      case closeList:
        this.#depth--
        break
      case colon:
        if (this.#depth === 1) this.#wants = 'value'
        break
      case comma:
        if (this.#depth !== 1) break
        this.#wants = 'name'
        this.#isReference = false
        break
    }
  }
}

/** Undefined for a text with broken escapes. */
function textOf(written: string): string | undefined {
  try {
    return JSON.parse(`"${written}"`)
  } catch {
    return undefined
  }
}
