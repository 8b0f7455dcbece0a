import { escapeValue, isAttributeType, type Rdn, readDn } from '#identity/dn-syntax.ts'

export type { Rdn }

/** A distinguished name (RFC 4514). Values are plain text; escaping happens when it is written out. */
export class Dn {
  /** Most specific first; a multi-valued RDN has several parts. */
  readonly rdns: readonly (readonly Rdn[])[]
  #keys: readonly string[] | undefined
  #key: string | undefined

  constructor(rdns: readonly (readonly Rdn[])[]) {
    this.rdns = rdns
  }

  /** Throws DnSyntaxError. The empty text is the root, which everything is within. */
  static parse(text: string): Dn {
    return new Dn(readDn(text))
  }

  /** From single-valued RDNs, most specific first. Values are taken as they are, never parsed. */
  static of(...rdns: readonly (readonly [type: string, value: string])[]): Dn {
    return new Dn(rdns.map(([type, value]) => [checkedRdn(type, value)]))
  }

  /** The name one level below. The value is taken as it is, never parsed; throws RangeError for a type that is none. */
  child(type: string, value: string): Dn {
    return new Dn([[checkedRdn(type, value)], ...this.rdns])
  }

  /** The same name, whose most specific value came from a token and is only equal to what is spelled like it. */
  claimed(): Dn {
    const [leaf = [], ...above] = this.rdns
    return new Dn([leaf.map((part) => ({ ...part, isClaim: true as const })), ...above])
  }

  get isClaimed(): boolean {
    return this.rdns[0]?.some(({ isClaim }) => isClaim === true) ?? false
  }

  /** Undefined for the root. */
  get parent(): Dn | undefined {
    return this.rdns.length === 0 ? undefined : new Dn(this.rdns.slice(1))
  }

  /**
   * The same for equal names, whatever their letter case, order within an RDN and width of white space. Unambiguous,
   * so it serves as a map key or a database key. Names that differ in a claim's letter case have the same, and are not
   * equal.
   */
  get key(): string {
    this.#key ??= this.#rdnKeys().join(',')
    return this.#key
  }

  equals(other: Dn): boolean {
    return this.rdns.length === other.rdns.length && this.isWithin(other)
  }

  /** True for the ancestor itself and all that is below it. Whole RDNs are compared, so no text can look like a suffix. */
  isWithin(ancestor: Dn): boolean {
    const own = this.#rdnKeys()
    const theirs = ancestor.#rdnKeys()
    const depth = own.length - theirs.length
    return (
      depth >= 0 &&
      theirs.every((key, i) => own[depth + i] === key && sameClaims(this.rdns[depth + i], ancestor.rdns[i]))
    )
  }

  /** RFC 4514 text that parses to the same name. */
  toString(): string {
    return this.rdns.map((rdn) => rdn.map(printPart).join('+')).join(',')
  }

  #rdnKeys(): readonly string[] {
    this.#keys ??= this.rdns.map((rdn) => rdn.map(normalizePart).map(printPart).sort().join('+'))
    return this.#keys
  }
}

/** Of two RDNs that are alike but for letter case and white space. */
function sameClaims(one: readonly Rdn[] = [], other: readonly Rdn[] = []): boolean {
  if (![...one, ...other].some(({ isClaim }) => isClaim === true)) return true
  const exact = (rdn: readonly Rdn[]) => rdn.map(({ value }) => value).sort()
  return JSON.stringify(exact(one)) === JSON.stringify(exact(other))
}

const printPart = ({ type, value }: Rdn): string => `${type}=${escapeValue(value)}`

const normalizePart = ({ type, value }: Rdn): Rdn => ({
  type: type.toLowerCase(),
  value: value.toLowerCase().trim().replace(/\s+/g, ' '),
})

function checkedRdn(type: string, value: string): Rdn {
  if (!isAttributeType(type)) throw new RangeError(`"${type}" cannot be an attribute type of a distinguished name`)
  return { type, value }
}
