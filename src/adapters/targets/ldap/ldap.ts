import { Dn, isAttributeType } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { parseTemplate } from '#kernel/template.ts'
import { binaryByNature, isAttributeDescription } from '#protocols/ldap/ldap-entry.ts'
import { choice, flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { defineTarget } from '#sdk/target-module/target-module.ts'
import type { LdapTargetConfig } from './ldap-config.ts'
import { DnPattern } from './ldap-config.ts'
import { AttributeNames } from './ldap-names.ts'
import { ldapConnection, ldapConnectionParameters } from './ldap-parameters.ts'

/** The differences between kinds of servers. */
interface LdapDialect {
  readonly login: string
  readonly id: string
  readonly groupClass: string
  readonly memberOf: string | undefined
  readonly passwords: 'modify' | 'unicodePwd'
  /** Attributes that filters can compare times by. */
  readonly times: { readonly created: string; readonly modified: string }
}

const memberAttributes: Readonly<Record<string, string>> = {
  groupofuniquenames: 'uniqueMember',
  groupofnames: 'member',
  group: 'member',
  posixgroup: 'memberUid',
}

/** The names of an entry's own fields in filters. */
const ownNames = { attribute: ['userID', 'id', 'groups'], groupAttribute: ['name', 'id', 'members'] }

/** Classes that require a member. */
const neverEmpty = new Set(['groupofuniquenames', 'groupofnames'])

const dn = (about: string) => parsed('distinguished name', (value) => Dn.parse(value), { about })
const dnPattern = (about: string) =>
  parsed('distinguished name with ${…}', (value) => DnPattern.parse(value), { about })

const userParameters = ({ login }: LdapDialect) =>
  ({
    searchBase: parsed('distinguished name', (value) => Dn.parse(value), {
      about: 'The base of users, and of groups unless `groupSearchBase` is set.',
      required: true,
    }),
    objectClass: list({
      about: 'The classes of a new user; the first is what users are found by.',
      required: true,
    }),
    optionalObjectClass: list({
      about:
        'Further classes, which users get if the server knows them: new ones, and present ones with the first value of an attribute that needs the class.',
    }),
    userIDAttribute: text({ about: 'The attribute with the login.', fallback: login }),
    dnPattern: parsed('distinguished name with ${…}', (value) => DnPattern.parse(value), {
      about: 'The name of a new user, such as `uid=${uid},ou=people,dc=example,dc=com`.',
      required: true,
    }),
    'default.<attribute>': text({
      about: 'The value of a required attribute for users without one; `${name}` is replaced by another attribute.',
    }),
    'attribute.<name>': text({
      about: 'The name of an attribute of users on the server, such as `sn` for `name.familyName`; in both directions.',
    }),
    emptyTexts: choice(['refuse', 'leaveOut'], {
      about: 'What happens to an empty text, which directories cannot store.',
      fallback: 'refuse',
    }),
  }) satisfies ParameterTable

const groupParameters = ({ groupClass, memberOf }: LdapDialect) =>
  ({
    groupSearchBase: dn('Below which groups are; `searchBase` when absent.'),
    groupObjectClass: list({
      about: `The classes of a new group; the first is what groups are found by. \`${groupClass}\` when absent.`,
    }),
    optionalGroupObjectClass: list({ about: 'The same as `optionalObjectClass`, for groups.' }),
    groupNameAttribute: text({ about: 'The attribute with the name of the group.', fallback: 'cn' }),
    groupDnPattern: dnPattern('The name of a new group; `cn=${name}` below `groupSearchBase` when absent.'),
    'groupAttribute.<name>': text({ about: 'The same as `attribute.<name>`, for groups.' }),
    memberAttribute: text({
      about:
        'What a group holds its members in: `member` or `uniqueMember` by name, `memberUid` by login. That of the class when absent.',
    }),
    memberOf: flag({
      about: 'Reads groups from `memberOf` of the user, which the server maintains, instead of searching them.',
      fallback: memberOf !== undefined,
    }),
    placeholderMember: dn(
      'The member of a new group whose class allows no empty groups; it is never shown. `cn=nobody` when absent.',
    ),
  }) satisfies ParameterTable

export const ldapParameters = (dialect: LdapDialect) =>
  ({
    ...ldapConnectionParameters,
    threadIdleTimeout: wholeNumber({
      about: 'The older name of `idleTimeout`.',
      requirement: 'no',
      fallback: 0,
      max: 86_400_000,
    }),
    ...userParameters(dialect),
    idAttribute: text({
      about: 'The identifier that the server gives and never changes; `none` where the login is the only one.',
      fallback: dialect.id,
    }),
    versionAttribute: text({
      about:
        'The attribute that every change changes, such as `entryCSN` of OpenLDAP; without it, versions are not kept. The server must know the assertion control (RFC 4528).',
    }),
    binaryAttributes: list({ about: 'Attributes, besides the usual ones, that are base64 here and bytes there.' }),
    ...groupParameters(dialect),
    passwords: choice(['modify', 'unicodePwd'], {
      about:
        'How passwords are set: `modify`, by the password modify operation (RFC 3062), or `unicodePwd`, as Active Directory has it.',
      fallback: dialect.passwords,
    }),
    maxEntries: wholeNumber({
      about: 'A search that finds more entries is rejected.',
      fallback: 100_000,
      min: 1,
      max: 10_000_000,
    }),
    listMemoryMillis: wholeNumber({
      about:
        'How long the order of an answer of more than 200 entries is remembered, in milliseconds, so that its pages cost one pass over it; 0 for never.',
      fallback: 30_000,
      max: 600_000,
    }),
    isExternal: flag({ about: 'Not supported; an error when `"true"`.' }),
    createShadowAccounts: flag({ about: 'Not supported; an error when `"true"`.' }),
    supportExternalUsers: flag({ about: 'Not supported; an error when `"true"`.' }),
  }) satisfies ParameterTable

/** The parameters of one target. */
interface Reading {
  readonly given: ParsedParameters<ReturnType<typeof ldapParameters>>
  readonly params: Params
  readonly issues: Issues
  readonly dialect: LdapDialect
}

export function parseLdapTarget(
  parameters: ReturnType<typeof ldapParameters>,
  params: Params,
  issues: Issues,
  context: ParseContext,
  dialect: LdapDialect,
): LdapTargetConfig {
  const given = readParameters(parameters, params, issues, context)
  for (const name of ['isExternal', 'createShadowAccounts', 'supportExternalUsers'] as const) {
    if (given[name])
      issues.error(params.pathOf(name), `"${name}" is not supported: every account is one of this server`)
  }
  const reading: Reading = { given, params, issues, dialect }
  const connection = ldapConnection(given, params, issues, context)
  const idle = given.threadIdleTimeout
  const idAttribute = readAttributeName('idAttribute', reading)
  return {
    connection:
      idle > 0 && params.values('idleTimeout').length === 0 ? { ...connection, idleMillis: idle } : connection,
    layout: {
      users: readUserLayout(reading),
      groups: readGroupLayout(reading),
      id: idAttribute === 'none' ? undefined : idAttribute,
      version: readAttributeName('versionAttribute', reading),
      times: dialect.times,
      binary: new Set([...binaryByNature, ...given.binaryAttributes].map((name) => name.toLowerCase())),
      maxEntries: given.maxEntries,
      listMemoryMillis: given.listMemoryMillis,
      passwords: given.passwords,
    },
    names: {
      users: readNames('attribute', reading),
      groups: readNames('groupAttribute', reading),
      leavesOutEmpty: given.emptyTexts === 'leaveOut',
    },
  }
}

type NameParameter = 'userIDAttribute' | 'idAttribute' | 'versionAttribute' | 'groupNameAttribute' | 'memberAttribute'

function readAttributeName(name: NameParameter, { given, params, issues }: Reading): string | undefined {
  const value = given[name]
  if (value !== undefined && !isAttributeDescription(value)) {
    issues.error(params.pathOf(name), `"${name}": "${value}" cannot be an attribute's name`)
  }
  return value
}

const baseOf = ({ given }: Reading): Dn => given.searchBase ?? new Dn([])

function readUserLayout(reading: Reading): LdapTargetConfig['layout']['users'] {
  const { given, params, issues, dialect } = reading
  const defaults = Array.from(given['default.<attribute>'], ([name, value]) => {
    if (!isAttributeDescription(name)) issues.error(params.pathOf(`default.${name}`), 'is not a valid attribute name')
    return [name.toLowerCase(), parseTemplate(value ?? '', { keys: false, attributes: true })] as const
  })
  return {
    base: baseOf(reading),
    objectClasses: given.objectClass,
    optionalClasses: given.optionalObjectClass,
    login: readAttributeName('userIDAttribute', reading) ?? dialect.login,
    dn: given.dnPattern ?? DnPattern.parse('uid=${uid}'),
    defaults: new Map(defaults),
  }
}

function readGroupLayout(reading: Reading): LdapTargetConfig['layout']['groups'] {
  const { given, dialect } = reading
  const objectClasses = given.groupObjectClass.length > 0 ? given.groupObjectClass : [dialect.groupClass]
  const groupClass = objectClasses[0]?.toLowerCase() ?? ''
  const base = given.groupSearchBase ?? baseOf(reading)
  const name = readAttributeName('groupNameAttribute', reading) ?? 'cn'
  const member = readAttributeName('memberAttribute', reading) ?? memberAttributes[groupClass] ?? 'member'
  const pattern = (): DnPattern =>
    DnPattern.parse(base.child(isAttributeType(name) ? name : 'cn', '${name}').toString())
  return {
    base,
    objectClasses,
    optionalClasses: given.optionalGroupObjectClass,
    name,
    dn: given.groupDnPattern ?? pattern(),
    member,
    membersAreLogins: member.toLowerCase() === 'memberuid',
    memberOf: given.memberOf ? 'memberOf' : undefined,
    placeholder: neverEmpty.has(groupClass) ? (given.placeholderMember ?? Dn.parse('cn=nobody')) : undefined,
  }
}

function readNames(form: 'attribute' | 'groupAttribute', { given, params, issues }: Reading): AttributeNames {
  const taken = new Set<string>()
  const pairs = Array.from(given[`${form}.<name>`], ([name, value = '']) => {
    const report = (message: string) => issues.error(params.pathOf(`${form}.${name}`), `"${form}.${name}": ${message}`)
    if (!isAttributeDescription(value)) report(`"${value}" cannot be an attribute's name`)
    else if (taken.has(value.toLowerCase())) report(`"${value}" is another one's name already`)
    if (ownNames[form].some((own) => own.toLowerCase() === name.toLowerCase())) report('has a name that is in use')
    taken.add(value.toLowerCase())
    return [name, value] as const
  })
  return new AttributeNames(pairs)
}

const ldapDialect: LdapDialect = {
  login: 'uid',
  id: 'entryUUID',
  groupClass: 'groupOfUniqueNames',
  memberOf: undefined,
  passwords: 'modify',
  times: { created: 'createTimestamp', modified: 'modifyTimestamp' },
}

const activeDirectoryDialect: LdapDialect = {
  login: 'sAMAccountName',
  id: 'objectGUID',
  groupClass: 'group',
  memberOf: 'memberOf',
  passwords: 'unicodePwd',
  // Filters cannot use the operational attributes, which the server computes.
  times: { created: 'whenCreated', modified: 'whenChanged' },
}

function define(className: string, alias: string, dialect: LdapDialect) {
  const parameters = ldapParameters(dialect)
  return defineTarget({
    className,
    aliases: [alias],
    parameters,
    parse: (params, issues, context) => parseLdapTarget(parameters, params, issues, context, dialect),
    /** Loaded on first use: a gateway without such a target is smaller and starts sooner. */
    create: async (config, host) => (await import('./ldap-target.ts')).openLdapTarget(config, host.name),
  })
}

/** Users and groups in an LDAP server. */
export const ldap = define('targets.Ldap', 'com.tremolosecurity.provisioning.core.providers.LDAPProvider', ldapDialect)

/** The same, with the attribute names of Active Directory. */
export const activeDirectory = define(
  'targets.ActiveDirectory',
  'com.tremolosecurity.provisioning.core.providers.ADProvider',
  activeDirectoryDialect,
)
