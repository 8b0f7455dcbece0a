import { stringify } from 'yaml'
import {
  latestTokensSlot,
  restoreRequest,
  restoreTokens,
  type SessionTokens,
  storeTokens,
  tokensSlot,
} from '#features/issuer/filter/session-tokens.ts'
import { kubectlTokenKeys as keys } from '#features/portal/contract/constants.ts'
import type { TokenState, TokenUser } from '#features/portal/contract/token.ts'
import type { PortalHost } from '#features/portal/host.ts'
import type { Attributes } from '#identity/attributes.ts'
import type { Subject } from '#identity/subject.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'

export interface KubectlSettings {
  /** The issuer and client of the tokens; the latest tokens of the login if undefined. */
  readonly from: { readonly idp: string; readonly trust: string } | undefined
  /** Whether a session with a refresh token can get new tokens. */
  readonly renews: boolean
  readonly uidAttribute: string | undefined
  readonly usage: string | undefined
  readonly command: ShellTemplate | undefined
  readonly windowsCommand: ShellTemplate | undefined
  readonly loginPlugin: string | undefined
  readonly clusterCertificate: string | undefined
  readonly ownCertificate: string | undefined
  readonly server: string | undefined
  readonly cluster: string
}

/** The names of `$name$` in a command. */
export const commandValues = [
  'user_id',
  'token.claims.issuer',
  'token.trustName',
  'token.encodedIdJSON',
  'token.refreshToken',
  'k8s_newline_cert',
  'k8s_newline_cert_win',
  'k8s_b64_cert',
  'ou_newline_cert',
  'ou_newline_cert_win',
  'ou_b64_cert',
] as const

/** The tokens of the login, and the commands that use them. */
export function kubectlLoader(settings: KubectlSettings, host: PortalHost): TokenLoader {
  return {
    load: async (exchange) =>
      exchange.session === undefined
        ? await issueTo(exchange, settings, host)
        : await show(exchange, await kept(exchange, settings), settings, host),
    renew: async (exchange) => {
      const { session, subject, request } = exchange
      const before = await kept(exchange, settings)
      const state = before && (await stateOf(before, settings, host))
      if (before === undefined || state?.renewable !== true || session === undefined || host.issuers === undefined) {
        throw new GatewayError('ACCESS_DENIED', 'these tokens are not renewed within a session', {
          publicText: 'To get a new token, log out and log in again.',
        })
      }
      const { idp, trust, origin, companion } = before
      const made = await host.issuers.mint({
        issuer: idp,
        trust,
        subject,
        sessionId: companion ?? session.id,
        authenticated: session.authenticated,
        how: 'token page',
        request,
        origin,
      })
      if (made === undefined) throw new GatewayError('ACCESS_DENIED', `no rule of "${idp}" lets "${subject.uid}"`)
      const tokens = {
        ...made,
        ...{ idp, trust },
        ...(origin === undefined ? {} : { origin }),
        ...(companion === undefined ? {} : { companion }),
      }
      await session.write(tokensSlot(idp, trust), storeTokens(tokens))
      return show(exchange, tokens, settings, host)
    },
  }
}

/** Tokens for a program that has no session, with one of their own. All that is configured, or nothing. */
async function issueTo(exchange: Exchange, settings: KubectlSettings, host: PortalHost): Promise<LoadedTokens> {
  const { sessionless, subject, request } = exchange
  const slots = sessionless?.slots ?? {}
  const requested = restoreRequest(slots[slotName(settings) ?? String(slots[latestTokensSlot])])
  if (sessionless === undefined || requested === undefined || host.issuers === undefined) {
    throw new GatewayError('ACCESS_DENIED', 'the chain issues no tokens to callers without a session', {
      publicText: 'No tokens are issued here to a caller without a session.',
    })
  }
  const { idp, trust, origin } = requested
  const companion = host.issuers.companion(idp)
  const authenticated = loginTime(subject, host.clock())
  const call = { issuer: idp, trust, subject, sessionId: companion.id, authenticated, request, origin }
  const made = await host.issuers.mint({ ...call, how: 'token page' })
  if (made === undefined) throw new GatewayError('ACCESS_DENIED', `no rule of "${idp}" lets "${subject.uid}"`)
  await sessionless.startCompanion(companion, authenticated)
  const shown = await show(exchange, { ...made, ...requested, companion: companion.id }, settings, host)
  const { command, windowsCommand } = settings
  const missing = [
    [keys.refreshToken, true],
    [keys.command, command],
    [keys.windowsCommand, windowsCommand],
  ].find(([key, wanted]) => wanted !== undefined && shown.token[String(key)] === undefined)
  if (missing !== undefined) throw new GatewayError('INTERNAL', `"${missing[0]}" could not be made`)
  return shown
}

/** When the user of an ID token logged in; now where the token does not say. */
function loginTime({ attributes }: Subject, now: Date): Date {
  const seconds = Number(attributes.first('auth_time'))
  return seconds > 0 && seconds * 1000 < now.getTime() ? new Date(seconds * 1000) : now
}

const slotName = ({ from }: KubectlSettings): string | undefined =>
  from === undefined ? undefined : tokensSlot(from.idp, from.trust)

async function kept({ session }: Exchange, settings: KubectlSettings): Promise<SessionTokens | undefined> {
  if (session === undefined) return undefined
  const slot = slotName(settings) ?? (await session.read(latestTokensSlot))
  return typeof slot === 'string' ? restoreTokens(await session.read(slot)) : undefined
}

async function show(
  { subject }: Exchange,
  tokens: SessionTokens | undefined,
  settings: KubectlSettings,
  host: PortalHost,
): Promise<LoadedTokens> {
  const { usage, loginPlugin, uidAttribute } = settings
  const clusterCertificate = await certificate(settings.clusterCertificate, host)
  const ownCertificate = await certificate(settings.ownCertificate, host)
  const around = {
    [keys.usage]: usage,
    [keys.loginPlugin]: loginPlugin,
    [keys.clusterCertificate]: clusterCertificate,
    [keys.ownCertificate]: ownCertificate,
  }
  if (tokens === undefined) return { token: present(around) }
  const state = await stateOf(tokens, settings, host)
  const refreshToken = state.refreshToken === 'unused' ? tokens.refreshToken : undefined
  const user = (uidAttribute === undefined ? undefined : subject.attributes.first(uidAttribute)) ?? subject.uid
  const { idToken, issuer, clientId, expires, claims } = tokens
  const values = {
    user_id: user,
    'token.claims.issuer': issuer,
    'token.trustName': clientId,
    'token.encodedIdJSON': idToken,
    'token.refreshToken': refreshToken ?? '',
    ...certificateValues('k8s', clusterCertificate),
    ...certificateValues('ou', ownCertificate),
  }
  const { command, windowsCommand } = settings
  const certificates = { cluster: clusterCertificate, issuer: ownCertificate }
  const file = kubeconfig(settings, user, { ...tokens, refreshToken }, certificates)
  return {
    token: present({
      [keys.idToken]: idToken,
      [keys.refreshToken]: refreshToken,
      [keys.command]: command?.render(values),
      [keys.windowsCommand]: windowsCommand?.render(values),
      [keys.kubeconfig]: file,
      ...around,
    }),
    expires: expires.toISOString(),
    claims,
    state,
  }
}

async function stateOf(
  tokens: SessionTokens,
  settings: KubectlSettings,
  { issuers, clock }: PortalHost,
): Promise<TokenState> {
  const { idp, expires, refreshToken, refreshExpires, companion } = tokens
  const refresh = refreshToken === undefined ? 'none' : ((await issuers?.refreshState(idp, refreshToken)) ?? 'ended')
  return {
    idToken: expires > clock() ? 'valid' : 'expired',
    refreshToken: refresh,
    ...(refreshExpires === undefined ? {} : { refreshExpires: refreshExpires.toISOString() }),
    // No one but a login starts another companion session.
    renewable: settings.renews && refresh !== 'none' && (companion === undefined || refresh !== 'ended'),
  }
}

const certificate = async (name: string | undefined, { keys: source }: PortalHost): Promise<string | undefined> =>
  name === undefined ? undefined : await source.certificate?.(name)

/** In the forms of existing commands: lines separated by `\n`, by real line breaks, and as base64. */
const certificateValues = (prefix: string, pem = ''): Record<string, string> => ({
  [`${prefix}_newline_cert`]: pem.trim().replaceAll(/\r?\n/g, String.raw`\n`),
  [`${prefix}_newline_cert_win`]: pem.trim(),
  [`${prefix}_b64_cert`]: pem === '' ? '' : base64(pem),
})

const present = (all: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  )

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A whole file for kubectl, if the server is known. A library writes the document, so names need no escaping. */
function kubeconfig(
  { cluster, server }: KubectlSettings,
  login: string,
  {
    issuer,
    clientId,
    idToken,
    refreshToken,
  }: Pick<SessionTokens, 'issuer' | 'clientId' | 'idToken'> & {
    readonly refreshToken: string | undefined
  },
  certificates: { readonly cluster: string | undefined; readonly issuer: string | undefined },
): string | undefined {
  if (server === undefined) return undefined
  const user = `${login}@${cluster}`
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(certificates.cluster === undefined ? {} : { 'certificate-authority-data': base64(certificates.cluster) }),
        },
      },
    ],
    contexts: [{ name: cluster, context: { cluster, user } }],
    'current-context': cluster,
    users: [
      {
        name: user,
        user: {
          'auth-provider': {
            name: 'oidc',
            config: {
              'idp-issuer-url': issuer,
              'client-id': clientId,
              'id-token': idToken,
              ...(refreshToken === undefined ? {} : { 'refresh-token': refreshToken }),
              ...(certificates.issuer === undefined
                ? {}
                : { 'idp-certificate-authority-data': base64(certificates.issuer) }),
            },
          },
        },
      },
    ],
  })
}

export type LoadedTokens = Omit<TokenUser, 'displayName'>

/** Loads the content of a token page. */
export interface TokenLoader {
  /** Changes nothing, except that a caller without a session gets new tokens. */
  load(exchange: Exchange): Promise<LoadedTokens>
  /** Creates and returns new tokens. Absent if there are none to create. */
  renew?(exchange: Exchange): Promise<LoadedTokens>
}

export const totpKey = 'TOTP URL'
const passwordKey = 'Temporary Password'

const textOf = (attributes: Attributes, name: string): string => attributes.values(name).join(', ')

/** Attributes of the caller, unchanged. */
export const attributeLoader = (names: readonly string[]): TokenLoader => ({
  load: async ({ subject }) => ({
    token: Object.fromEntries(
      names.flatMap((name) => {
        const value = textOf(subject.attributes, name)
        return value === '' ? [] : [[name, value]]
      }),
    ),
  }),
})

export const passwordLoader = (name: string): TokenLoader => ({
  load: async ({ subject }) => {
    const value = subject.attributes.first(name)
    return { token: value === undefined ? {} : { [passwordKey]: value } }
  },
})

/** The key of an authenticator app: Base32, or an otpauth address. */
export const totpLoader = (name: string, uidAttribute: string | undefined, issuer: string): TokenLoader => ({
  load: async ({ subject }) => {
    const key = subject.attributes.first(name)
    if (key === undefined) return { token: {} }
    if (key.startsWith('otpauth://totp/')) return { token: { [totpKey]: key } }
    const uid = uidAttribute === undefined ? subject.uid : (subject.attributes.first(uidAttribute) ?? subject.uid)
    const address = new URL(`otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(uid)}`)
    address.searchParams.set('secret', key.replaceAll(/\s/g, ''))
    address.searchParams.set('issuer', issuer)
    return { token: { [totpKey]: address.href } }
  },
})

/** The shell that runs a command. */
export type Shell = 'posix' | 'powershell'

type Quoting = 'bare' | 'single' | 'double'

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string; readonly quoting: Quoting }

/** A command with placeholders. Values keep their text and never become a part of the command. */
export interface ShellTemplate {
  readonly names: readonly string[]
  /** Undefined if a value cannot be written in that shell, such as a line break outside of quotes. */
  render(values: Readonly<Record<string, string>>): string | undefined
}

const place = /\\\$|\$([A-Za-z_][\w.]*)\$/g
const safe = /^[\w@%+=:,./-]+$/

/**
 * Reads a command in which `$name$` is a value and `\$` a dollar. Throws an Error for a command in which it
 * is unclear how the shell would read a value.
 */
export function parseShellTemplate(source: string, shell: Shell): ShellTemplate {
  const tracker = shell === 'posix' ? new PosixQuoting() : new PowerShellQuoting()
  const parts: Part[] = []
  let at = 0
  const literal = (text: string): void => {
    tracker.read(text)
    parts.push({ kind: 'text', text })
  }
  for (const match of source.matchAll(place)) {
    literal(source.slice(at, match.index))
    at = match.index + match[0].length
    const name = match[1]
    if (name === undefined) literal('$')
    else parts.push({ kind: 'value', name, quoting: tracker.quotingFor(name) })
  }
  literal(source.slice(at))
  tracker.end()
  const names = parts.flatMap((part) => (part.kind === 'value' ? [part.name] : []))
  const quote = shell === 'posix' ? quotePosix : quotePowerShell
  return {
    names: [...new Set(names)],
    render: (values) => {
      const texts = parts.map((part) =>
        part.kind === 'text' ? part.text : quote(values[part.name] ?? '', part.quoting),
      )
      return texts.includes(undefined) ? undefined : texts.join('').trim()
    },
  }
}

/** Follows quotes and `$(…)`, as far as a placeholder depends on them. */
class PosixQuoting {
  readonly #stack: Quoting[] = ['bare']
  #escaped = false
  #previous = ''

  get #now(): Quoting {
    return this.#stack.at(-1) ?? 'bare'
  }

  read(text: string): void {
    for (const character of text) {
      if (this.#escaped) this.#escaped = false
      else this.#take(character)
      this.#previous = character
    }
  }

  quotingFor(name: string): Quoting {
    if (this.#escaped || this.#previous === '$') throw new Error(`"$${name}$" follows a backslash or a dollar`)
    if (this.#stack.length > 2 || (this.#stack.length === 2 && this.#now === 'bare')) {
      throw new Error(`"$${name}$" is inside $(…), where it cannot be quoted`)
    }
    this.#previous = ''
    return this.#now
  }

  end(): void {
    if (this.#stack.length > 1) throw new Error('a quote or a bracket is not closed')
  }

  #take(character: string): void {
    const now = this.#now
    const toggle = (quoting: Quoting): void => {
      if (now === quoting) this.#stack.pop()
      else this.#stack.push(quoting)
    }
    if (now === 'single') {
      if (character === "'") toggle('single')
      return
    }
    if (character === '\\') this.#escaped = true
    else if (character === '`') throw new Error('write $(…) instead of `…`')
    else if (character === '(' && this.#previous === '$') this.#stack.push('bare')
    else if (character === '"') toggle('double')
    else if (now === 'double') return
    else if (character === ')' && this.#stack.length > 1) this.#stack.pop()
    else if (character === '<' && this.#previous === '<') throw new Error('here-documents cannot be used')
    else if (character === "'" && this.#previous === '$') throw new Error("$'…' cannot be used")
    else if (character === "'") toggle('single')
  }
}

class PowerShellQuoting {
  #now: Quoting = 'bare'
  #escaped = false

  read(text: string): void {
    for (const character of text) {
      if (this.#escaped) this.#escaped = false
      else if (this.#now === 'single') this.#now = character === "'" ? 'bare' : 'single'
      else if (character === '`') this.#escaped = true
      else if (this.#now === 'double') this.#now = character === '"' ? 'bare' : 'double'
      else if (character === '"') this.#now = 'double'
      else if (character === "'") this.#now = 'single'
    }
  }

  quotingFor(name: string): Quoting {
    if (this.#escaped) throw new Error(`"$${name}$" follows a backtick`)
    return this.#now
  }

  end(): void {
    if (this.#now !== 'bare') throw new Error('a quote is not closed')
  }
}

function quotePosix(value: string, quoting: Quoting): string | undefined {
  if (value.includes('\0')) return undefined
  if (safe.test(value)) return value
  if (quoting === 'double') return value.replace(/[\\"$`]/g, '\\$&')
  const inner = value.replaceAll("'", String.raw`'\''`)
  return quoting === 'single' ? inner : `'${inner}'`
}

/** PowerShell treats typographic quotes as quotes, so they are escaped as well. */
function quotePowerShell(value: string, quoting: Quoting): string | undefined {
  if (safe.test(value)) return value
  if (quoting === 'double') {
    const inner = value
      .replace(/[`"$\u201c-\u201e]/g, '`$&')
      .replaceAll('\r', '')
      .replaceAll('\n', '`n')
    return hasControls(inner) ? undefined : inner
  }
  if (hasControls(value)) return undefined
  if (quoting === 'single') return value.replace(/['\u2018-\u201b]/g, '$&$&')
  return value === '' ? "''" : value.replace(/[^\w@%+=:,./-]/gu, '`$&')
}

const hasControls = (text: string): boolean => [...text].some((character) => character < ' ' || character === '\x7f')
