import { NoSuchElementException } from './java-exception.ts'
import { javaFunction, javaText, javaValue } from './java-value.ts'

/** java.util.Optional. */
export class Optional {
  readonly #value: unknown

  constructor(value: unknown) {
    this.#value = javaValue(value)
  }

  isPresent(): boolean {
    return this.#value !== null
  }

  isEmpty(): boolean {
    return this.#value === null
  }

  get(): unknown {
    if (this.#value === null) throw new NoSuchElementException('No value present')
    return this.#value
  }

  orElse(fallback: unknown): unknown {
    return this.#value ?? javaValue(fallback)
  }

  ifPresent(action: unknown): void {
    if (this.#value !== null) javaFunction(action)(this.#value)
  }

  toString(): string {
    return this.#value === null ? 'Optional.empty' : `Optional[${javaText(this.#value)}]`
  }
}
