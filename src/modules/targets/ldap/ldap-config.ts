import { Dn } from '#identity/dn.ts'
import { GatewayError } from '#kernel/errors.ts'
import { parseTemplate, type Template } from '#kernel/template.ts'
import type { LdapConnectionConfig } from '#modules/shared/ldap/ldap-parameters.ts'
import type { LdapNames } from './ldap-names.ts'

interface PatternPart {
  readonly type: string
  readonly value: Template
}

/**
 * A distinguished name with places for values, such as `uid=${uid},ou=people,dc=example,dc=com`. Its structure was fixed
 * when it was parsed: a value can only ever be a value.
 */
export class DnPattern {
  readonly #rdns: readonly (readonly PatternPart[])[]

  private constructor(rdns: readonly (readonly PatternPart[])[]) {
    this.#rdns = rdns
  }

  /** Throws an Error that says what is wrong. */
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

  /** Whether values of this place appear in the entry's own part only, so that it stays where it is when they change. */
  isOwn(name: string): boolean {
    return this.#rdns.slice(1).every((rdn) => rdn.every(({ value }) => !value.attributes.includes(name)))
  }

  /** Throws BAD_REQUEST, naming the place, where there is no value for it. */
  render(valueAt: (name: string) => string | undefined): Dn {
    const attribute = (name: string): string => {
      const value = valueAt(name)
      if (value === undefined || value === '') {
        throw new GatewayError('BAD_REQUEST', `the entry's name needs a value of "${name}"`, {
          publicText: `A value of "${name}" is required.`,
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
    /** The attribute with the login. */
    readonly login: string
    readonly dn: DnPattern
    /** Values for attributes that the user lacks, by lower-case name. */
    readonly defaults: ReadonlyMap<string, Template>
  }
  readonly groups: {
    readonly base: Dn
    readonly objectClasses: readonly string[]
    readonly name: string
    readonly dn: DnPattern
    readonly member: string
    /** Members are logins, not names. */
    readonly membersAreLogins: boolean
    /** The user's attribute that the server keeps its groups in; undefined where groups are searched. */
    readonly memberOf: string | undefined
    /** The member of a group that would be empty; undefined where groups may be empty. */
    readonly placeholder: Dn | undefined
  }
  /** The server's own unchanging identifier; undefined where the login and the name are all there is. */
  readonly id: string | undefined
  /** The attribute that changes with every change; undefined where the server keeps no versions. */
  readonly version: string | undefined
  /** Attributes that filters compare times by. */
  readonly times: { readonly created: string; readonly modified: string }
  /** Attributes, in lower case, whose values are base64 here and bytes there. */
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
