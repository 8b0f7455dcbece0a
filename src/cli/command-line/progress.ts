import process from 'node:process'
import { terminalLine } from './command-line.ts'

interface ProgressStream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

/** A command that ends within this time shows nothing. */
const silentMillis = 500
const everyMillis = 200
const clearLine = '\r\u001b[K'

/**
 * One line on the terminal's stderr that a long command rewrites, and removes at the end. In a pipe or a file, and on a
 * terminal that can't rewrite lines, nothing is written.
 */
export class Progress {
  readonly #stream: ProgressStream | undefined
  readonly #now: () => number
  #next: number
  #isShown = false

  constructor(stream: ProgressStream = process.stderr, now: () => number = () => performance.now()) {
    this.#stream = stream.isTTY === true && process.env['TERM'] !== 'dumb' ? stream : undefined
    this.#now = now
    this.#next = now() + silentMillis
  }

  update(text: string): void {
    if (this.#stream === undefined || this.#now() < this.#next) return
    this.#next = this.#now() + everyMillis
    this.#isShown = true
    // A line as wide as the terminal would wrap, and its first part would stay.
    this.#stream.write(`${clearLine}${terminalLine(text, (this.#stream.columns ?? 80) - 1)}`)
  }

  /** Shows the text while the work takes long. */
  async during<T>(text: string, work: Promise<T>): Promise<T> {
    const timer = setInterval(() => this.update(text), everyMillis)
    try {
      return await work
    } finally {
      clearInterval(timer)
      this.end()
    }
  }

  /** Call it before anything else is printed. */
  end(): void {
    if (this.#isShown) this.#stream?.write(clearLine)
    this.#isShown = false
  }
}
