import { IllegalStateException, NoSuchElementException } from './java-exception.ts'

/** java.util.Iterator; `for…of` goes over what is left. */
export class JavaIterator {
  readonly #items: readonly unknown[]
  readonly #remove: (item: unknown, position: number) => void
  #next = 0
  #removed = 0
  #canRemove = false

  constructor(items: readonly unknown[], remove: (item: unknown, position: number) => void) {
    this.#items = items
    this.#remove = remove
  }

  hasNext(): boolean {
    return this.#next < this.#items.length
  }

  next(): unknown {
    if (!this.hasNext()) throw new NoSuchElementException()
    this.#canRemove = true
    return this.#items[this.#next++]
  }

  remove(): void {
    if (!this.#canRemove) throw new IllegalStateException()
    this.#canRemove = false
    const position = this.#next - 1 - this.#removed++
    this.#remove(this.#items[this.#next - 1], position)
  }

  *[Symbol.iterator](): Generator<unknown> {
    while (this.hasNext()) yield this.next()
  }
}
