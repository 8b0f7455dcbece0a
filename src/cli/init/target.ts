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

const objectOf = (kind: string, name: string, spec: string): string => `apiVersion: openunison.tremolo.io/v1
kind: ${kind}
metadata:
  name: ${name}
spec:
${spec}`

/** The Secret with the password or token of the target. */
export const targetSecret = { name: 'accounts', key: 'secret' } as const
export const targetCertificate = 'certificates/target-ca.pem'

const secretParam = (name: string): string => `
  secretParams:
    - name: ${name}
      secretName: ${targetSecret.name}
      secretKey: ${targetSecret.key}`

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

const paramLines = (pairs: readonly (readonly [name: string, value: string])[]): string =>
  pairs.map(([name, value]) => `\n    ${name}: ${value}`).join('')

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
})
  .map(([field, value], i) => `      ${i === 0 ? '{' : ' '}"${field}": "${value}"`)
  .join(',\n')
  .concat('}')

export function targetSetup(kind: TargetKind, { hasCertificate, hasSecret }: TargetChoices): TargetSetup {
  const authority = hasCertificate ? `\n    caFile: ${targetCertificate}` : ''
  const secret = (name: string): string => (hasSecret ? secretParam(name) : '')
  const accounts = 'accounts'
  switch (kind) {
    case 'none':
      return {
        name: 'people',
        login: 'userName',
        // The portal and logins use mail.
        mapping: { mapping: 'scim', ...emails },
        createsGroups: true,
      }
    case 'sql':
      return {
        name: accounts,
        login: 'userName',
        mapping: plainMapping,
        createsGroups: true,
        yaml: `# The tables of an application. The names below are those of target-schema.sql: replace them by your own, and remove
# the lines of columns that you don't have, and their pairs of list.* in scim.yaml. All parameters: docs/reference/targets/targets.Sql.md
# Roles and entitlements are stored as JSON, with their display names and types.
${objectOf(
  'Target',
  accounts,
  `  className: targets.Sql
  params:
    userTable: accounts
    userName: login
    userPrimaryKey: account_id
    userVersion: revision
    userCreated: created_at
    userModified: modified_at
    column.userName: login
    column.active: enabled${paramLines(places.map(([attribute, column]) => [`column.${attribute}`, column]))}
    values.mail: account_emails(account_id, address, rank)${paramLines(
      jsonLists.map(({ attribute, table, column }) => [`values.${attribute}`, `${table}(account_id, ${column}, rank)`]),
    )}
    groupTable: teams
    groupName: title
    groupPrimaryKey: team_id
    groupVersion: revision
    groupCreated: created_at
    groupModified: modified_at
    groupColumn.externalId: external_id
    groupLinkTableName: team_accounts
    groupUserKey: account_id
    groupGroupKey: team_id${secretParam('url')}`,
)}
`,
      }
    case 'ldap':
      return {
        name: accounts,
        login: 'userName',
        mapping: plainMapping,
        createsGroups: true,
        yaml: `# An LDAP server: users below ou=people, groups below ou=groups. All parameters: docs/reference/targets/targets.Ldap.md
# target-entries.ldif creates both. inetOrgPerson has no attributes for externalId, locale, roles and some others: they are
# stored if the server has the classes of target-schema.ldif, and otherwise neither announced nor accepted.
# Nor has it one for deactivated users, so employeeType has "false" for them: applications must check it.
${objectOf(
  'Target',
  accounts,
  `  className: targets.Ldap
  params:
    url: "#[TARGET_URL]"
    adminDN: "#[TARGET_USER]"
    searchBase: ou=people,#[TARGET_BASE]
    objectClass: inetOrgPerson
    optionalObjectClass: scimPerson
    userIDAttribute: uid
    attribute.userName: uid
    attribute.active: employeeType${paramLines(
      [
        ...places.map(([attribute, , ldap]) => [attribute, ldap] as const),
        ...jsonLists.map((one) => [one.attribute, one.ldap] as const),
      ]
        .filter(([attribute, ldap]) => attribute !== ldap)
        .map(([attribute, ldap]) => [`attribute.${attribute}`, ldap]),
    )}
    # Identity providers send empty texts for "none".
    emptyTexts: leaveOut
    dnPattern: uid=\${uid},ou=people,#[TARGET_BASE]
    default.cn: \${uid}
    default.sn: \${uid}
    # OpenLDAP changes it with every change. Remove the line for servers that don't have it.
    versionAttribute: entryCSN
    groupSearchBase: ou=groups,#[TARGET_BASE]
    groupObjectClass: groupOfNames
    optionalGroupObjectClass: scimGroup
    groupAttribute.externalId: scimExternalId${authority}${secret('adminPasswd')}`,
)}
`,
      }
    case 'scim':
      return {
        name: accounts,
        login: 'userName',
        mapping: { mapping: 'scim' },
        createsGroups: true,
        yaml: `# Another SCIM server. All parameters, such as OAuth 2 instead of a token: docs/reference/targets/targets.Scim.md
${objectOf(
  'Target',
  accounts,
  `  className: targets.Scim
  params:
    url: "#[TARGET_URL]"${authority}${secret('token')}`,
)}
`,
      }
    case 'kubernetes':
      return {
        name: accounts,
        login: 'sub',
        mapping: { uidAttributeName: 'sub', mapping: 'scim', ...emails },
        createsGroups: false,
        yaml: `# A cluster that has users as objects of the kind User. The kind must exist there (deploy/crds/users.yaml of the sources, or
# the Helm chart), and the account of the token needs the rights to get, list, create, update and delete users.
${objectOf(
  'Target',
  'cluster',
  `  className: targets.Kubernetes
  params:
    url: "#[TARGET_URL]"${authority}${secret('token')}`,
)}
---
${objectOf(
  'Target',
  accounts,
  `  className: targets.KubernetesUsers
  params:
    k8sTarget: cluster
    nameSpace: "#[TARGET_NAMESPACE]"`,
)}
`,
      }
    case 'webhook':
      return {
        name: accounts,
        login: 'userName',
        mapping: plainMapping,
        createsGroups: true,
        yaml: `# An application with a JSON API. Each line is a request of that API, or a JSON path into its answers: replace them by
# those of your application, and remove what it does not have. All parameters: docs/reference/targets/targets.Webhook.md
${objectOf(
  'Target',
  accounts,
  `  className: targets.Webhook
  params:
    url: "#[TARGET_URL]"${authority}

    user.userID: $.login
    user.id: $.id
    user.version: $.version
    user.groups: $.teams[*].name
    user.groupIds: $.teams[*].id
    user.attribute.userName: $.login
    user.attribute.active: $.active
    user.attribute.mail: $.emails${paramLines(
      [
        ...places.map(([attribute, , , field]) => [attribute, field] as const),
        ...jsonLists.map((one) => [one.attribute, one.attribute] as const),
      ].map(([attribute, field]) => [`user.attribute.${attribute}`, `$.${field}`]),
    )}

    findUser: GET /users?login={userID}
    findUser.items: $.items
    findUserById: GET /users/{id}
    searchUsers: GET /users?offset={offset}&limit={limit}
    searchUsers.items: $.items
    searchUsers.total: $.total
    createUser: POST /users
    createUser.body: |
${userBody}
    updateUser: PATCH /users/{id}
    updateUser.headers: 'If-Match: "{version}"'
    updateUser.body: |
${userBody}
    deleteUser: DELETE /users/{id}
    deleteUser.headers: 'If-Match: "{version}"'

    group.name: $.name
    group.id: $.id
    group.version: $.version
    group.attribute.externalId: $.externalId
    findGroup: GET /teams?name={group}
    findGroup.items: $.items
    findGroupById: GET /teams/{groupId}
    searchGroups: GET /teams?offset={offset}&limit={limit}
    searchGroups.items: $.items
    searchGroups.total: $.total
    groupMembers: GET /teams/{groupId}/members?offset={offset}&limit={limit}
    groupMembers.items: $.items[*].login
    groupMembers.total: $.total
    createGroup: POST /teams
    createGroup.body: '{"name": "{group}", "externalId": "{externalId}"}'
    updateGroup: PATCH /teams/{groupId}
    updateGroup.headers: 'If-Match: "{version}"'
    updateGroup.body: '{"name": "{group}", "externalId": "{externalId}"}'
    deleteGroup: DELETE /teams/{groupId}
    deleteGroup.headers: 'If-Match: "{version}"'
    addMember: PUT /teams/{groupId}/members/{id}
    removeMember: DELETE /teams/{groupId}/members/{id}${secret('bearerToken')}`,
)}
`,
      }
  }
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
  return `# The SCIM gateway at ${scimPath}. Its one client sends the token whose SHA-256 is in secrets/scim/token.
# To replace the token, add a line with a new one, or with "sha256:" and its SHA-256, there, enter it in the client, and then remove the old line.
${objectOf('AuthenticationMechanism', 'scim-token', '  className: auth.BearerToken\n  uri: /auth/scim-token')}
---
${objectOf(
  'AuthenticationChain',
  'scim',
  `  level: 20
  root: o=Tremolo
  authMechs:
    - name: scim-token
      required: required
      params:
        userName: scim
        realm: scim
      secretParams:
        - name: token
          secretName: scim
          secretKey: token`,
)}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata:
  name: scim
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    cookiesEnabled: false
  urls:
    - hosts: ["#[GATEHOUSE_HOST]"]
      uri: ${scimPath}
      authChain: scim
      azRules:
        - scope: dn
          constraint: uid=scim,ou=tokens,o=Tremolo
      filterChain:
        - className: filters.ScimGateway
          params:
${Object.entries(params)
  .map(([name, value]) => `            ${name}: ${value}`)
  .join('\n')}
`
}

/** config/workflows.yaml: what a SCIM call does. */
export function workflowsYaml({ name, login, createsGroups }: TargetSetup): string {
  const workflow = (workflowName: string, label: string, tasks: string): string =>
    objectOf(
      'Workflow',
      workflowName,
      `  label: ${label}
  description: Runs for a call of the SCIM gateway at ${scimPath}.
  inList: false
  orgId: internal
  tasks: |-
${tasks}
`,
    )
  const groupTask = (className: string): string => `    - taskType: customTask
      className: ${className}
      params:
        target: ${name}`
  return `# Every SCIM call that changes something runs one of these. Approvals, mails and further targets go here.
${[
  workflow(
    'write-user',
    'Create or change a user',
    `    - taskType: provision\n      sync: true\n      target: ${name}`,
  ),
  workflow('delete-user', 'Delete a user', `    - taskType: delete\n      target: ${name}`),
  workflow(
    'change-membership',
    'Add a user to a group, or remove one',
    `    - taskType: customTask
      className: tasks.LoadGroupsFromTarget
      params:
        nameAttr: ${login}
        target: ${name}
    - taskType: addGroup
      name: $groupname$
      remove: $removegroup$
    - taskType: provision
      sync: true
      target: ${name}
      attributes: [${login}]`,
  ),
  ...(createsGroups
    ? [
        workflow('create-group', 'Create a group', groupTask('tasks.CreateGroup')),
        workflow('update-group', 'Change a group', groupTask('tasks.UpdateGroup')),
        workflow('delete-group', 'Delete a group', groupTask('tasks.DeleteGroup')),
      ]
    : []),
].join('---\n')}`
}
