import { askBridge } from './bridge.ts'
import { IllegalArgumentException } from './java-exception.ts'
import { TextValue } from './java-key.ts'
import { javaText } from './java-value.ts'

/** java.util.UUID. */
export class UUID extends TextValue {
  readonly #text: string

  constructor(text: string) {
    super()
    this.#text = text
  }

  static randomUUID(): UUID {
    return new UUID(javaText(askBridge('random', null)))
  }

  static fromString(source: unknown): UUID {
    const text = javaText(source).toLowerCase()
    if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) {
      throw new IllegalArgumentException(`Invalid UUID string: ${javaText(source)}`)
    }
    return new UUID(text)
  }

  override toString(): string {
    return this.#text
  }
}
