import { stringify } from 'yaml'
import { kubectlTokenKeys as keys, type TokenState } from '#contract/token.ts'
import { GatewayError } from '#kernel/errors.ts'
import {
  latestTokensSlot,
  restoreTokens,
  type SessionTokens,
  storeTokens,
  tokensSlot,
} from '#modules/shared/login/session-tokens.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { FilterHost } from '#sdk/filter/filter-host.ts'
import type { ShellTemplate } from './shell-template.ts'
import type { LoadedTokens, TokenLoader } from './token-loader.ts'

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
export function kubectlLoader(settings: KubectlSettings, host: FilterHost): TokenLoader {
  return {
    load: async (exchange) => show(exchange, await kept(exchange, settings), settings, host),
    renew: async (exchange) => {
      const { session, subject, request } = exchange
      const before = await kept(exchange, settings)
      if (!isRenewable(before, settings) || session === undefined || host.issuers === undefined) {
        throw new GatewayError('ACCESS_DENIED', 'these tokens are not renewed within a session', {
          publicText: 'To get a new token, log out and log in again.',
        })
      }
      const { idp, trust, origin } = before
      const made = await host.issuers.mint({
        issuer: idp,
        trust,
        subject,
        sessionId: session.id,
        authenticated: session.authenticated,
        how: 'token page',
        request,
        ...(origin === undefined ? {} : { origin }),
      })
      if (made === undefined) throw new GatewayError('ACCESS_DENIED', `no rule of "${idp}" lets "${subject.uid}"`)
      const tokens = { ...made, idp, trust, ...(origin === undefined ? {} : { origin }) }
      await session.write(tokensSlot(idp, trust), storeTokens(tokens))
      return show(exchange, tokens, settings, host)
    },
  }
}

async function kept({ session }: Exchange, { from }: KubectlSettings): Promise<SessionTokens | undefined> {
  if (session === undefined) return undefined
  const slot = from === undefined ? await session.read(latestTokensSlot) : tokensSlot(from.idp, from.trust)
  return typeof slot === 'string' ? restoreTokens(await session.read(slot)) : undefined
}

async function show(
  { subject }: Exchange,
  tokens: SessionTokens | undefined,
  settings: KubectlSettings,
  host: FilterHost,
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
  const { server, cluster, command, windowsCommand } = settings
  const file =
    server === undefined
      ? undefined
      : kubeconfig({
          cluster,
          server,
          user,
          issuer,
          clientId,
          idToken,
          refreshToken,
          clusterCertificate,
          issuerCertificate: ownCertificate,
        })
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
  { issuers, clock }: FilterHost,
): Promise<TokenState> {
  const { idp, expires, refreshToken, refreshExpires } = tokens
  const refresh = refreshToken === undefined ? 'none' : ((await issuers?.refreshState(idp, refreshToken)) ?? 'ended')
  return {
    idToken: expires > clock() ? 'valid' : 'expired',
    refreshToken: refresh,
    ...(refreshExpires === undefined ? {} : { refreshExpires: refreshExpires.toISOString() }),
    renewable: isRenewable(tokens, settings),
  }
}

const isRenewable = (tokens: SessionTokens | undefined, { renews }: KubectlSettings): tokens is SessionTokens =>
  renews && tokens?.refreshToken !== undefined

const certificate = async (name: string | undefined, { keys: source }: FilterHost): Promise<string | undefined> =>
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

interface KubeconfigContent {
  readonly cluster: string
  readonly server: string
  readonly user: string
  readonly issuer: string
  readonly clientId: string
  readonly idToken: string
  readonly refreshToken: string | undefined
  /** Certificates, as PEM. */
  readonly clusterCertificate: string | undefined
  readonly issuerCertificate: string | undefined
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

/** A whole file for kubectl. A library writes the document, so names need no escaping. */
function kubeconfig(content: KubeconfigContent): string {
  const { cluster, server, issuer, clientId, idToken, refreshToken, clusterCertificate, issuerCertificate } = content
  const user = `${content.user}@${cluster}`
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: cluster,
        cluster: {
          server,
          ...(clusterCertificate === undefined ? {} : { 'certificate-authority-data': base64(clusterCertificate) }),
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
              ...(issuerCertificate === undefined
                ? {}
                : { 'idp-certificate-authority-data': base64(issuerCertificate) }),
            },
          },
        },
      },
    ],
  })
}
