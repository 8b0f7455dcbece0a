import { type LdapDialect, ldapParameters, parseLdapTarget } from '#modules/targets/ldap/ldap-parameters.ts'
import { defineTarget } from '#sdk/target.ts'

const dialect: LdapDialect = {
  login: 'sAMAccountName',
  id: 'objectGUID',
  groupClass: 'group',
  memberOf: 'memberOf',
  passwords: 'unicodePwd',
  // The operational attributes are computed there, and filters cannot use them.
  times: { created: 'whenCreated', modified: 'whenChanged' },
}
const parameters = ldapParameters(dialect)

/** The same with the names that Active Directory has for things. */
export default defineTarget({
  className: 'targets.ActiveDirectory',
  aliases: ['com.tremolosecurity.provisioning.core.providers.ADProvider'],
  parameters,
  parse: (params, issues, context) => parseLdapTarget(parameters, params, issues, context, dialect),
  create: async (config, host) =>
    (await import('#modules/targets/ldap/ldap-target.ts')).openLdapTarget(config, host.name),
})
