import { hash, randomBytes } from 'node:crypto'
import { stringify } from 'yaml'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import type { GatewayPlan } from './plan.ts'
import {
  ldapEntries,
  ldapSchema,
  scimYaml,
  targetCertificate,
  targetSchema,
  targetSecret,
  targetSetup,
  workflowsYaml,
} from './target.ts'

interface NewFile {
  readonly text: string
  /** Only the owner may read it. */
  readonly secret?: true
}

/**
 * The files of a new gateway, by their path in its folder. Answers appear in values.yaml, in secrets and in
 * gatehouse.env only, so that no answer can change the meaning of another file.
 */
export function gatewayFiles(plan: GatewayPlan, token: string): ReadonlyMap<string, NewFile> {
  const { database, login, target, host } = plan
  const setup = targetSetup(target.kind, {
    hasCertificate: target.certificate !== undefined,
    hasSecret: target.secret !== undefined,
  })
  const made = renewWebhookTls(undefined, [host], new Date())
  const secretFile = (name: string, key: string, text: string): [string, NewFile] => [
    `config/secrets/${name}/${key}`,
    { text: `${text}\n`, secret: true },
  ]
  return new Map<string, NewFile>([
    [
      '.gitignore',
      {
        text: '# Secrets and data stay out of version control.\n/gatehouse.env\n/config/secrets/\n/tls/\n/data/\n/audit/\n',
      },
    ],
    ['gatehouse.env', { text: environmentText(database), secret: true }],
    ['config/values.yaml', { text: valuesYaml(plan) }],
    ['config/authentication.yaml', { text: authenticationYaml(login) }],
    ['config/portal.yaml', { text: portalYaml(login.kind) }],
    [
      'config/scim.yaml',
      { text: scimYaml(setup, login.kind === 'okta' || login.kind === 'entra' ? login.kind : undefined) },
    ],
    ...(setup.yaml === undefined ? [] : [['config/target.yaml', { text: setup.yaml }] as [string, NewFile]]),
    ['config/workflows.yaml', { text: workflowsYaml(setup) }],
    ['config/audit.yaml', { text: auditYaml }],
    secretFile('scim', 'token', `sha256:${hash('sha256', token, 'hex')}`),
    ...(target.secret === undefined ? [] : [secretFile(targetSecret.name, targetSecret.key, target.secret)]),
    ...(login.kind === 'passwords' || login.clientSecret === undefined
      ? []
      : [secretFile('login', 'client-secret', login.clientSecret)]),
    ...(target.certificate === undefined
      ? []
      : [[`config/${targetCertificate}`, { text: target.certificate }] as [string, NewFile]]),
    ...(target.dialect === undefined
      ? []
      : [['target-schema.sql', { text: targetSchema(target.dialect) }] as [string, NewFile]]),
    ...(target.kind === 'ldap'
      ? [
          ['target-schema.ldif', { text: ldapSchema() }] as [string, NewFile],
          ['target-entries.ldif', { text: ldapEntries(target.values['TARGET_BASE'] ?? '') }] as [string, NewFile],
        ]
      : []),
    ['tls/tls.crt', { text: made.server.certificate }],
    ['tls/tls.key', { text: made.server.privateKey, secret: true }],
    ['tls/ca.crt', { text: authoritiesOf(made) }],
  ])
}

/** For `. ./gatehouse.env` in a shell, and for EnvironmentFile= of systemd. */
function environmentText(database: string | undefined): string {
  const key = (): string => randomBytes(32).toString('base64')
  return `# Secrets of the gateway, as environment variables. Keep a copy in a safe place: what they encrypt is lost with them.
# Load it in a shell of this folder with: set -a; . ./gatehouse.env; set +a
# Encrypts the secrets in the database.
GATEHOUSE_SECRET_KEY=${key()}
# Seals the audit.
GATEHOUSE_AUDIT_KEY=${key()}
${database === undefined ? '' : `# The database.\nGATEHOUSE_DATABASE='${database}'\n`}`
}

function valuesYaml({ host, origin, target, login }: GatewayPlan): string {
  const values: Record<string, string> = {
    GATEHOUSE_URL: origin,
    GATEHOUSE_HOST: host,
    ...target.values,
    ...(login.kind === 'passwords' ? {} : { LOGIN_ISSUER: login.issuer, LOGIN_CLIENT_ID: login.clientId }),
  }
  return `# Values for #[NAME] in the other files. A variable of the environment with the same name goes first.
${stringify(values, { lineWidth: 0 })}`
}

const auditYaml = `# Anchors show when an old copy of the database replaces the audit, or its end is cut off. This file is on the machine of the gateway:
# before you rely on it, send anchors to a place that the administrators of this machine can't change, such as a syslog receiver
# (className: auditSinks.Syslog) or write-once storage. See docs/guides/audit.md.
apiVersion: openunison.tremolo.io/v1
kind: AuditAnchor
metadata:
  name: anchors
spec:
  className: auditSinks.File
  params:
    # Relative to the data folder.
    file: ../audit/anchors.jsonl
`

const directory = `apiVersion: openunison.tremolo.io/v1
kind: DirectoryInsert
metadata:
  name: people
spec:
  className: directory.Database
  suffix: ou=people,o=Tremolo
`

function authenticationYaml(login: GatewayPlan['login']): string {
  if (login.kind === 'passwords') return passwordsYaml
  // A user can't choose the login at Okta and Entra ID; elsewhere, only a verified mail address is safe.
  const lookup = login.kind === 'oidc' ? '(mail=${email})' : '(uid=${preferred_username})'
  const why =
    login.kind === 'oidc'
      ? 'Links only mail addresses that the issuer has verified (email_verified: true).'
      : 'The login at the provider is the login here. Users must not be able to change it at the provider.'
  const secret = `
      secretParams:
        - name: secretid
          secretName: login
          secretKey: client-secret`
  return `# Users log in at an outside issuer, and must be in the embedded directory: "gatehouse user add" and SCIM add them.
# Register this address at the issuer: #[GATEHOUSE_URL]/auth/oidc
${directory}---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata:
  name: oidc
spec:
  className: auth.OpenIDConnect
  uri: /auth/oidc
---
# Require a second factor at the issuer: here, its word is taken for it.
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: login
spec:
  level: 20
  root: o=Tremolo
  authMechs:
    - name: oidc
      required: required
      params:
        issuer: "#[LOGIN_ISSUER]"
        clientid: "#[LOGIN_CLIENT_ID]"
        scope: openid email profile
        linkToDirectory: "true"
        # ${why}
        lookupFilter: ${lookup}
        noMatchOU: outside
        uidAttr: sub${login.clientSecret === undefined ? '' : secret}
`
}

const passwordLink = `  root: o=Tremolo
  # Five wrong passwords lock an account for 15 minutes.
  compliance:
    enabled: true
    maxFailedAttempts: 5
    maxLockoutTime: 900000
  authMechs:
    - name: login-form
      required: required
      params:
        uidAttr: uid
`

const passwordsYaml = `# Users are in the embedded directory. "gatehouse user add" adds them, "gatehouse user passwd" sets their passwords.
${directory}---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata:
  name: login-form
spec:
  className: auth.FormLogin
  uri: /auth/formLogin
---
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationMechanism
metadata:
  name: totp
spec:
  className: auth.Totp
  uri: /auth/totp
---
# For setting up a second factor, and nothing else: its level is lower than that of every page.
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: password
spec:
  level: 10
${passwordLink}---
# A password and the code of an authenticator app, which users set up at their first login.
apiVersion: openunison.tremolo.io/v1
kind: AuthenticationChain
metadata:
  name: login
spec:
  level: 20
${passwordLink}    - name: totp
      required: required
      params:
        issuer: "#[GATEHOUSE_HOST]"
        enrol: "true"
`

const portalUrl = (uri: string, filter: string): string => `    - hosts: ["#[GATEHOUSE_HOST]"]
      uri: ${uri}
      authChain: login
      azRules:
        - scope: dn
          constraint: ou=people,o=Tremolo
      filterChain:
${filter}
`

function portalYaml(login: GatewayPlan['login']['kind']): string {
  const isLocal = login === 'passwords'
  return `# The portal at /portal and its APIs, which share one session. The cookie is Secure, HttpOnly and SameSite=Lax by default.
apiVersion: openunison.tremolo.io/v2
kind: Application
metadata:
  name: portal
spec:
  azTimeoutMillis: 3000
  isApp: true
  cookieConfig:
    sessionCookieName: portal
    timeout: 900
    logoutURI: /portal/logout
  urls:
${portalUrl(
  '/portal',
  `        - className: filters.Portal
          params:
            main: /portal/main${isLocal ? '\n            account: /portal/account' : ''}`,
)}${portalUrl(
  '/portal/main',
  `        - className: filters.Main
          params:
            displayNameAttribute: displayName
            frontPage.title: Welcome
            frontPage.text: Your links, requests and approvals.
            canEditUser: "true"
            workflowName: save-profile
            uidAttributeName: uid
            showPortalOrgs: "false"
            logoutURL: /portal/logout
            warnMinutesLeft: "5"
            attributeNames: [uid, displayName, mail]
            uid.displayName: Login
            uid.readOnly: "true"
            displayName.displayName: Name
            displayName.required: "true"
            mail.displayName: Mail
            mail.readOnly: "true"
            requireReason: "true"
            approvalAttributeNames: [displayName, mail]
            approvals.displayName: Name
            approvals.mail: Mail
            # Members of this group see the console; operators can also change what it shows.
            administrators: group;cn=administrators,ou=groups,ou=people,o=Tremolo
            operators: group;cn=administrators,ou=groups,ou=people,o=Tremolo`,
)}${
  isLocal
    ? portalUrl(
        '/portal/account',
        `        - className: filters.Account
          params:
            stepUpChain: login
            enrolChain: password
            homeURL: /portal
            issuer: "#[GATEHOUSE_HOST]"
            rpName: "#[GATEHOUSE_HOST]"
            changePassword: "true"`,
      )
    : ''
}---
# The users of the directory "people", for workflows that change them.
apiVersion: openunison.tremolo.io/v1
kind: Target
metadata:
  name: people
spec:
  className: targets.Database
  params: []
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata:
  name: save-profile
spec:
  label: Save a profile
  description: Saves the name that users enter in their profile.
  inList: false
  orgId: internal
  tasks: |-
    - taskType: provision
      sync: true
      target: people
      attributes: [displayName]
`
}
