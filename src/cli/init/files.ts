import { hash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { fillTemplate } from '#kernel/text/fill-template.ts'
import { authoritiesOf, renewWebhookTls } from '#protocols/admission/webhook-tls.ts'
import { quoted } from './folder-commands.ts'
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
export function gatewayFiles(plan: GatewayPlan, token: string, folder: string): ReadonlyMap<string, NewFile> {
  const { database, login, target, host, origin, isLocal } = plan
  const authority = login.kind === 'passwords' ? undefined : login.authority
  const setup = targetSetup(target.kind, {
    hasCertificate: target.certificate !== undefined,
    hasSecret: target.secret !== undefined,
  })
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
    [
      'gatehouse.env',
      {
        text: environmentText(database, authority === undefined ? undefined : join(folder, issuerAuthority)),
        secret: true,
      },
    ],
    ['config/values.yaml', { text: valuesYaml(plan) }],
    ['config/authentication.yaml', { text: authenticationYaml(login) }],
    ['config/portal.yaml', { text: portalYaml(login.kind, isLocal) }],
    [
      'config/scim.yaml',
      { text: scimYaml(setup, login.kind === 'okta' || login.kind === 'entra' ? login.kind : undefined) },
    ],
    ...(setup.yaml === undefined ? [] : [['config/target.yaml', { text: setup.yaml }] as [string, NewFile]]),
    ['config/workflows.yaml', { text: workflowsYaml(setup) }],
    ['config/welcome.txt', { text: `Open the portal: ${origin}/portal\n` }],
    ['config/audit.yaml', { text: fillTemplate(new URL('./templates/audit.yaml', import.meta.url), {}) }],
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
    ...(authority === undefined ? [] : [[issuerAuthority, { text: authority }] as [string, NewFile]]),
    ...(isLocal ? [] : tlsFiles(host)),
  ])
}

/** A file of its own, since that of the target is a part of the configuration. */
const issuerAuthority = 'tls/issuer-ca.crt'

/** For a first start. */
function tlsFiles(host: string): [string, NewFile][] {
  const made = renewWebhookTls(undefined, [host], new Date())
  return [
    ['tls/tls.crt', { text: made.server.certificate }],
    ['tls/tls.key', { text: made.server.privateKey, secret: true }],
    ['tls/ca.crt', { text: authoritiesOf(made) }],
  ]
}

/** For `. ./gatehouse.env` in a shell, and for EnvironmentFile= of systemd. */
function environmentText(database: string | undefined, authority: string | undefined): string {
  const key = (): string => randomBytes(32).toString('base64')
  return `# Secrets of the gateway, as environment variables. Keep a copy in a safe place: what they encrypt is lost with them.
# Load it in a shell of this folder with: set -a; . ./gatehouse.env; set +a
# Encrypts the secrets in the database.
GATEHOUSE_SECRET_KEY=${key()}
# Seals the audit.
GATEHOUSE_AUDIT_KEY=${key()}
${database === undefined ? '' : `# The database.\nGATEHOUSE_DATABASE='${database}'\n`}${authority === undefined ? '' : `# Trusts the authority of the issuer, besides the public ones. Read when a process starts.\nNODE_EXTRA_CA_CERTS=${quoted(authority)}\n`}`
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

function authenticationYaml(login: GatewayPlan['login']): string {
  if (login.kind === 'passwords') {
    return fillTemplate(new URL('./templates/authentication-passwords.yaml', import.meta.url), {})
  }
  const secret = ['secretParams:', '  - name: secretid', '    secretName: login', '    secretKey: client-secret']
  // A user can't choose the login at Okta and Entra ID; elsewhere, only a verified mail address is safe.
  const isLoginSafe = login.kind !== 'oidc'
  return fillTemplate(new URL('./templates/authentication-issuer.yaml', import.meta.url), {
    lookup: isLoginSafe ? '(uid=${preferred_username})' : '(mail=${email})',
    why: isLoginSafe
      ? 'The login at the provider is the login here. Users must not be able to change it at the provider.'
      : 'Links only mail addresses that the issuer has verified (email_verified: true).',
    secret: login.clientSecret === undefined ? [] : secret,
  })
}

/** Only users with a password here have a page for their account. */
function portalYaml(login: GatewayPlan['login']['kind'], isLocal: boolean): string {
  const isOwn = login === 'passwords'
  const accountUrl = fillTemplate(new URL('./templates/portal-account.yaml', import.meta.url), {})
  return fillTemplate(new URL('./templates/portal.yaml', import.meta.url), {
    cookies: isLocal ? ['# Only over http on this machine: a public address needs TLS.', 'secure: false'] : [],
    account: isOwn ? ['account: /portal/account'] : [],
    accountUrl: isOwn ? accountUrl.trimEnd().split('\n') : [],
  })
}
