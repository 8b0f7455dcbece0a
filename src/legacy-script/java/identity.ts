import { ArrayList } from './collections.ts'
import { HashMap } from './hash-map.ts'
import { itemsOf, javaText, javaValue, optionalText } from './java-value.ts'

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

/** com.tremolosecurity.provisioning.core.Group. */
export class Group {
  #name: string | null
  #description: string | null
  #id: string | null
  readonly #members = new ArrayList()
  readonly #attributes = new HashMap()

  constructor(name?: unknown, description?: unknown, id?: unknown) {
    this.#name = optionalText(name)
    this.#description = optionalText(description)
    this.#id = optionalText(id)
  }

  getName(): string | null {
    return this.#name
  }

  setName(name: unknown): void {
    this.#name = optionalText(name)
  }

  getDescription(): string | null {
    return this.#description
  }

  setDescription(description: unknown): void {
    this.#description = optionalText(description)
  }

  getId(): string | null {
    return this.#id
  }

  setId(id: unknown): void {
    this.#id = optionalText(id)
  }

  getMembers(): ArrayList {
    return this.#members
  }

  /** Of `Attribute` by name. */
  getAttributes(): HashMap {
    return this.#attributes
  }
}

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

/** com.tremolosecurity.proxy.auth.AuthInfo: the user in question. */
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
