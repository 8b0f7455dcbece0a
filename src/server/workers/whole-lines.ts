const lineBreak = 0x0a

/** Passes on what a process writes in whole lines, so that lines of several processes do not mix. */
export class WholeLines {
  readonly #write: (lines: string) => void
  #rest: Buffer[] = []

  constructor(write: (lines: string) => void) {
    this.#write = write
  }

  add(chunk: Buffer): void {
    const end = chunk.lastIndexOf(lineBreak) + 1
    if (end > 0) {
      this.#write(Buffer.concat([...this.#rest, chunk.subarray(0, end)]).toString())
      this.#rest = []
    }
    if (end < chunk.length) this.#rest.push(chunk.subarray(end))
  }

  /** A process that was killed may have written a part of a line. */
  end(): void {
    if (this.#rest.length > 0) this.#write(`${Buffer.concat(this.#rest).toString()}\n`)
    this.#rest = []
  }
}
