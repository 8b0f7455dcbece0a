import type { AttributeSource } from '#identity/filter/attribute-source.ts'
import { isSecretName } from '#kernel/text/redaction.ts'

/**
 * Multi-valued attributes. Names are compared without regard to case, as in LDAP and SCIM, and keep the spelling
 * they were first set with. An attribute without values is absent. Values keep their order and are not made unique.
 * Values from a token are marked as claims: to a directory `idp` and `IDP` are the same, to an issuer they are not.
 */
export class Attributes implements AttributeSource {
  /** The given entries. They are indexed on demand, because most attributes are only listed. */
  #adopted: readonly (readonly [string, readonly string[]])[] | undefined
  #index: Map<string, { name: string; values: readonly string[] }> | undefined
  /** Folded names of the attributes that are claims. */
  #claims: Set<string> | undefined

  /** From pairs or a plain object. Values of a repeated name are joined. */
  static from(
    source: Iterable<readonly [string, readonly string[]]> | Readonly<Record<string, readonly string[]>>,
  ): Attributes {
    const attributes = new Attributes()
    const pairs = Symbol.iterator in source ? source : Object.entries(source)
    for (const [name, values] of pairs as Iterable<readonly [string, readonly string[]]>) attributes.add(name, values)
    return attributes
  }

  /** Takes over the lists without copying. Names must be unique and lists not empty. */
  static adopt(pairs: readonly (readonly [string, readonly string[]])[]): Attributes {
    const attributes = new Attributes()
    attributes.#adopted = pairs
    return attributes
  }

  get #entries(): Map<string, { name: string; values: readonly string[] }> {
    if (this.#index === undefined) {
      this.#index = new Map()
      for (const [name, values] of this.#adopted ?? []) this.#index.set(name.toLowerCase(), { name, values })
      this.#adopted = undefined
    }
    return this.#index
  }

  values(name: string): readonly string[] {
    return this.#entries.get(name.toLowerCase())?.values ?? []
  }

  first(name: string): string | undefined {
    return this.#entries.get(name.toLowerCase())?.values[0]
  }

  has(name: string): boolean {
    return this.#entries.has(name.toLowerCase())
  }

  isClaim(name: string): boolean {
    return this.#claims?.has(name.toLowerCase()) ?? false
  }

  /** Replaces all values with ones that aren't claims. An empty list removes the attribute. */
  set(name: string, values: readonly string[]): void {
    const key = name.toLowerCase()
    this.#claims?.delete(key)
    if (values.length === 0) this.#entries.delete(key)
    else this.#entries.set(key, { name: this.#entries.get(key)?.name ?? name, values: [...values] })
  }

  /** Replaces all values with claims. */
  setClaim(name: string, values: readonly string[]): void {
    this.set(name, values)
    if (values.length === 0) return
    this.#claims ??= new Set()
    this.#claims.add(name.toLowerCase())
  }

  add(name: string, values: readonly string[]): void {
    if (values.length === 0) return
    const all = [...this.values(name), ...values]
    if (this.isClaim(name)) this.setClaim(name, all)
    else this.set(name, all)
  }

  delete(name: string): void {
    this.#entries.delete(name.toLowerCase())
    this.#claims?.delete(name.toLowerCase())
  }

  names(): string[] {
    return Array.from(this.#entries.values(), (entry) => entry.name)
  }

  get size(): number {
    return this.#adopted?.length ?? this.#entries.size
  }

  [Symbol.iterator](): Iterator<readonly [string, readonly string[]]> {
    return (this.#adopted ?? Array.from(this.#entries.values(), ({ name, values }) => [name, values] as const)).values()
  }

  clone(): Attributes {
    const copy = Attributes.from(this)
    if (this.#claims !== undefined) copy.#claims = new Set(this.#claims)
    return copy
  }

  /** A copy in which all values are claims. */
  claimed(): Attributes {
    const copy = Attributes.from(this)
    copy.#claims = new Set(copy.#entries.keys())
    return copy
  }

  /** A copy with only these attributes. */
  pick(names: Iterable<string>): Attributes {
    const picked = new Attributes()
    for (const wanted of names) {
      const key = wanted.toLowerCase()
      const entry = this.#entries.get(key)
      if (entry === undefined) continue
      if (this.#claims?.has(key)) picked.setClaim(entry.name, entry.values)
      else picked.set(entry.name, entry.values)
    }
    return picked
  }

  /** A plain object without a prototype, so that no attribute name can reach JavaScript's own properties. */
  toObject(): Record<string, string[]> {
    const object: Record<string, string[]> = Object.create(null)
    for (const entry of this.#entries.values()) object[entry.name] = [...entry.values]
    return object
  }
}

const keyName = /(?:key|otp|pin)$/i

/** True for attributes whose values stay out of the audit and the log: passwords, tokens, keys and one-time codes. */
export const isSecretAttribute = (name: string): boolean => isSecretName(name) || keyName.test(name)

/** Of `userAccountControl`, as Active Directory has it. */
const accountDisabled = 2
/** Set by an administrator. Any other time is a lockout after wrong passwords, which must not end sessions. */
const lockedForGood = '000001010000z'

const signs: readonly (readonly [attribute: string, isOff: (value: string) => boolean])[] = [
  ['active', (value) => value.toLowerCase() === 'false'],
  ['nsAccountLock', (value) => value.toLowerCase() === 'true'],
  ['loginDisabled', (value) => value.toLowerCase() === 'true'],
  ['pwdAccountLockedTime', (value) => value.toLowerCase() === lockedForGood],
  ['userAccountControl', (value) => /^\d{1,10}$/.test(value) && (Number(value) & accountDisabled) !== 0],
]

/** The attributes that `isDeactivated` reads. */
export const deactivationAttributes: readonly string[] = signs.map(([attribute]) => attribute)

/**
 * Whether an entry says that its user is deactivated: SCIM's `active`, or the equivalent of a directory server.
 * Other entries are active.
 */
export const isDeactivated = (attributes: AttributeSource): boolean =>
  signs.some(([attribute, isOff]) => attributes.values(attribute).some((value) => isOff(value.trim())))
