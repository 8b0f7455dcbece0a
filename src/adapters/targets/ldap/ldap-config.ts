import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { LdapNames } from './ldap-names.ts'
import type { LdapConnectionConfig } from './ldap-parameters.ts'

interface PatternPart {
  readonly type: string
  readonly value: Template
}

/**
 * A distinguished name with placeholders, such as `uid=${uid},ou=people,dc=example,dc=com`. Its structure is fixed when
 * it is parsed: a value can only ever be a value.
 */
export class DnPattern {
  readonly #rdns: readonly (readonly PatternPart[])[]

  private constructor(rdns: readonly (readonly PatternPart[])[]) {
    this.#rdns = rdns
  }

  /** Throws an Error that describes the problem. */
  static parse(text: string): DnPattern {
    const rdns = Dn.parse(text).rdns.map((rdn) =>
      rdn.map(({ type, value }) => ({ type, value: parseTemplate(value, { keys: false, attributes: true }) })),
    )
    if (!rdns[0]?.some(({ value }) => value.attributes.length > 0)) {
      throw new Error('the first part must have a place for a value, such as uid=${uid}')
    }
    return new DnPattern(rdns)
  }

  /** The attribute types of the name's own part. */
  get ownTypes(): readonly string[] {
    return this.#rdns[0]?.map(({ type }) => type) ?? []
  }

  /** Whether this placeholder is in the entry's own part only, so that a change does not move the entry. */
  isOwn(name: string): boolean {
    return this.#rdns.slice(1).every((rdn) => rdn.every(({ value }) => !value.attributes.includes(name)))
  }

  /** Throws BAD_REQUEST, naming the placeholder, if it has no value. */
  render(valueAt: (name: string) => string | undefined): Dn {
    const attribute = (name: string): string => {
      const value = valueAt(name)
      if (value === undefined || value === '') {
        throw new GatewayError('BAD_REQUEST', `the entry's name needs a value of "${name}"`, {
          attribute: name,
          publicText: (shown = `"${name}"`) => `A value of ${shown} is required.`,
        })
      }
      return value
    }
    return new Dn(this.#rdns.map((rdn) => rdn.map(({ type, value }) => ({ type, value: value.render({ attribute }) }))))
  }
}

/** The value that the name's own part has for the type, for names below the base. */
export function ownValue(dn: Dn, base: Dn, type: string): string | undefined {
  if (!dn.isWithin(base)) return undefined
  return dn.rdns[0]?.find((part) => part.type.toLowerCase() === type.toLowerCase())?.value
}

/** Undefined for a text that isn't a distinguished name. */
export function tryDn(text: string): Dn | undefined {
  try {
    return Dn.parse(text)
  } catch {
    return undefined
  }
}

/** Where users and groups are in a server's tree, and which attributes they have. */
export interface LdapLayout {
  readonly users: {
    readonly base: Dn
    readonly objectClasses: readonly string[]
    /** Further classes, used if the server knows them. */
    readonly optionalClasses: readonly string[]
    /** The attribute with the login. */
    readonly login: string
    readonly dn: DnPattern
    /** Values for attributes that the user lacks, by lower-case name. */
    readonly defaults: ReadonlyMap<string, Template>
  }
  readonly groups: {
    readonly base: Dn
    readonly objectClasses: readonly string[]
    readonly optionalClasses: readonly string[]
    readonly name: string
    readonly dn: DnPattern
    readonly member: string
    /** Members are logins, not distinguished names. */
    readonly membersAreLogins: boolean
    /** The user's attribute in which the server lists its groups; undefined if groups are searched. */
    readonly memberOf: string | undefined
    /** The member of a group that would be empty; undefined if groups may be empty. */
    readonly placeholder: Dn | undefined
  }
  /** The server's own immutable identifier; undefined if there are only the login and the name. */
  readonly id: string | undefined
  /** The attribute that changes with every change; undefined if the server has no versions. */
  readonly version: string | undefined
  /** Attributes that filters compare times by. */
  readonly times: { readonly created: string; readonly modified: string }
  /** Attributes, in lower case, whose values are base64 here and bytes on the server. */
  readonly binary: ReadonlySet<string>
  readonly maxEntries: number
  /** How long the order of a long answer is remembered; 0 for never. */
  readonly listMemoryMillis: number
  readonly passwords: 'modify' | 'unicodePwd'
}

export interface LdapTargetConfig {
  readonly connection: LdapConnectionConfig
  readonly layout: LdapLayout
  readonly names: LdapNames
}
