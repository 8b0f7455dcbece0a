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

/** A user from plain data. */
export function userFrom(fields: Readonly<Record<string, unknown>>): User {
  const user = new User(fields['userID'])
  for (const [name, values] of Object.entries(Object(fields['attributes']))) {
    user.getAttribs().put(name, new Attribute(name, values))
  }
  user.getGroups().addAll(fields['groups'] ?? [])
  if (fields['password'] !== undefined) user.setPassword(fields['password'])
  if (fields['requestReason'] !== undefined) user.setRequestReason(fields['requestReason'])
  return user
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

/** com.tremolosecurity.proxy.auth.AuthInfo: a user who signs in, or has signed in. */
export class AuthInfo {
  #userDN: string | null
  readonly #method: string | null
  readonly #chain: string | null
  readonly #level: number
  #attribs: HashMap

  constructor(userDN?: unknown, method?: unknown, chain?: unknown, level: unknown = 0, attribs?: unknown) {
    this.#userDN = optionalText(userDN)
    this.#method = optionalText(method)
    this.#chain = optionalText(chain)
    this.#level = Number(level)
    this.#attribs = attribs instanceof HashMap ? attribs : new HashMap()
  }

  getUserDN(): string | null {
    return this.#userDN
  }

  setUserDN(dn: unknown, _session?: unknown): void {
    this.#userDN = optionalText(dn)
  }

  getAuthMethod(): string | null {
    return this.#method
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

  setAttribs(attribs: unknown): void {
    this.#attribs = new HashMap(attribs)
  }
}
