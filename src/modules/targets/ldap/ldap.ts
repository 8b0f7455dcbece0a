import { type LdapDialect, ldapParameters, parseLdapTarget } from '#modules/targets/ldap/ldap-parameters.ts'
import { defineTarget } from '#sdk/target.ts'

const dialect: LdapDialect = {
  login: 'uid',
  id: 'entryUUID',
  groupClass: 'groupOfUniqueNames',
  memberOf: undefined,
  passwords: 'modify',
  times: { created: 'createTimestamp', modified: 'modifyTimestamp' },
}
const parameters = ldapParameters(dialect)

/** Users and groups in an LDAP server. */
export default defineTarget({
  className: 'targets.Ldap',
  aliases: ['com.tremolosecurity.provisioning.core.providers.LDAPProvider'],
  parameters,
  parse: (params, issues, context) => parseLdapTarget(parameters, params, issues, context, dialect),
  /** Loaded where there is such a target: a gateway without one is smaller and starts sooner. */
  create: async (config, host) =>
    (await import('#modules/targets/ldap/ldap-target.ts')).openLdapTarget(config, host.name),
})
