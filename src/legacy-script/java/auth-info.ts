import type { HashMap } from './hash-map.ts'
import { javaText, optionalText } from './java-value.ts'

/** com.tremolosecurity.proxy.auth.AuthInfo: who is asked about. */
export class AuthInfo {
  readonly #userDN: string
  readonly #level: number
  readonly #chain: string | null
  readonly #attribs: HashMap

  constructor(userDN: unknown, chain: unknown, level: unknown, attribs: HashMap) {
    this.#userDN = javaText(userDN)
    this.#chain = optionalText(chain)
    this.#level = Number(level)
    this.#attribs = attribs
  }

  getUserDN(): string {
    return this.#userDN
  }

  getAuthLevel(): number {
    return this.#level
  }

  getAuthChain(): string | null {
    return this.#chain
  }

  /** Of `Attribute` by name. */
  getAttribs(): HashMap {
    return this.#attribs
  }
}
