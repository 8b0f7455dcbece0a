import type { Dn } from '#identity/dn.ts'
import type { Template } from '#kernel/template.ts'
import type { LdapConnectionConfig } from '#sdk/ldap-parameters.ts'
import type { DnPattern } from './dn-pattern.ts'
import type { LdapNames } from './ldap-names.ts'

/** Where users and groups are in a server's tree, and how they are told. */
export interface LdapLayout {
  readonly users: {
    readonly base: Dn
    readonly objectClasses: readonly string[]
    /** The attribute with the login. */
    readonly login: string
    readonly dn: DnPattern
    /** What an attribute is where the user has no value of it, by lower-case name. */
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
    /** Whom a group holds that may not be empty; undefined where it may. */
    readonly placeholder: Dn | undefined
  }
  /** The server's own unchanging identifier; undefined where the login and the name are all there is. */
  readonly id: string | undefined
  /** The attribute that every change changes; undefined where versions are not kept. */
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
