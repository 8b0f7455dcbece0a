import { HashMap } from './hash-map.ts'
import { Attribute } from './identity.ts'
import { optionalText } from './java-value.ts'

/** com.tremolosecurity.scalejs.register.data.NewUserRequest: a registration as the user sent it, without its password. */
export class NewUserRequest {
  readonly #attributes = new HashMap()
  readonly #reason: string | null

  constructor(attributes: Readonly<Record<string, unknown>>, reason: unknown) {
    for (const [name, value] of Object.entries(attributes)) this.#attributes.put(name, value)
    this.#reason = optionalText(reason)
  }

  /** Texts by name. */
  getAttributes(): HashMap {
    return this.#attributes
  }

  getReason(): string | null {
    return this.#reason
  }
}

/** com.tremolosecurity.scalejs.register.cfg.ScaleJSRegisterConfig. */
export class ScaleJSRegisterConfig {
  readonly #custom = new HashMap()

  constructor(custom: Readonly<Record<string, unknown>>) {
    for (const [name, values] of Object.entries(custom)) this.#custom.put(name, new Attribute(name, values))
  }

  /** Of `Attribute` by name. */
  getCustomSubmissionConfig(): HashMap {
    return this.#custom
  }
}
