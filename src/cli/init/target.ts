import { fillTemplate } from '#kernel/text/fill-template.ts'
import type { ScimClientName } from './scim.ts'

export const targetKinds = ['none', 'sql', 'ldap', 'scim', 'kubernetes', 'webhook'] as const
export type TargetKind = (typeof targetKinds)[number]

/** Where SCIM clients reach the gateway. */
export const scimPath = '/scim/v2'

/** The parts of a new configuration that depend on where accounts are created. */
export interface TargetSetup {
  /** The name of the Target that the workflows write to. */
  readonly name: string
  /** The documents of config/target.yaml; none for the users of the portal, which portal.yaml has. */
  readonly yaml?: string
  /** The attribute with the login. */
  readonly login: string
  /** Parameters of filters.ScimGateway that map attributes. */
  readonly mapping: Readonly<Record<string, string>>
  /** Kubernetes has groups only while they have members. */
  readonly createsGroups: boolean
}

/** The Secret with the password or token of the target. */
export const targetSecret = { name: 'accounts', key: 'secret' } as const
export const targetCertificate = 'certificates/target-ca.pem'

/** SCIM lists whose elements are plain values, by type. An element without a type is one of work. */
const emails = { 'list.emails': 'work=mail,home=homeMail,other=otherMail,=mail' }
const phones = {
  'list.phoneNumbers':
    'work=telephoneNumber,mobile=mobile,home=homePhone,fax=facsimileTelephoneNumber,=telephoneNumber',
}
const addresses = { 'list.addresses': 'work=office,=office' }
const plainMapping = { mapping: 'scim', ...emails, ...phones, ...addresses }

const enterprise = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'

/** Internal attributes of that mapping, and where systems store them. What begins with `scim` is not in the usual LDAP schemas. */
const places: readonly (readonly [attribute: string, column: string, ldap: string, field: string])[] = [
  ['externalId', 'external_id', 'scimExternalId', 'externalId'],
  ['displayName', 'display_name', 'displayName', 'name'],
  ['name.formatted', 'full_name', 'cn', 'fullName'],
  ['name.givenName', 'first_name', 'givenName', 'firstName'],
  ['name.familyName', 'last_name', 'sn', 'lastName'],
  ['name.middleName', 'middle_name', 'scimMiddleName', 'middleName'],
  ['name.honorificPrefix', 'name_prefix', 'scimNamePrefix', 'namePrefix'],
  ['name.honorificSuffix', 'name_suffix', 'scimNameSuffix', 'nameSuffix'],
  ['nickName', 'nickname', 'scimNickName', 'nickname'],
  ['profileUrl', 'profile_url', 'scimProfileUrl', 'profileUrl'],
  ['title', 'job_title', 'title', 'title'],
  ['userType', 'user_type', 'scimUserType', 'userType'],
  ['preferredLanguage', 'language', 'preferredLanguage', 'language'],
  ['locale', 'locale', 'scimLocale', 'locale'],
  ['timezone', 'timezone', 'scimTimezone', 'timezone'],
  ['homeMail', 'home_email', 'scimHomeMail', 'homeEmail'],
  ['otherMail', 'other_email', 'scimOtherMail', 'otherEmail'],
  ['telephoneNumber', 'phone', 'telephoneNumber', 'phone'],
  ['mobile', 'mobile', 'mobile', 'mobile'],
  ['homePhone', 'home_phone', 'homePhone', 'homePhone'],
  ['facsimileTelephoneNumber', 'fax', 'facsimileTelephoneNumber', 'fax'],
  ['office.formatted', 'office_address', 'scimOfficeAddress', 'officeAddress'],
  ['office.streetAddress', 'street', 'street', 'street'],
  ['office.locality', 'city', 'l', 'city'],
  ['office.region', 'region', 'st', 'region'],
  ['office.postalCode', 'postal_code', 'postalCode', 'postalCode'],
  ['office.country', 'country', 'scimCountry', 'country'],
  [`${enterprise}:employeeNumber`, 'employee_number', 'employeeNumber', 'employeeNumber'],
  [`${enterprise}:costCenter`, 'cost_center', 'scimCostCenter', 'costCenter'],
  [`${enterprise}:organization`, 'organization', 'o', 'organization'],
  [`${enterprise}:division`, 'division', 'ou', 'division'],
  [`${enterprise}:department`, 'department', 'departmentNumber', 'department'],
  [`${enterprise}:manager.value`, 'manager', 'scimManager', 'manager'],
]

/** Lists with a JSON text for each element, since elements have a display name and any type. */
const jsonLists = [
  { attribute: 'roles', table: 'account_roles', column: 'role', ldap: 'scimRole' },
  { attribute: 'entitlements', table: 'account_entitlements', column: 'entitlement', ldap: 'scimEntitlement' },
] as const

/** What the answers decide about a target besides its kind. */
export interface TargetChoices {
  /** The server's certificate authority is in `targetCertificate`. */
  readonly hasCertificate: boolean
  /** The password or token is in `targetSecret`. */
  readonly hasSecret: boolean
}

/** The body of a user in the sample API. */
const userBody = Object.entries({
  login: '{userID}',
  active: '{active:boolean}',
  emails: '{mail*}',
  ...Object.fromEntries(places.map(([attribute, , , field]) => [field, `{${attribute}}`])),
  ...Object.fromEntries(jsonLists.map(({ attribute }) => [attribute, `{${attribute}*}`])),
}).map(([field, value], i, { length }) => `${i === 0 ? '{' : ' '}"${field}": "${value}"${i === length - 1 ? '}' : ','}`)

const lines = (pairs: readonly (readonly [name: string, value: string])[]): string[] =>
  pairs.map(([name, value]) => `${name}: ${value}`)

interface TargetTemplate {
  readonly file: URL
  /** The parameter with the password or token. */
  readonly secret: string
  /** It is not optional. */
  readonly needsSecret?: true
  /** The names of attributes in the system. */
  readonly values: Readonly<Record<string, readonly string[]>>
}

interface TargetForm extends Omit<TargetSetup, 'yaml'> {
  readonly template?: TargetTemplate
}

const common = { name: 'accounts', login: 'userName', createsGroups: true } as const

const forms: Readonly<Record<TargetKind, TargetForm>> = {
  // The portal and logins use mail.
  none: { ...common, name: 'people', mapping: { mapping: 'scim', ...emails } },
  sql: {
    ...common,
    mapping: plainMapping,
    template: {
      file: new URL('./templates/target-sql.yaml', import.meta.url),
      secret: 'url',
      needsSecret: true,
      values: {
        columns: lines(places.map(([attribute, column]) => [`column.${attribute}`, column])),
        lists: lines(
          jsonLists.map(({ attribute, table, column }) => [
            `values.${attribute}`,
            `${table}(account_id, ${column}, rank)`,
          ]),
        ),
      },
    },
  },
  ldap: {
    ...common,
    mapping: plainMapping,
    template: {
      file: new URL('./templates/target-ldap.yaml', import.meta.url),
      secret: 'adminPasswd',
      values: {
        attributes: lines(
          [
            ...places.map(([attribute, , ldap]) => [attribute, ldap] as const),
            ...jsonLists.map((one) => [one.attribute, one.ldap] as const),
          ]
            .filter(([attribute, ldap]) => attribute !== ldap)
            .map(([attribute, ldap]) => [`attribute.${attribute}`, ldap]),
        ),
      },
    },
  },
  scim: {
    ...common,
    mapping: { mapping: 'scim' },
    template: { file: new URL('./templates/target-scim.yaml', import.meta.url), secret: 'token', values: {} },
  },
  kubernetes: {
    ...common,
    login: 'sub',
    mapping: { uidAttributeName: 'sub', mapping: 'scim', ...emails },
    createsGroups: false,
    template: { file: new URL('./templates/target-kubernetes.yaml', import.meta.url), secret: 'token', values: {} },
  },
  webhook: {
    ...common,
    mapping: plainMapping,
    template: {
      file: new URL('./templates/target-webhook.yaml', import.meta.url),
      secret: 'bearerToken',
      values: {
        userBody,
        attributes: lines(
          [
            ...places.map(([attribute, , , field]) => [attribute, field] as const),
            ...jsonLists.map((one) => [one.attribute, one.attribute] as const),
          ].map(([attribute, field]) => [`user.attribute.${attribute}`, `$.${field}`]),
        ),
      },
    },
  },
}

export function targetSetup(kind: TargetKind, { hasCertificate, hasSecret }: TargetChoices): TargetSetup {
  const { template, ...setup } = forms[kind]
  if (template === undefined) return setup
  const secret = [
    'secretParams:',
    `  - name: ${template.secret}`,
    `    secretName: ${targetSecret.name}`,
    `    secretKey: ${targetSecret.key}`,
  ]
  const yaml = fillTemplate(template.file, {
    ...template.values,
    authority: hasCertificate ? [`caFile: ${targetCertificate}`] : [],
    secret: hasSecret || template.needsSecret === true ? secret : [],
  })
  return { ...setup, yaml }
}

/** Sample tables for a target that has none yet. */
export const targetSchema = (dialect: 'sqlite' | 'postgres'): string => {
  const key =
    dialect === 'sqlite' ? 'integer primary key autoincrement' : 'integer generated always as identity primary key'
  const time = dialect === 'sqlite' ? 'timestamp' : 'timestamptz'
  return `-- Tables that fit config/target.yaml, for trying it out. An application that has tables of its own needs none of them.
create table accounts (
  account_id ${key},
  login varchar(200) not null unique,
  enabled boolean not null default true,
${places.map(([, column]) => `  ${column} varchar(1000),`).join('\n')}
  created_at ${time},
  modified_at ${time},
  revision integer not null default 1
);
create table account_emails (
  account_id integer not null references accounts (account_id),
  address varchar(320) not null,
  rank integer not null,
  primary key (account_id, address)
);
${jsonLists
  .map(
    ({ table, column }) => `create table ${table} (
  account_id integer not null references accounts (account_id),
  ${column} text not null,
  rank integer not null,
  primary key (account_id, rank)
);
`,
  )
  .join('')}create table teams (
  team_id ${key},
  title varchar(200) not null unique,
  external_id varchar(200),
  created_at ${time},
  modified_at ${time},
  revision integer not null default 1
);
create table team_accounts (
  team_id integer not null references teams (team_id),
  account_id integer not null references accounts (account_id),
  primary key (team_id, account_id)
);
`
}

/** An arc of a UUID, which needs no registration. */
const schemaArc = '2.25.147599132013083141678387197629070724368'

/** The classes of attributes that LDAP's usual schemas lack, as LDIF for the configuration of OpenLDAP. */
export function ldapSchema(): string {
  const own = [...places.map(([attribute, , ldap]) => ({ attribute, ldap })), ...jsonLists].filter(({ ldap }) =>
    ldap.startsWith('scim'),
  )
  const several = new Set<string>(['homeMail', 'otherMail', ...jsonLists.map(({ attribute }) => attribute)])
  const exact = new Set<string>([
    'externalId',
    `${enterprise}:manager.value`,
    ...jsonLists.map(({ attribute }) => attribute),
  ])
  const types = own.map(({ attribute, ldap }, i) => {
    const match = exact.has(attribute) ? 'caseExact' : 'caseIgnore'
    const rules = `EQUALITY ${match}Match SUBSTR ${match}SubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15`
    return `olcAttributeTypes: ( ${schemaArc}.1.${i + 1} NAME '${ldap}' ${rules}${several.has(attribute) ? '' : ' SINGLE-VALUE'} )`
  })
  return `# What SCIM clients send and inetOrgPerson and groupOfNames have no attribute for. Load it on the machine of an OpenLDAP server:
#   ldapadd -Y EXTERNAL -H ldapi:/// -f target-schema.ldif
dn: cn=scim,cn=schema,cn=config
objectClass: olcSchemaConfig
cn: scim
${types.join('\n')}
olcObjectClasses: ( ${schemaArc}.2.1 NAME 'scimPerson' SUP top AUXILIARY MAY ( ${own.map(({ ldap }) => ldap).join(' $ ')} ) )
olcObjectClasses: ( ${schemaArc}.2.2 NAME 'scimGroup' SUP top AUXILIARY MAY scimExternalId )
`
}

/** The entries above users and groups. */
export function ldapEntries(base: string): string {
  const entry = (name: string): string => {
    const dn = `ou=${name},${base}`
    const line = /^[\x20-\x7e]*[\x21-\x7e]$/.test(dn) ? `dn: ${dn}` : `dn:: ${Buffer.from(dn).toString('base64')}`
    return `${line}\nobjectClass: organizationalUnit\nou: ${name}\n`
  }
  return `# The entries above users and groups, if the server does not have them yet.\n${entry('people')}\n${entry('groups')}`
}

/** config/scim.yaml: who may call, and the gateway itself. */
export function scimYaml(target: TargetSetup, client: ScimClientName | undefined): string {
  const params: Record<string, string> = {
    ...(client === undefined ? {} : { client }),
    lookupTarget: target.name,
    workflowName: 'write-user',
    deleteUserWorkflowName: 'delete-user',
    groupWorkflow: 'change-membership',
    ...(target.createsGroups
      ? {
          groupCreateWorkflow: 'create-group',
          groupUpdateWorkflow: 'update-group',
          groupDeleteWorkflow: 'delete-group',
        }
      : {}),
    ...target.mapping,
  }
  return fillTemplate(new URL('./templates/scim.yaml', import.meta.url), { params: lines(Object.entries(params)) })
}

/** config/workflows.yaml: what a SCIM call does. */
export function workflowsYaml({ name, login, createsGroups }: TargetSetup): string {
  const values = { target: name, login }
  const ofUsers = fillTemplate(new URL('./templates/workflows.yaml', import.meta.url), values)
  if (!createsGroups) return ofUsers
  return ofUsers + fillTemplate(new URL('./templates/workflows-groups.yaml', import.meta.url), values)
}
