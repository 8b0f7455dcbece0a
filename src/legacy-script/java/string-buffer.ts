import { IndexOutOfBoundsException } from './java-exception.ts'
import { javaText, javaValue } from './java-value.ts'

/** java.lang.StringBuffer and java.lang.StringBuilder. */
export class StringBuffer {
  #text: string

  constructor(source?: unknown) {
    const plain = javaValue(source ?? '')
    this.#text = typeof plain === 'number' ? '' : javaText(plain)
  }

  append(value: unknown): this {
    this.#text += javaText(value)
    return this
  }

  insert(position: unknown, value: unknown): this {
    const at = this.#position(position, this.#text.length + 1)
    this.#text = this.#text.slice(0, at) + javaText(value) + this.#text.slice(at)
    return this
  }

  deleteCharAt(position: unknown): this {
    const at = this.#position(position)
    this.#text = this.#text.slice(0, at) + this.#text.slice(at + 1)
    return this
  }

  setLength(length: unknown): void {
    this.#text = this.#text.slice(0, Number(length)).padEnd(Number(length), '\u0000')
  }

  charAt(position: unknown): string {
    return this.#text.charAt(this.#position(position))
  }

  indexOf(part: unknown): number {
    return this.#text.indexOf(javaText(part))
  }

  length(): number {
    return this.#text.length
  }

  reverse(): this {
    this.#text = [...this.#text].reverse().join('')
    return this
  }

  toString(): string {
    return this.#text
  }

  #position(value: unknown, end = this.#text.length): number {
    const at = javaValue(value)
    if (typeof at === 'number' && Number.isInteger(at) && at >= 0 && at < end) return at
    throw new IndexOutOfBoundsException(`index ${javaText(value)},length ${this.#text.length}`)
  }
}
