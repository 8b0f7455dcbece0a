import { Readable } from 'node:stream'
import type { HandOver } from '#sdk/notifier/notifier.ts'

/**
 * Stands between a mail and the end of its data, which is what makes a server take it: the end is given out only after
 * the hand-over was noted. A server that never sees the end drops what it has.
 */
export class DataGate {
  readonly #handOver: HandOver
  #passed = false
  #closed = false

  constructor(handOver: HandOver) {
    this.#handOver = handOver
  }

  /** The end was given out, or is about to be. */
  get passed(): boolean {
    return this.#passed
  }

  /** Nothing passes from now on. False when it is too late for that. */
  close(): boolean {
    this.#closed = true
    return !this.#passed
  }

  /** The content, of which the end comes when the hand-over was noted. Nothing is read before somebody reads. */
  guard(content: Readable): Readable {
    return Readable.from(this.#guarded(content), { objectMode: false })
  }

  async *#guarded(content: Readable): AsyncGenerator<unknown> {
    yield* content
    this.#check()
    await this.#handOver()
    this.#check()
    this.#passed = true
  }

  #check(): void {
    if (this.#closed) throw new Error('it took too long to hand the mail over')
  }
}
