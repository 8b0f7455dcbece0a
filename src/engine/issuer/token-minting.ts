import { decodeJwt } from 'jose/jwt/decode'
import type { Provider } from 'oidc-provider'
import type { IssuerAccount } from '#engine/issuer/issuer-account.ts'
import { type IssuerRecords, sessionSeconds } from '#engine/issuer/issuer-records.ts'
import { issuerScopes, tokenTimes } from '#engine/issuer/provider-settings.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { IssuerTrust, MintedTokens } from '#sdk/auth/issuer.ts'

export interface Minting {
  readonly provider: Provider
  readonly records: IssuerRecords
  readonly trust: IssuerTrust
  readonly account: IssuerAccount
  readonly sessionId: string | undefined
  readonly authenticated: Date
}

/** Makes what the application would get for a code. The refresh token ends with the session; without one there is none. */
export async function mintTokens(minting: Minting): Promise<MintedTokens & { readonly jti: string }> {
  const { provider, trust, account, sessionId } = minting
  const client = await provider.Client.find(trust.clientId)
  if (client === undefined) throw new GatewayError('INTERNAL', `there is no client "${trust.clientId}"`)
  const jti = newId()
  const claims = { ...account.claims, sub: account.sub, ...tokenTimes(trust), jti, auth_time: secondsOf(minting) }
  const token = new provider.IdToken(claims, { client })
  Object.assign(token, { scope: issuerScopes.join(' ') })
  const idToken = await token.issue({ use: 'idtoken' })
  const content = decodeJwt(idToken)
  const refresh = sessionId === undefined ? {} : await refreshTokenFor(minting, sessionId, client)
  return {
    jti,
    issuer: provider.issuer,
    clientId: trust.clientId,
    idToken,
    expires: new Date((content.exp ?? 0) * 1000),
    claims: content as JsonObject,
    ...refresh,
  }
}

async function refreshTokenFor(
  minting: Minting,
  sessionId: string,
  client: NonNullable<Awaited<ReturnType<Provider['Client']['find']>>>,
): Promise<Pick<MintedTokens, 'refreshToken' | 'refreshExpires'>> {
  const { provider, records, account, authenticated } = minting
  const { clientId } = client
  const scope = issuerScopes.join(' ')
  const present = await records.sessionGrant(sessionId, clientId, account)
  const grant =
    (present === undefined ? undefined : await provider.Grant.find(present)) ??
    new provider.Grant({ accountId: account.sub, clientId })
  grant.addOIDCScope(scope)
  const grantId = await grant.save()
  const now = Math.floor(Date.now() / 1000)
  const person = { sessionId, level: 0, authenticated, account }
  await records.writeSession(person, {
    jti: sessionId,
    iat: now,
    exp: now + sessionSeconds,
    loginTs: secondsOf(minting),
    authorizations: { [clientId]: { grantId } },
  })
  const token = new provider.RefreshToken({
    accountId: account.sub,
    client,
    grantId,
    scope,
    sessionUid: sessionId,
    expiresWithSession: true,
    authTime: secondsOf(minting),
    gty: 'authorization_code',
    rotations: 0,
  } as ConstructorParameters<Provider['RefreshToken']>[0])
  const refreshToken = await token.save()
  return { refreshToken, refreshExpires: new Date((now + sessionSeconds) * 1000) }
}

const secondsOf = ({ authenticated }: Pick<Minting, 'authenticated'>): number =>
  Math.floor(authenticated.getTime() / 1000)
