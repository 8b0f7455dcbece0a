import type { ClientMetadata, Configuration, interactionPolicy, JWKS, KoaContextWithOIDC } from 'oidc-provider'
import type { IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import { newId } from '#kernel/ids.ts'
import type { TokenAlgorithm } from '#protocols/jwt/signing-key.ts'
import type { TextKey } from '#sdk/page/page-texts.ts'
import { presentCall } from './issuer-account.ts'
import type { IssuerPages } from './issuer-pages.ts'
import { type IssuerRecords, sessionSeconds } from './issuer-records.ts'

interface ProviderParts {
  readonly config: IssuerConfig
  readonly records: IssuerRecords
  readonly pages: IssuerPages
  readonly jwks: JWKS
  /** The algorithm of the signing key. */
  readonly alg: TokenAlgorithm
  readonly cookieKeys: readonly string[]
  readonly policy: typeof interactionPolicy
  /** The login level that the application requires. */
  level(trust: IssuerTrust): number
}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
export const issuerScopes = ['openid', 'profile', 'email', 'groups'] as const
export const cookieNames = { session: '_session', interaction: 'gatehouse_step', resume: 'gatehouse_resume' } as const
const codeSeconds = 60
/** How long a user may take to log in, and to type a device code. */
const stepSeconds = 600
/** With its port, by the address and not by a name. */
const ownMachine = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d+\//
const loopback = /^http:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/]/

const routes = {
  authorization: '/auth',
  token: '/token',
  userinfo: '/userinfo',
  jwks: '/certs',
  revocation: '/revoke',
  introspection: '/introspect',
  end_session: '/session/end',
  device_authorization: '/device/auth',
  code_verification: '/device',
}

/** The provider's settings: its flows, its lifetimes, and that our sessions are the only ones. */
export function providerSettings(parts: ProviderParts): Configuration {
  const { config, records, pages, jwks, cookieKeys } = parts
  const trusts = new Map(config.trusts.map((trust) => [trust.clientId, trust]))
  const trustOf: TrustOf = (clientId) => trusts.get(clientId ?? '')
  const cookie = { httpOnly: true, sameSite: 'lax', overwrite: true } as const
  return {
    adapter: (model) => records.adapter(model),
    clients: config.trusts.map((trust) => clientOf(trust, parts.alg)),
    jwks,
    cookies: {
      names: cookieNames,
      keys: [...cookieKeys],
      long: { ...cookie, signed: false },
      short: { ...cookie, signed: true },
    },
    routes,
    responseTypes: ['code'],
    scopes: [...issuerScopes],
    claims: {
      openid: ['sub', 'jti', 'nbf', 'auth_time', ...(config.amr?.size ? ['amr'] : []), ...config.claimNames],
    },
    conformIdTokenClaims: false,
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    pkce: {
      required: (ctx, client) =>
        client.clientAuthMethod === 'none' && !mayOmitPkce(trustOf(client.clientId), ctx.oidc.params?.['redirect_uri']),
    },
    clockTolerance: 0,
    rotateRefreshToken: () => presentCall()?.replacedBy === undefined || presentCall()?.successor !== undefined,
    expiresWithSession: async () => true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    ttl: {
      AccessToken: (_ctx, _token, client) => trustOf(client?.clientId)?.tokenSeconds ?? codeSeconds,
      IdToken: (_ctx, _token, client) => trustOf(client?.clientId)?.tokenSeconds ?? codeSeconds,
      AuthorizationCode: (_ctx, _code, client) => trustOf(client?.clientId)?.codeSeconds ?? codeSeconds,
      // A successor of a token ends when the token would have.
      RefreshToken: (ctx) => Math.max(1, ctx?.oidc.entities.RotatedRefreshToken?.remainingTTL ?? sessionSeconds),
      DeviceCode: stepSeconds,
      Interaction: stepSeconds,
      Grant: sessionSeconds,
      Session: sessionSeconds,
    },
    interactions: {
      policy: loginPolicy(parts, trustOf),
      url: (_ctx, { uid }) => `${config.mount}/interaction/${uid}`,
    },
    findAccount: accountFinder(records, trustOf),
    loadExistingGrant,
    clientBasedCORS: (_ctx, origin, client) => mayAskFrom(origin, client.redirectUris ?? []),
    renderError: (ctx, out) => pages.refused(ctx, out.error, out.error_description),
    features: providerFeatures(parts),
  }
}

/**
 * OpenUnison's plug-in for kubectl has no PKCE. A code that goes to one exact port of the user's own machine, and never to
 * a name or another site, is as safe there as it can be without.
 */
const mayOmitPkce = (trust: IssuerTrust | undefined, redirect: unknown): boolean =>
  trust?.redirectUris.every((uri) => ownMachine.test(uri)) === true &&
  trust.redirectUris.some((uri) => uri === redirect)

/** What of the protocols the issuer has, and the pages of it that users see. */
function providerFeatures({ config, pages }: ProviderParts): Configuration['features'] {
  return {
    devInteractions: { enabled: false },
    claimsParameter: { enabled: false },
    resourceIndicators: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    dPoP: { enabled: false },
    userinfo: { enabled: true },
    jwtUserinfo: { enabled: true },
    externalSigningSupport: { enabled: true, ack: 'experimental-01' },
    introspection: {
      enabled: true,
      allowedPolicy: async (_ctx, client, token) =>
        client.clientAuthMethod !== 'none' || token.clientId === client.clientId,
    },
    revocation: {
      enabled: true,
      allowedPolicy: async (_ctx, client, token) => token.clientId === client.clientId,
    },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx) => pages.confirmLogout(ctx),
      postLogoutSuccessSource: (ctx) => pages.signedOut(ctx),
    },
    deviceFlow: {
      enabled: hasDeviceGrant(config),
      charset: 'base-20',
      mask: '****-****',
      deviceInfo: (ctx) => ({ ip: ctx.ip }),
      userCodeInputSource: (ctx, _form, out, err) => pages.askForCode(ctx, typedCode(err), problemOf(out, err)),
      userCodeConfirmSource: (ctx, _form, client, device, code) => {
        const address = device?.['ip']
        pages.confirmCode(ctx, client.clientId, code, typeof address === 'string' ? address : undefined)
      },
      successSource: (ctx) => pages.deviceDone(ctx),
    },
  }
}

type TrustOf = (clientId: string | undefined) => IssuerTrust | undefined

/** Only the user of the session of the call, or of the token, has an account. */
function accountFinder(records: IssuerRecords, trustOf: TrustOf): NonNullable<Configuration['findAccount']> {
  return async (ctx, sub, token) => {
    const uid = token !== undefined && 'sessionUid' in token ? token.sessionUid : undefined
    const call = presentCall()
    const account = uid === undefined ? call?.person?.account : await records.accountOf(uid)
    if (account?.sub !== sub) return undefined
    const clientId = ctx.oidc.client?.clientId ?? ''
    if (call !== undefined) call.issued = { account, clientId, sessionId: uid }
    return {
      accountId: sub,
      claims: (use) => {
        if (use !== 'id_token') return { ...account.claims, sub }
        const jti = newId()
        if (call?.issued !== undefined) call.issued.jti = jti
        return { ...account.claims, sub, ...tokenTimes(trustOf(clientId)), jti }
      },
    }
  }
}

/** Only then is there a device endpoint, and discovery announces it. */
export const hasDeviceGrant = ({ trusts }: Pick<IssuerConfig, 'trusts'>): boolean =>
  trusts.some((trust) => trust.deviceGrant)

/** When an ID token becomes valid, if clocks may be behind. */
export const tokenTimes = (trust: IssuerTrust | undefined): { readonly nbf?: number } =>
  trust === undefined || trust.skewSeconds === 0 ? {} : { nbf: Math.floor(Date.now() / 1000) - trust.skewSeconds }

function clientOf(trust: IssuerTrust, alg: TokenAlgorithm): ClientMetadata {
  const native = trust.redirectUris.some((uri) => loopback.test(uri) || !/^https?:/.test(uri))
  return {
    client_id: trust.clientId,
    client_name: trust.label,
    ...(trust.clientSecret === undefined ? {} : { client_secret: trust.clientSecret }),
    token_endpoint_auth_method: trust.clientSecret === undefined ? 'none' : 'client_secret_basic',
    application_type: native ? 'native' : 'web',
    redirect_uris: [...trust.redirectUris],
    post_logout_redirect_uris: [...trust.postLogoutRedirectUris],
    // Without an address to return to, only an exchange issues its tokens.
    grant_types: [
      ...(trust.redirectUris.length > 0 ? ['authorization_code', 'refresh_token'] : []),
      ...(trust.deviceGrant ? [deviceGrant] : []),
    ],
    response_types: trust.redirectUris.length > 0 ? ['code'] : [],
    id_token_signed_response_alg: alg,
    ...(trust.signedUserInfo ? { userinfo_signed_response_alg: alg } : {}),
  }
}

/**
 * Users have to log in if our session is not good enough for the application. The configuration decides whether an
 * application may know the user, so there is no consent; an application that requests it gets an error.
 */
function loginPolicy({ policy, level }: ProviderParts, trustOf: TrustOf): interactionPolicy.DefaultPolicy {
  const { base, Check, Prompt } = policy
  const prompts = base()
  prompts.remove('consent')
  prompts.add(new Prompt({ name: 'consent', requestable: true }))
  prompts.get('login')?.checks.add(
    new Check('level', 'A stronger login is needed', 'login_required', ({ oidc }) => {
      const trust = trustOf(oidc.client?.clientId)
      const has = presentCall()?.person?.level
      return trust === undefined || has === undefined || has < level(trust)
    }),
  )
  return prompts
}

/** One grant per session and application: all its tokens, which end together. */
async function loadExistingGrant(ctx: KoaContextWithOIDC) {
  const { provider, client, session, account } = ctx.oidc
  if (client === undefined || session === undefined || account === undefined) return undefined
  const known = session.grantIdFor(client.clientId)
  const found = known === undefined ? undefined : await provider.Grant.find(known)
  const isTheirs = found?.accountId === account.accountId && found.clientId === client.clientId
  const grant =
    found !== undefined && isTheirs
      ? found
      : new provider.Grant({ accountId: account.accountId, clientId: client.clientId })
  grant.addOIDCScope(issuerScopes.join(' '))
  await grant.save()
  return grant
}

const mayAskFrom = (origin: string, uris: readonly string[]): boolean =>
  uris.some((uri) => URL.parse(uri)?.origin === origin && /^https?:/.test(origin))

const typedCode = (error: unknown): string | undefined =>
  error instanceof Error && 'userCode' in error && typeof error.userCode === 'string' ? error.userCode : undefined

const codeProblems: ReadonlyMap<string, TextKey> = new Map([
  ['NoCodeError', 'device.noCode'],
  ['NotFoundError', 'device.unknownCode'],
  ['ExpiredError', 'device.expiredCode'],
  ['AlreadyUsedError', 'device.usedCode'],
  ['AbortedError', 'device.aborted'],
])

function problemOf(out: unknown, error: unknown): TextKey | undefined {
  if (out === undefined && error === undefined) return undefined
  const name = error instanceof Error ? error.name : ''
  return codeProblems.get(name) ?? 'device.otherProblem'
}
