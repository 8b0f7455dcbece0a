/** Where lines go: `pino.destination`, or something like it. */
interface Destination {
  write(text: string): unknown
}

/** More than this is passed on at once. */
const batchLength = 16_000

/**
 * Gathers lines and passes them on in batches, in their order: the destination measures all that it holds each time it is
 * given something, which for single lines costs more than writing them.
 */
export class LineBuffer {
  readonly #destination: Destination
  #lines = ''

  constructor(destination: Destination) {
    this.#destination = destination
  }

  write(line: string): void {
    this.#lines += line
    if (this.#lines.length >= batchLength) this.passOn()
  }

  passOn(): void {
    if (this.#lines === '') return
    const lines = this.#lines
    this.#lines = ''
    this.#destination.write(lines)
  }
}
