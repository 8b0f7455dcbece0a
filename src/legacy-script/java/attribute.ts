import { ArrayList } from './array-list.ts'
import { itemsOf, javaText, javaValue } from './java-value.ts'

/** com.tremolosecurity.saml.Attribute. */
export class Attribute {
  readonly #name: string
  readonly #values = new ArrayList()

  /** With one value, with those of an array or a list, or with none. */
  constructor(name: unknown = '', value?: unknown) {
    this.#name = javaText(name)
    const plain = javaValue(value)
    if (plain === null) return
    if (typeof plain === 'object') this.#values.addAll(itemsOf(plain))
    else this.#values.add(javaText(plain))
  }

  getName(): string {
    return this.#name
  }

  getValues(): ArrayList {
    return this.#values
  }

  setValues(values: unknown): void {
    const items = itemsOf(values)
    this.#values.clear()
    this.#values.addAll(items)
  }

  toString(): string {
    return `${this.#name} : ${this.#values
      .toArray()
      .map((value) => `'${javaText(value)}' `)
      .join('')}`
  }
}
