/** Counts the statements and commits in the bytes that a client of PostgreSQL sends over one connection. */
export class QueryCount {
  statements = 0
  commits = 0
  #rest: Buffer = Buffer.alloc(0)
  #started = false
  readonly #texts = new Map<string, string>()
  /** The text of each portal that was bound. */
  readonly #portals = new Map<string, string>()

  add(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    for (;;) {
      // The first message has no type.
      const head = this.#started ? 1 : 0
      if (this.#rest.length < head + 4) return
      const end = head + this.#rest.readInt32BE(head)
      if (this.#rest.length < end) return
      if (this.#started) this.#message(String.fromCharCode(this.#rest[0] ?? 0), this.#rest.subarray(5, end))
      this.#started = true
      this.#rest = this.#rest.subarray(end)
    }
  }

  #message(type: string, body: Buffer): void {
    const [first = '', second = ''] = body.toString('latin1').split('\0', 2)
    if (type === 'Q') this.#execute(first)
    else if (type === 'P') this.#texts.set(first, second)
    else if (type === 'B') this.#portals.set(first, this.#texts.get(second) ?? '')
    else if (type === 'E') this.#execute(this.#portals.get(first) ?? '')
  }

  #execute(text: string): void {
    this.statements++
    if (/^\s*commit\b/i.test(text)) this.commits++
  }
}
