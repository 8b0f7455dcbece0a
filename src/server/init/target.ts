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
  /** The attributes that the workflow of users writes; undefined for all that SCIM sent. */
  readonly attributes?: readonly string[]
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

/** An internal attribute, how SCIM sends it, and where a filter of SCIM finds it. */
const scimSources: Readonly<Record<string, { readonly source: string; readonly filter?: string }>> = {
  mail: { source: 'mappers.JsonPathMapping|emails,$[*].value', filter: 'emails.value=mail,emails=mail' },
  givenName: { source: 'mappers.JsonPathMapping|name,$.givenName', filter: 'name.givenName=givenName' },
  sn: { source: 'mappers.JsonPathMapping|name,$.familyName', filter: 'name.familyName=sn' },
  cn: { source: 'mappers.JsonPathMapping|name,$.formatted' },
  displayName: { source: 'displayName' },
}

interface MappedAttributes {
  readonly target: string
  readonly login: string
  /** Keys of `scimSources`. */
  readonly plain: readonly string[]
  /** The attribute that holds `active`. */
  readonly active: string
}

function mappingLines({ target, login, plain, active }: MappedAttributes): Record<string, string> {
  const lines: Record<string, string> = {
    uidAttributeName: login,
    lookupAttributeName: login,
    scim2tremolo: `[${[login, ...plain, active].join(', ')}]`,
  }
  const add = (way: string, attribute: string, source: string): void => {
    const kind = source.startsWith('mappers.') ? 'custom' : /[{[]/.test(source) ? 'composite' : 'user'
    lines[`${way}.${attribute}.source`] = kind === 'composite' ? `'${source}'` : source
    lines[`${way}.${attribute}.sourceType`] = kind
  }
  add('scim2tremolo', login, 'userName')
  for (const name of plain) add('scim2tremolo', name, scimSources[name]?.source ?? name)
  add('scim2tremolo', active, 'active')
  const parts = [
    ...(plain.includes('cn') ? ['"formatted": "${cn}"'] : []),
    ...(plain.includes('givenName') ? ['"givenName": "${givenName}"', '"familyName": "${sn}"'] : []),
  ]
  const shown = ['userName', ...(plain.includes('displayName') ? ['displayName'] : []), 'active']
  lines['tremolo2scim'] = `[${[...shown, ...(parts.length > 0 ? ['name'] : []), 'emails', 'groups'].join(', ')}]`
  add('tremolo2scim', 'userName', login)
  if (plain.includes('displayName')) add('tremolo2scim', 'displayName', 'displayName')
  add('tremolo2scim', 'active', active)
  if (parts.length > 0) add('tremolo2scim', 'name', `{${parts.join(', ')}}`)
  add('tremolo2scim', 'emails', '[{"type": "work", "primary": true, "value": "${mail}"}]')
  add('tremolo2scim', 'groups', `mappers.GenerateGroups|false,#[GATEHOUSE_URL]${scimPath},${target}`)
  lines['userFilterScim2Ldap'] = plain.flatMap((name) => scimSources[name]?.filter ?? []).join(',')
  return lines
}

function mapped(mapping: MappedAttributes): Pick<TargetSetup, 'name' | 'login' | 'attributes' | 'mapping'> {
  const { target: name, login, plain, active } = mapping
  return { name, login, attributes: [login, ...plain, active], mapping: mappingLines(mapping) }
}

const scimNames = { login: 'userName', mapping: { mapping: 'scim' } } as const

/** What the answers decide about a target besides its kind. */
export interface TargetChoices {
  /** The server's certificate authority is in `targetCertificate`. */
  readonly hasCertificate: boolean
  /** The password or token is in `targetSecret`. */
  readonly hasSecret: boolean
}

export function targetSetup(kind: TargetKind, { hasCertificate, hasSecret }: TargetChoices): TargetSetup {
  const authority = hasCertificate ? `\n    caFile: ${targetCertificate}` : ''
  const secret = (name: string): string => (hasSecret ? secretParam(name) : '')
  const accounts = 'accounts'
  switch (kind) {
    case 'none':
      return {
        ...mapped({
          target: 'people',
          login: 'userName',
          plain: ['mail', 'givenName', 'sn', 'displayName'],
          active: 'active',
        }),
        createsGroups: true,
      }
    case 'sql':
      return {
        ...mapped({ target: accounts, login: 'uid', plain: ['mail', 'givenName', 'sn'], active: 'active' }),
        createsGroups: true,
        yaml: `# The tables of an application. The names below are those of target-schema.sql: replace them by your own.
# All parameters: docs/reference/targets/targets.Sql.md
${objectOf(
  'Target',
  accounts,
  `  className: targets.Sql
  params:
    userTable: accounts
    userName: login
    userPrimaryKey: account_id
    userVersion: revision
    column.uid: login
    column.givenName: first_name
    column.sn: last_name
    column.active: enabled
    values.mail: account_emails(account_id, address, rank)
    groupTable: teams
    groupName: title
    groupPrimaryKey: team_id
    groupVersion: revision
    groupLinkTableName: team_accounts
    groupUserKey: account_id
    groupGroupKey: team_id${secretParam('url')}`,
)}
`,
      }
    case 'ldap':
      return {
        ...mapped({
          target: accounts,
          login: 'uid',
          plain: ['mail', 'givenName', 'sn', 'cn', 'displayName'],
          active: 'employeeType',
        }),
        createsGroups: true,
        yaml: `# An LDAP server: users below ou=people, groups below ou=groups. All parameters: docs/reference/targets/targets.Ldap.md
# inetOrgPerson has no attribute for deactivated users, so employeeType has "false" for them: applications must check it.
${objectOf(
  'Target',
  accounts,
  `  className: targets.Ldap
  params:
    url: "#[TARGET_URL]"
    adminDN: "#[TARGET_USER]"
    searchBase: ou=people,#[TARGET_BASE]
    objectClass: inetOrgPerson
    userIDAttribute: uid
    dnPattern: uid=\${uid},ou=people,#[TARGET_BASE]
    default.cn: \${uid}
    default.sn: \${uid}
    # OpenLDAP changes it with every change. Remove the line for servers that don't have it.
    versionAttribute: entryCSN
    groupSearchBase: ou=groups,#[TARGET_BASE]
    groupObjectClass: groupOfNames${authority}${secret('adminPasswd')}`,
)}
`,
      }
    case 'scim':
      return {
        ...scimNames,
        name: accounts,
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
        ...mapped({
          target: accounts,
          login: 'sub',
          plain: ['mail', 'givenName', 'sn', 'displayName'],
          active: 'active',
        }),
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
        ...mapped({ target: accounts, login: 'userName', plain: ['mail', 'displayName'], active: 'active' }),
        createsGroups: true,
        yaml: `# An application with a JSON API. Each line is a request of that API, or a JSON path into its answers: replace them by
# those of your application. All parameters: docs/reference/targets/targets.Webhook.md
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
    user.attribute.userName: $.login
    user.attribute.displayName: $.name
    user.attribute.mail: $.emails
    user.attribute.active: $.active

    findUser: GET /users?login={userID}
    findUser.items: $.items
    findUserById: GET /users/{id}
    searchUsers: GET /users?offset={offset}&limit={limit}
    searchUsers.items: $.items
    searchUsers.total: $.total
    createUser: POST /users
    createUser.body: '{"login": "{userID}", "name": "{displayName}", "emails": "{mail*}", "active": "{active:boolean}"}'
    updateUser: PATCH /users/{id}
    updateUser.headers: 'If-Match: "{version}"'
    updateUser.body: '{"login": "{userID}", "name": "{displayName}", "emails": "{mail*}", "active": "{active:boolean}"}'
    deleteUser: DELETE /users/{id}
    deleteUser.headers: 'If-Match: "{version}"'

    group.name: $.name
    group.id: $.id
    group.version: $.version
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
    createGroup.body: '{"name": "{group}"}'
    updateGroup: PATCH /teams/{groupId}
    updateGroup.headers: 'If-Match: "{version}"'
    updateGroup.body: '{"name": "{group}"}'
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
  return `-- Tables that fit config/target.yaml, for trying it out. An application that has tables of its own needs none of them.
create table accounts (
  account_id ${key},
  login varchar(200) not null unique,
  first_name varchar(100),
  last_name varchar(100),
  enabled boolean not null default true,
  revision integer not null default 1
);
create table account_emails (
  account_id integer not null references accounts (account_id),
  address varchar(320) not null,
  rank integer not null,
  primary key (account_id, address)
);
create table teams (
  team_id ${key},
  title varchar(200) not null unique,
  revision integer not null default 1
);
create table team_accounts (
  team_id integer not null references teams (team_id),
  account_id integer not null references accounts (account_id),
  primary key (team_id, account_id)
);
`
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
# To replace the token, add a line with a new one there, enter it in the client, and then remove the old line.
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
export function workflowsYaml({ name, login, attributes, createsGroups }: TargetSetup): string {
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
  const written = attributes === undefined ? '' : `\n      attributes: [${attributes.join(', ')}]`
  return `# Every SCIM call that changes something runs one of these. Approvals, mails and further targets go here.
${[
  workflow(
    'write-user',
    'Create or change a user',
    `    - taskType: provision\n      sync: true\n      target: ${name}${written}`,
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
