import { ldapConnection, ldapConnectionParameters, ldapSystem } from '#adapters/targets/ldap/ldap-parameters.ts'
import { Dn } from '#identity/dn.ts'
import { nameAttributes } from '#identity/name-attributes.ts'
import { binaryByNature } from '#protocols/ldap/ldap-entry.ts'
import { defineDirectoryInsert } from '#sdk/directory/directory-insert.ts'
import { loadAuthority } from '#sdk/module/authority.ts'
import { list, parsed, wholeNumber } from '#sdk/module/parameter-types.ts'
import { readParameters } from '#sdk/module/parameters.ts'

const parameters = {
  ...ldapConnectionParameters,
  searchBase: parsed('distinguished name', (value) => Dn.parse(value), {
    about: 'The branch of the server that appears at the suffix.',
    required: true,
  }),
  binaryAttributes: list({ about: 'Attributes, besides the usual ones, that are base64 here and bytes there.' }),
  dnAttribs: list({
    about:
      'Attributes with distinguished names: those below `searchBase` appear below the suffix. Names in all other attributes stay as the server has them. `none` for no attribute; `member`, `uniqueMember`, `memberOf`, `manager`, `owner`, `seeAlso`, `secretary` and `roleOccupant` when absent.',
    fallback: undefined,
  }),
  maxEntries: wholeNumber({
    about: 'A search that finds more entries is rejected.',
    fallback: 100_000,
    min: 1,
    max: 10_000_000,
  }),
}

const lowerCased = (names: readonly string[]): ReadonlySet<string> => new Set(names.map((name) => name.toLowerCase()))

/** A branch of an LDAP server. */
export default defineDirectoryInsert({
  className: 'directory.Ldap',
  parameters,
  parse: (params, issues, context) => {
    const given = readParameters(parameters, params, issues, context)
    return {
      connection: ldapConnection(given, params, issues, context),
      base: given.searchBase ?? new Dn([]),
      binary: lowerCased([...binaryByNature, ...given.binaryAttributes]),
      moved: given.dnAttribs === undefined ? nameAttributes : lowerCased(given.dnAttribs),
      maxEntries: given.maxEntries,
    }
  },
  groupNames: ({ base, moved }) => (base.rdns.length === 0 ? undefined : { base, isMoved: moved.has('memberof') }),
  /** Loaded on first use: a gateway without this insert is smaller and starts sooner. */
  create: async ({ connection, base, binary, moved, maxEntries }, { name, suffix }) => {
    const { LdapServer } = await import('#protocols/ldap/ldap-server.ts')
    const { LdapInsert } = await import('./ldap-insert.ts')
    const ca = await loadAuthority(connection.authority)
    const server = new LdapServer({ ...connection, ca, name: `directory insert "${name}"` })
    return new LdapInsert({ server, system: ldapSystem(connection), suffix, base, binary, moved, maxEntries })
  },
})
