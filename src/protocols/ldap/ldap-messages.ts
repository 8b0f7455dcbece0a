import type { Socket } from 'node:net'

/** The most that unfinished answers of a connection may have in bytes: more than a group of 500,000 members. */
export const maxAnswerBytes = 64 * 1024 * 1024

/** What an entry takes in memory beside its bytes. */
const objectBytes = 256

/** The most values of an attribute, which take much more memory than their bytes. */
const maxElements = 1_000_000

/** Its words go to the log. */
const maxResultBytes = 64 * 1024

const sequence = 0x30
const set = 0x31
const integer = 0x02
const text = 0x04
const enumerated = 0x0a
const boolean = 0x01
const entry = 0x64
const searchDone = 0x65
const reference = 0x73
const controls = 0xa0
/** Those with a result code: bind, search, modify, add, delete, rename, compare and extended. */
const results = new Set([0x61, 0x65, 0x67, 0x69, 0x6b, 0x6d, 0x6f, 0x78])

interface Element {
  readonly tag: number
  readonly from: number
  readonly to: number
}

/**
 * Splits what a server sends into messages (RFC 4511), and throws at the first bytes that are none. ldapts needs that:
 * it reads for ever where a list is shorter than its length, and runs out of stack where many messages arrive together.
 */
export class LdapMessages {
  readonly #maxBytes: number
  /** What has arrived of the next message. */
  #parts: Buffer[] = []
  #size = 0
  /** The bytes that are needed to read on. */
  #needed = 2
  /** The size of each unfinished answer, by its message's number. */
  readonly #unfinished = new Map<number, number>()
  #unfinishedSize = 0

  constructor(maxBytes = maxAnswerBytes) {
    this.#maxBytes = maxBytes
  }

  /** The messages that are complete now. */
  push(chunk: Buffer): Buffer[] {
    this.#parts.push(chunk)
    this.#size += chunk.length
    if (this.#size < this.#needed) return []
    let rest = Buffer.concat(this.#parts)
    const messages: Buffer[] = []
    for (;;) {
      this.#needed = sizeOf(rest)
      if (this.#needed + this.#unfinishedSize > this.#maxBytes) throw new Error('the answer is too large')
      if (rest.length < this.#needed) break
      const message = rest.subarray(0, this.#needed)
      const empty = this.#count(message)
      if (empty !== undefined) messages.push(empty)
      messages.push(message)
      rest = rest.subarray(this.#needed)
    }
    this.#parts = [rest]
    this.#size = rest.length
    return messages
  }

  /** Nothing of another message has arrived. */
  get isEmpty(): boolean {
    return this.#size === 0
  }

  /**
   * Returns what must come before the message: a reference to nothing, where a search found nothing. ldapts takes an empty
   * page for the last one, even if it has a cookie (RFC 2696), and the rest would be missing without an error.
   */
  #count(message: Buffer): Buffer | undefined {
    const { id, operation } = check(message)
    const size = this.#unfinished.get(id) ?? 0
    if (operation === entry || operation === reference) {
      const more = message.length + objectBytes
      this.#unfinished.set(id, size + more)
      this.#unfinishedSize += more
    } else {
      this.#unfinished.delete(id)
      this.#unfinishedSize -= size
    }
    if (operation !== searchDone || size > 0) return undefined
    const number = Buffer.alloc(4)
    number.writeInt32BE(id)
    return Buffer.from([sequence, 8, integer, 4, ...number, reference, 0])
  }
}

/** The socket emits whole messages only, and is destroyed at anything else. */
export function emitMessages(socket: Socket, messages: LdapMessages): void {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    const [chunk] = args
    if (event !== 'data' || !Buffer.isBuffer(chunk)) return emit(event, ...args)
    try {
      for (const message of messages.push(chunk)) emit('data', message)
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)))
    }
    return true
  }
}

/** The size of the message that begins here, or of its header, if that has not arrived. */
function sizeOf(bytes: Buffer): number {
  if (bytes.length > 0 && bytes[0] !== sequence) throw malformed()
  if (bytes.length < 2) return 2
  const long = bytes[1] ?? 0
  if (long < 0x80) return 2 + long
  const count = long - 0x80
  if (count === 0 || count > 4) throw malformed()
  return bytes.length < 2 + count ? 2 + count : 2 + count + bytes.readUIntBE(2, count)
}

/** Checks the shape of every list, so that no reader passes its end. */
function check(message: Buffer): { id: number; operation: number } {
  const [whole] = elements(message, 0, message.length)
  const [number, operation, ...more] = whole === undefined ? [] : elements(message, whole.from, whole.to)
  if (number?.tag !== integer || operation === undefined) throw malformed()
  const idSize = number.to - number.from
  if (idSize === 0 || idSize > 4 || more.length > 1) throw malformed()
  const parts = (of: Element): Element[] => elements(message, of.from, of.to)
  if (operation.tag === entry) {
    const [dn, attributes] = exactly(parts(operation), [text, sequence])
    if (dn === undefined || attributes === undefined) throw malformed()
    for (const attribute of parts(attributes)) {
      if (attribute.tag !== sequence) throw malformed()
      const [, values] = exactly(parts(attribute), [text, set])
      if (values !== undefined) all(parts(values), text)
    }
  } else if (operation.tag === reference) {
    all(parts(operation), text)
  } else if (results.has(operation.tag)) {
    if (message.length > maxResultBytes) throw malformed()
    exactly(parts(operation).slice(0, 3), [enumerated, text, text])
  }
  for (const list of more) {
    if (list.tag !== controls) throw malformed()
    for (const control of parts(list)) {
      if (control.tag !== sequence) throw malformed()
      const [type, ...rest] = parts(control)
      const values = rest[0]?.tag === boolean ? rest.slice(1) : rest
      if (type?.tag !== text || values.length > 1) throw malformed()
      all(values, text)
    }
  }
  return { id: message.readIntBE(number.from, idSize), operation: operation.tag }
}

function elements(bytes: Buffer, start: number, end: number): Element[] {
  const found: Element[] = []
  for (let at = start; at < end; ) {
    const tag = bytes[at] ?? 0
    const first = at + 1 < end ? (bytes[at + 1] ?? 0) : 0x80
    const count = first < 0x80 ? 0 : first - 0x80
    const from = at + 2 + count
    if (first === 0x80 || count > 4 || from > end) throw malformed()
    const to = from + (count === 0 ? first : bytes.readUIntBE(at + 2, count))
    if (to > end || found.length === maxElements) throw malformed()
    found.push({ tag, from, to })
    at = to
  }
  return found
}

function exactly(found: Element[], tags: readonly number[]): Element[] {
  if (found.length !== tags.length || found.some(({ tag }, i) => tag !== tags[i])) throw malformed()
  return found
}

function all(found: readonly Element[], tag: number): void {
  if (found.some((element) => element.tag !== tag)) throw malformed()
}

const malformed = (): Error => new Error('the server sent what is not a message of LDAP')
