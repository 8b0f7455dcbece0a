/** What an administrator enters where, so that one product calls a gateway. */
export interface ScimClientSetup {
  /** The product, as people know it. */
  readonly title: string
  /** Where in the product the fields are, or what to configure in place of a product. */
  readonly place: string
  readonly fields: readonly (readonly [label: string, value: string])[]
}

/** In `fields`, these stand for the address of the gateway and for the token. */
const [address, token] = ['{address}', '{token}']

/** By the value of `client` of filters.ScimGateway. */
export const scimClientSetups = {
  entra: {
    title: 'Microsoft Entra ID',
    place: 'Microsoft Entra ID, under Enterprise applications > your application > Provisioning',
    fields: [
      ['Provisioning Mode', 'Automatic'],
      ['Tenant URL', `${address}?aadOptscim062020`],
      ['Secret Token', token],
    ],
  },
  okta: {
    title: 'Okta',
    place: 'Okta, under Applications > your application > Provisioning > Integration',
    fields: [
      ['SCIM connector base URL', address],
      ['Unique identifier field for users', 'userName'],
      ['Authentication Mode', 'HTTP Header'],
      ['Authorization', token],
    ],
  },
  sailpoint: {
    title: 'SailPoint',
    place: 'SailPoint, under Admin > Connections > Sources > Create New, connector SCIM 2.0',
    fields: [
      ['Base URL', address],
      ['Authentication type', 'API Token'],
      ['API Token', token],
    ],
  },
  onelogin: {
    title: 'OneLogin',
    place: 'OneLogin, under Applications > SCIM Provisioner with SAML (SCIM v2 Enterprise) > Configuration',
    fields: [
      ['SCIM Base URL', address],
      ['SCIM Bearer Token', token],
    ],
  },
  jumpcloud: {
    title: 'JumpCloud',
    place: 'JumpCloud, under SSO Applications > your custom application > Identity Management',
    fields: [
      ['SCIM Version', 'SCIM 2.0'],
      ['Base URL', address],
      ['Token Key', token],
    ],
  },
  google: {
    title: 'Google Workspace',
    place: 'Google Workspace, under Apps > Web and mobile apps > your application > Auto-provisioning',
    fields: [
      ['Access token', token],
      ['Endpoint URL', address],
    ],
  },
  aws: {
    title: 'clients of the AWS IAM Identity Center SCIM API',
    place: 'the client, in the place of the values that IAM Identity Center shows',
    fields: [
      ['SCIM endpoint', address],
      ['Access token', token],
    ],
  },
  github: {
    title: "clients of GitHub's SCIM API",
    place: "the client, in the place of GitHub's root URL and personal access token",
    fields: [
      ['Root URL', address],
      ['Token', token],
    ],
  },
  slack: {
    title: "clients of Slack's SCIM API",
    place: "the client, in the place of Slack's base URL and OAuth token",
    fields: [
      ['Base URL', address],
      ['Token', token],
    ],
  },
} as const satisfies Record<string, ScimClientSetup>

export type ScimClientName = keyof typeof scimClientSetups
export const scimClientNames = Object.keys(scimClientSetups) as ScimClientName[]

export const scimPath = (client: ScimClientName): string => `/scim/${client}`

/** The Secret that has the token, or its hash. */
export const tokenSecret = (client: ScimClientName) => ({ name: `scim-${client}`, key: 'token' }) as const

/** The fields with the address of the gateway and the token put in. */
export function fieldsOf(client: ScimClientName, at: { readonly address: string; readonly token: string }) {
  const { fields }: ScimClientSetup = scimClientSetups[client]
  return fields.map(
    ([label, value]) => [label, value.replace(address, () => at.address).replace(token, () => at.token)] as const,
  )
}

interface TemplateValues {
  readonly client: ScimClientName
  /** The name that the provider calls, without a port. */
  readonly host: string
  /** Scheme, name and port. */
  readonly origin: string
}

/**
 * A whole configuration for one client: who may call, the gateway, the users and the workflows. Every name in it begins
 * or ends with the client's, so that several such files may be in one folder.
 */
export function scimClientYaml({ client, host, origin }: TemplateValues): string {
  const { title }: ScimClientSetup = scimClientSetups[client]
  const hostValue = `${client.toUpperCase()}_HOST`
  const secret = tokenSecret(client)
  const users = `${client}-users`
  const workflow = (name: string, label: string, tasks: string) => `---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: ${client}-${name}
spec:
  label: ${label}
  description: Runs for a call of the SCIM gateway at ${scimPath(client)}.
  inList: false
  orgId: internal
  tasks: |-
${tasks}
`
  const groupTask = (className: string) => `    - taskType: customTask
      className: ${className}
      params:
        target: ${users}`

  return `# SCIM for ${title}, at ${origin}${scimPath(client)}
#
# ${hostValue} is the one value to set: the host name that clients call. An environment variable of that name goes first.
# The token comes from the Secret ${secret.name}, key ${secret.key}: the file secrets/${secret.name}/${secret.key} beside this one, a Secret of the
# cluster, or the environment variable SCIM_${client.toUpperCase()}_TOKEN. This command writes both, with a fresh token:
#   gatehouse scim init --client ${client} --url ${origin}
# Serve it over TLS, with --tls-cert and --tls-key, or behind a proxy that --trusted-proxy names.
${hostValue}: ${host}
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata:
  name: scim-${client}
spec:
  className: auth.BearerToken
  uri: /auth/scim-${client}
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: scim-${client}
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: scim-${client}
      required: required
      params:
        userName: ${client}
        realm: scim
      secretParams:
        - name: token
          secretName: ${secret.name}
          secretKey: ${secret.key}
---
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata:
  name: scim-${client}
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    cookiesEnabled: false
  urls:
    - hosts: ["#[${hostValue}]"]
      uri: ${scimPath(client)}
      authChain: scim-${client}
      azRules:
        - scope: dn
          constraint: uid=${client},ou=tokens,o=Tremolo
      filterChain:
        - className: filters.ScimGateway
          params:
            client: ${client}
            mapping: scim
            lookupTarget: ${users}
            workflowName: ${client}-write-user
            deleteUserWorkflowName: ${client}-delete-user
            groupWorkflow: ${client}-change-membership
            groupCreateWorkflow: ${client}-create-group
            groupUpdateWorkflow: ${client}-update-group
            groupDeleteWorkflow: ${client}-delete-group
            groupNestingWorkflow: ${client}-nest-group
---
# The users, in the database of Gatehouse. "active": false is stored with the user, and such a user can't log in.
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata:
  name: ${users}
spec:
  className: targets.Database
  params: []
${[
  workflow(
    'write-user',
    'Create or change a user',
    `    - taskType: provision
      sync: true
      target: ${users}`,
  ),
  workflow(
    'delete-user',
    'Delete a user',
    `    - taskType: delete
      target: ${users}`,
  ),
  workflow(
    'change-membership',
    'Add a user to a group, or remove one',
    `    - taskType: customTask
      className: tasks.LoadGroupsFromTarget
      params:
        nameAttr: userName
        target: ${users}
    - taskType: addGroup
      name: $groupname$
      remove: $removegroup$
    - taskType: provision
      sync: true
      target: ${users}
      attributes: [userName]`,
  ),
  workflow('create-group', 'Create a group', groupTask('tasks.CreateGroup')),
  workflow('update-group', 'Change a group', groupTask('tasks.UpdateGroup')),
  workflow('delete-group', 'Delete a group', groupTask('tasks.DeleteGroup')),
  workflow('nest-group', 'Add a group to a group, or remove one', groupTask('tasks.NestGroup')),
].join('')}`
}
