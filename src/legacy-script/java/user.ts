import { ArrayList } from './array-list.ts'
import { HashMap } from './hash-map.ts'
import { optionalText } from './java-value.ts'

/** com.tremolosecurity.provisioning.core.User. */
export class User {
  #userID: string | null
  #password: string | null = null
  #requestReason = ''
  readonly #groups = new ArrayList()
  readonly #attribs = new HashMap()

  constructor(userID?: unknown) {
    this.#userID = optionalText(userID)
  }

  getUserID(): string | null {
    return this.#userID
  }

  setUserID(userID: unknown): void {
    this.#userID = optionalText(userID)
  }

  /** Of `Attribute` by name. */
  getAttribs(): HashMap {
    return this.#attribs
  }

  getGroups(): ArrayList {
    return this.#groups
  }

  getPassword(): string | null {
    return this.#password
  }

  setPassword(password: unknown): void {
    this.#password = optionalText(password)
  }

  getRequestReason(): string {
    return this.#requestReason
  }

  setRequestReason(reason: unknown): void {
    this.#requestReason = optionalText(reason) ?? ''
  }

  toString(): string {
    return `user id : '${this.#userID}' attributes : ${this.#attribs.keySet()} groups : ${this.#groups}`
  }
}
