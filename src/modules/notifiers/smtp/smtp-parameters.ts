import { resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import { choice, flag, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'
import { isMailAddress } from '#sdk/notifier/mail.ts'

const securities = ['none', 'starttls', 'tls'] as const
type Security = (typeof securities)[number]

const usualPorts: Readonly<Record<Security, number>> = { none: 25, starttls: 587, tls: 465 }

export const parameters = {
  host: text({ about: 'The mail server.', required: true }),
  port: wholeNumber({
    about: 'Its port; by `security`, 25, 587 or 465 when absent.',
    fallback: 0,
    min: 1,
    max: 65_535,
  }),
  security: choice(securities, {
    about: '`starttls` (the connection must become encrypted), `tls` (from the start) or `none`.',
    fallback: 'starttls',
  }),
  tls: flag({ about: 'The older form: `"true"` is `starttls`, `"false"` is `none`.' }),
  caFile: text({ about: 'A PEM file with the certificate authority of the server; the system’s own when absent.' }),
  certificate: text({ about: 'The certificate authority itself, as PEM text.' }),
  user: text({ about: 'The user name for the mail server; no login when absent.' }),
  password: text({ about: 'The password of `user`.', secret: true }),
  from: parsed('mail address', parseSender, {
    about: 'The sender: an address, or `Name <address>`.',
    required: true,
  }),
  localHost: text({ about: 'The name that Gatehouse gives itself in the greeting; the machine’s own when absent.' }),
  connections: wholeNumber({
    about: 'Maximum number of open connections.',
    fallback: 2,
    min: 1,
    max: 20,
  }),
  connectTimeoutSeconds: wholeNumber({
    about: 'Time limit to connect to the server and receive its greeting.',
    fallback: 10,
    min: 1,
    max: 60,
  }),
  sendTimeoutSeconds: wholeNumber({
    about: 'How long one attempt may take in all.',
    fallback: 60,
    min: 1,
    max: 120,
  }),
  subject: text({ about: 'Accepted and not used: every mail has a subject.' }),
  useSOCKSProxy: flag({ about: 'Not supported; an error when `"true"`.' }),
  SOCKSProxyHost: text({ about: 'Accepted and not used.' }),
  SOCKSProxyPort: text({ about: 'Accepted and not used.' }),
} satisfies ParameterTable

export interface Sender {
  readonly name: string
  readonly address: string
}

export interface SmtpConfig {
  readonly host: string
  readonly port: number
  readonly security: Security
  readonly authority: { readonly file: string } | { readonly pem: string } | undefined
  readonly login: { readonly user: string; readonly pass: string } | undefined
  readonly from: Sender
  readonly localHost: string | undefined
  readonly connections: number
  readonly connectMillis: number
  readonly sendMillis: number
}

export function parseSmtp(params: Params, issues: Issues, context: ParseContext): SmtpConfig {
  const given = readParameters(parameters, params, issues, context)
  const isSet = (name: keyof typeof parameters) => params.values(name).some((value) => value !== '')
  if (isSet('security') && isSet('tls')) {
    issues.error(params.pathOf('tls'), '"tls" is the older form of "security"; remove one')
  }
  if (isSet('caFile') && isSet('certificate')) {
    issues.error(params.pathOf('certificate'), '"certificate" cannot be given beside "caFile"')
  }
  if (given.useSOCKSProxy) issues.error(params.pathOf('useSOCKSProxy'), 'a SOCKS proxy is not supported')
  const legacy: Security = given.tls ? 'starttls' : 'none'
  const security = isSet('tls') && !isSet('security') ? legacy : given.security
  if (given.user === undefined && given.password !== undefined) {
    issues.error(params.pathOf('user'), '"user" is required where there is a password')
  }
  if (given.user !== undefined && given.password === undefined) {
    issues.error(params.pathOf('password'), '"password" is required where there is a user')
  }
  if (given.user !== undefined && security === 'none') {
    issues.warning(params.pathOf('user'), 'without encryption the password can be read on its way to the server')
  }
  return {
    host: given.host,
    port: given.port === 0 ? usualPorts[security] : given.port,
    security,
    authority: readAuthority(given.caFile, given.certificate, context),
    login: given.user === undefined ? undefined : { user: given.user, pass: given.password ?? '' },
    from: given.from ?? { name: '', address: '' },
    localHost: given.localHost,
    connections: given.connections,
    connectMillis: given.connectTimeoutSeconds * 1000,
    sendMillis: given.sendTimeoutSeconds * 1000,
  }
}

function readAuthority(file: string | undefined, pem: string | undefined, { folder }: ParseContext) {
  if (file !== undefined) return { file: resolve(folder, file) }
  return pem === undefined ? undefined : { pem }
}

function parseSender(written: string): Sender {
  const [, name = '', bracketed] = /^([^<>\p{Cc}]{0,200})<([^<>]+)>$/u.exec(written) ?? []
  const address = (bracketed ?? written).trim()
  if (!isMailAddress(address)) throw new Error('must be an address, or a name followed by an address in <>')
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address }
}
