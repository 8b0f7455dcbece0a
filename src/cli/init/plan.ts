import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { fileProblem, messageOf, WrongUsage } from '#cli/command-line/command-line.ts'
import { plainConnection } from '#cli/production/serving-checks.ts'
import { Dn } from '#identity/dn.ts'
import { isLoopbackHost } from '#kernel/address.ts'
import { readSmallFileSync } from '#kernel/small-file.ts'
import { readPostgresAddress } from '#protocols/sql/postgres-address.ts'
import type { Questions } from './questions.ts'
import { type TargetKind, targetKinds } from './target.ts'

export const loginKinds = ['passwords', 'oidc', 'okta', 'entra'] as const

type LoginPlan =
  | { readonly kind: 'passwords' }
  | {
      readonly kind: 'oidc' | 'okta' | 'entra'
      readonly issuer: string
      readonly clientId: string
      /** Undefined for a public client. */
      readonly clientSecret: string | undefined
      /** PEM: the authority of the issuer's server, if machines don't trust it. */
      readonly authority: string | undefined
    }

interface TargetPlan {
  readonly kind: TargetKind
  /** Of values.yaml. */
  readonly values: Readonly<Record<string, string>>
  readonly secret?: string | undefined
  /** PEM. */
  readonly certificate?: string | undefined
  /** Of an SQL target. */
  readonly dialect?: 'sqlite' | 'postgres' | undefined
}

/** What the operator decided about a new gateway. */
export interface GatewayPlan {
  /** The public host name, without a port. */
  readonly host: string
  readonly origin: string
  /** Empty for the port of https. */
  readonly port: string
  /** For a browser on this machine, over http. */
  readonly isLocal: boolean
  /** The address of PostgreSQL; undefined for the embedded SQLite. */
  readonly database: string | undefined
  readonly target: TargetPlan
  readonly login: LoginPlan
  /** The login of the first administrator; for `oidc` the mail address. */
  readonly administrator: string
}

export const planOptions = {
  domain: { value: 'HOST[:PORT]', about: 'Public host name of the gateway, such as idm.example.com' },
  local: { about: 'Only for this machine: http://localhost:8080, which a browser opens without a certificate' },
  database: { value: 'sqlite|URL', about: 'sqlite (default), or the address of a PostgreSQL database' },
  target: { value: 'KIND', about: `Where SCIM clients create accounts: ${targetKinds.join(', ')} (default none)` },
  'target-url': { value: 'URL', about: 'Address of the target: https:, ldaps:, postgres:, or sqlite: and a file' },
  'target-base': { value: 'DN', about: 'ldap: base of the directory, such as dc=example,dc=com' },
  'target-user': { value: 'DN', about: 'ldap: who Gatehouse binds as (default cn=admin and the base)' },
  'target-namespace': { value: 'NAME', about: 'kubernetes: namespace of the users (default gatehouse)' },
  'target-secret-file': { value: 'FILE', about: 'File with the password or token for the target' },
  'target-ca': { value: 'FILE', about: "File with the certificate authority of the target's server, PEM" },
  login: { value: 'KIND', about: `How users log in: ${loginKinds.join(', ')} (default passwords)` },
  issuer: {
    value: 'URL',
    about: 'oidc: the issuer; okta: the domain, such as example.okta.com; entra: the tenant id',
  },
  'issuer-ca': { value: 'FILE', about: "File with the certificate authority of the issuer's server, PEM" },
  'client-id': { value: 'ID', about: 'The client id that the issuer gave' },
  'client-secret-file': { value: 'FILE', about: 'File with the client secret (default a public client)' },
  administrator: {
    value: 'LOGIN',
    about: 'Login of the first administrator (default admin); for oidc the mail address',
  },
} as const

/** Throws WrongUsage that names the option, or an Error if the operator leaves the questions. */
export async function readPlan(questions: Questions, isLocal: boolean): Promise<GatewayPlan> {
  const { host, port } = isLocal ? readLocal(questions.given('domain')) : await readPublic(questions)
  const database = await questions.ask({
    option: 'database',
    question: 'Database: sqlite, or the address of PostgreSQL (postgres://…)',
    fallback: 'sqlite',
    read: readDatabase,
  })
  const target = await readTarget(questions)
  const login = await readLogin(questions)
  const administrator = await questions.ask({
    option: 'administrator',
    question: login.kind === 'oidc' ? 'Mail address of the first administrator' : 'Login of the first administrator',
    ...(login.kind === 'passwords' ? { fallback: 'admin' } : {}),
    read: (text) => {
      if (!/^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$/.test(text)) {
        throw new Error('use letters, digits and . _ @ + -, at most 100 characters')
      }
      return text
    },
  })
  const origin = `${isLocal ? 'http' : 'https'}://${host}${port === '' ? '' : `:${port}`}`
  return { host, port, isLocal, origin, database, target, login, administrator }
}

const readPublic = (questions: Questions): Promise<{ host: string; port: string }> =>
  questions.ask({
    option: 'domain',
    question: 'Public host name of the gateway, such as idm.example.com',
    read: readDomain,
  })

/** Throws WrongUsage for a name that others could reach: without TLS, passwords would be sent in the clear. */
function readLocal(given = 'localhost:8080'): { host: string; port: string } {
  const [, port = '8080'] = /^localhost(?::([1-9]\d{0,4}))?$/.exec(given) ?? []
  if (!/^localhost(?::\d+)?$/.test(given) || Number(port) > 65_535) {
    throw new WrongUsage(
      `--domain: "${given}" can't be used with --local, which serves http://localhost without TLS; leave out --local for a host name that others reach`,
    )
  }
  return { host: 'localhost', port }
}

async function readTarget(questions: Questions): Promise<TargetPlan> {
  const kind = await questions.ask({
    option: 'target',
    question: `Where SCIM clients create accounts: ${targetKinds.join(', ')}`,
    fallback: 'none',
    read: (text) => oneOf(targetKinds, text),
  })
  const unused = (names: readonly string[]): void => questions.refuse(names, `--target ${kind}`)
  if (kind === 'none') {
    unused(['target-url', 'target-base', 'target-user', 'target-namespace', 'target-secret-file', 'target-ca'])
    return { kind, values: {} }
  }
  if (kind !== 'ldap') unused(['target-base', 'target-user'])
  if (kind !== 'kubernetes') unused(['target-namespace'])
  if (kind === 'sql') {
    // The address contains the password, so all of it is the secret.
    unused(['target-secret-file', 'target-ca'])
    const { url, dialect } = await questions.ask({
      option: 'target-url',
      question: "Address of the application's database: postgres://…, or sqlite: and a file",
      read: readSqlUrl,
    })
    return { kind, values: {}, secret: url, dialect }
  }
  const protocol = kind === 'ldap' ? 'ldap' : 'http'
  const url = await questions.ask({
    option: 'target-url',
    question: targetQuestions[kind],
    read: (text) => readTargetUrl(text, protocol),
  })
  const values: Record<string, string> = { TARGET_URL: url }
  if (kind === 'ldap') {
    const base = await questions.ask({
      option: 'target-base',
      question: 'Base of the directory, such as dc=example,dc=com',
      read: readDn,
    })
    values['TARGET_BASE'] = base
    values['TARGET_USER'] = await questions.ask({
      option: 'target-user',
      question: 'Who Gatehouse binds as',
      fallback: `cn=admin,${base}`,
      read: readDn,
    })
  }
  if (kind === 'kubernetes') {
    values['TARGET_NAMESPACE'] = await questions.ask({
      option: 'target-namespace',
      question: 'Namespace of the users',
      fallback: 'gatehouse',
      read: (text) => {
        if (/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(text)) return text
        throw new Error(`"${text}" is not a valid namespace name`)
      },
    })
  }
  const secret = await questions.askSecret({
    option: 'target-secret-file',
    ...(kind === 'ldap'
      ? { question: 'Password of that entry' }
      : { question: 'Token for the target', isToken: true as const }),
  })
  const certificate = questions.given('target-ca')
  return {
    kind,
    values,
    secret,
    certificate: certificate === undefined ? undefined : readCertificate('target-ca', certificate),
  }
}

const targetQuestions = {
  ldap: 'Address of the LDAP server, such as ldaps://ldap.example.com',
  scim: 'Address of the SCIM server, above /Users',
  kubernetes: 'Address of the API server, such as https://10.0.0.1:6443',
  webhook: "Address of the application's API",
} as const

async function readLogin(questions: Questions): Promise<LoginPlan> {
  const kind = await questions.ask({
    option: 'login',
    question: `How users log in: ${loginKinds.join(', ')}`,
    fallback: 'passwords',
    read: (text) => oneOf(loginKinds, text),
  })
  if (kind === 'passwords') {
    questions.refuse(['issuer', 'issuer-ca', 'client-id', 'client-secret-file'], '--login passwords')
    return { kind }
  }
  const issuer = await questions.ask({
    option: 'issuer',
    question: {
      oidc: 'Issuer, such as https://login.example.com',
      okta: 'Okta domain, such as example.okta.com',
      entra: 'Tenant id',
    }[kind],
    read: (text) => readIssuer(text, kind),
  })
  const clientId = await questions.ask({ option: 'client-id', question: 'Client id', read: readText })
  const clientSecret = await questions.askSecret({
    option: 'client-secret-file',
    question: 'Client secret (empty for a public client)',
    optional: true,
  })
  const authority = questions.given('issuer-ca')
  return {
    kind,
    issuer,
    clientId,
    clientSecret,
    authority: authority === undefined ? undefined : readCertificate('issuer-ca', authority),
  }
}

function oneOf<T extends string>(known: readonly T[], text: string): T {
  const found = known.find((one) => one === text)
  if (found === undefined) throw new Error(`must be one of ${known.join(', ')}, not "${text}"`)
  return found
}

/** A value of values.yaml. `#[` and `${` would be replaced when the configuration is read or used. */
function readText(text: string): string {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)) throw new Error('must not contain line breaks or control characters')
  if (/[#$][[{]/.test(text)) throw new Error('must not contain "#[" or "${", which mean something in the configuration')
  if (text.length > 2000) throw new Error('must have at most 2000 characters')
  if (text === '') throw new Error('must not be empty')
  return text
}

function readDomain(text: string): { host: string; port: string } {
  const example = 'use a host name such as idm.example.com, or idm.example.com:8443'
  const url = /^[A-Za-z0-9.:-]+$/.test(text) ? URL.parse(`https://${text}`) : null
  if (url === null || url.hostname.length > 253 || !/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(url.hostname)) {
    throw new Error(`"${text}" is not a host name; ${example}`)
  }
  if (isLoopbackHost(url.hostname) || url.hostname === '0.0.0.0') {
    throw new Error(`"${text}" is this machine only; ${example}. To try Gatehouse here, add --local instead`)
  }
  if (isIP(url.hostname) === 0 && !url.hostname.includes('.')) throw new Error(`"${text}" has no domain; ${example}`)
  return { host: url.hostname, port: url.port }
}

function readDatabase(text: string): string | undefined {
  if (text === 'sqlite') return undefined
  return readPostgresUrl(text, 'must be sqlite, or begin with postgres://')
}

/** The address without characters that a shell would interpret. Errors don't show it, since it has a password. */
function readPostgresUrl(text: string, otherwise: string): string {
  readText(text)
  if (!/^postgres(?:ql)?:\/\//.test(text)) throw new Error(otherwise)
  readPostgresAddress(text)
  const problem = plainConnection(text)
  if (problem !== undefined) throw new Error(`${problem}. Add ?sslmode=verify-full to the address`)
  return text.replace(/["`\\\s<>]/g, (character) => encodeURIComponent(character)).replaceAll("'", '%27')
}

function readSqlUrl(text: string): { url: string; dialect: 'sqlite' | 'postgres' } {
  const [, file] = /^sqlite:(.+)$/.exec(text) ?? []
  if (file !== undefined) return { url: `sqlite:${resolve(readText(file))}`, dialect: 'sqlite' }
  return { url: readPostgresUrl(text, 'must begin with postgres:// or sqlite:'), dialect: 'postgres' }
}

/** A password may be sent there, so only encrypted connections and this machine are accepted. */
function readTargetUrl(text: string, protocol: 'http' | 'ldap'): string {
  readText(text)
  const url = URL.parse(text)
  const isKnown = url?.protocol === `${protocol}s:` || url?.protocol === `${protocol}:`
  if (url === null || !isKnown || url.hostname === '') throw new Error(`must begin with ${protocol}s:// and a host`)
  if (url.username !== '' || url.password !== '') throw new Error('must not contain a user or password')
  if (url.protocol === `${protocol}:` && !isLoopbackHost(url.hostname)) {
    throw new Error(`must begin with ${protocol}s://, because a password or token is sent there`)
  }
  return text
}

function readDn(text: string): string {
  readText(text)
  try {
    Dn.parse(text)
    return text
  } catch (error) {
    throw new Error(`"${text}" is not a distinguished name such as dc=example,dc=com: ${messageOf(error)}`)
  }
}

function readIssuer(text: string, kind: 'oidc' | 'okta' | 'entra'): string {
  readText(text)
  if (kind === 'entra' && /^[0-9a-zA-Z.-]{1,100}$/.test(text)) return `https://login.microsoftonline.com/${text}/v2.0`
  const url = URL.parse(kind === 'okta' && !text.includes('://') ? `https://${text}` : text)
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw new Error(`"${text}" is not an issuer: use its address, which begins with https://`)
  }
  // An issuer is compared as text, and has no slash at the end unless it was written with one.
  return url.pathname === '/' && !text.endsWith('/') ? url.origin : url.toString()
}

/** Throws WrongUsage. */
function readCertificate(option: string, file: string): string {
  let text: string
  try {
    text = readSmallFileSync(file)
  } catch (error) {
    throw new WrongUsage(`--${option}: ${fileProblem(file, error)}`)
  }
  try {
    new X509Certificate(text)
    return text
  } catch {
    throw new WrongUsage(`--${option}: ${file} has no certificate in PEM form`)
  }
}
