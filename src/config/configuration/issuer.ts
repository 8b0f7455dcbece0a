import type { PreparedSubjectFilter } from '#sdk/filter/subject-filter.ts'
import type { PreparedMapping } from '#sdk/mapper/mapping.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import type { TokenIssuer } from './token-keys.ts'

/** An application of one of our own issuers. */
export interface IssuerTrust {
  readonly name: string
  /** The display name. */
  readonly label: string
  readonly clientId: string
  /** Undefined for an application that can't keep a secret, and authenticates by PKCE. */
  readonly clientSecret: string | undefined
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  /** The chain for logins. */
  readonly chain: string
  readonly codeSeconds: number
  /** The lifetime of access and ID tokens. */
  readonly tokenSeconds: number
  /** How long before their creation tokens are already valid, for clocks that are behind. */
  readonly skewSeconds: number
  readonly signedUserInfo: boolean
  /** Devices may log in with a code that a person types (RFC 8628). */
  readonly deviceGrant: boolean
  /** Set if it exchanges tokens of users (RFC 8693). `chain` then authenticates the callers that do. */
  readonly exchange?: ExchangeRights | undefined
}

/** Which tokens of users an application may exchange, and for what. */
export interface ExchangeRights {
  /** Without a trace of the caller in the new token. */
  readonly impersonation: boolean
  /** With the actor in the claim `act`. */
  readonly delegation: boolean
  /** The client ids of the applications that the new tokens may be for. */
  readonly audiences: readonly string[]
  /** Who may exchange; no rule denies. */
  readonly clientRules: readonly Rule[]
  /** Whose tokens may be exchanged; no rule denies. */
  readonly subjectRules: readonly Rule[]
}

/** One of our own OpenID Connect issuers. */
export interface IssuerConfig {
  /** What follows `/auth/idp/`. */
  readonly name: string
  /** The name of its Application, which OpenUnison's objects use instead. */
  readonly application: string
  readonly at: string
  /** `/auth/idp/<name>` */
  readonly mount: string
  /** The hosts of its URL; `*` is any. */
  readonly hosts: readonly string[]
  /** Who may log in to its applications; no rule denies. */
  readonly rules: readonly Rule[]
  /** Change the subject, in this order, before claims are made of it. */
  readonly subjectFilters?: readonly PreparedSubjectFilter[]
  readonly claims: PreparedMapping
  /** The names of the claims. */
  readonly claimNames: readonly string[]
  readonly trusts: readonly IssuerTrust[]
  /** The chain for users who type a device code, before the device's application is known. */
  readonly deviceChain: string
  readonly keys: TokenIssuer
  /** By chain: how the claim `amr` names a login by it. */
  readonly amr?: ReadonlyMap<string, string>
  /** For how long a refresh token that was replaced is still accepted. */
  readonly refreshGraceMillis: number
}

/** Only then does the issuer exchange tokens, and discovery announces it. */
export const hasTokenExchange = ({ trusts }: Pick<IssuerConfig, 'trusts'>): boolean =>
  trusts.some(({ exchange }) => exchange !== undefined)

/** The issuers by every name that other objects can use: their own, and that of an Application with only one issuer. */
export function issuersByName<T extends Pick<IssuerConfig, 'name' | 'application'>>(
  issuers: readonly T[],
): ReadonlyMap<string, T> {
  const alone = issuers.filter(
    ({ application }, _i, all) => all.filter((one) => one.application === application).length === 1,
  )
  return new Map([
    ...alone.map((issuer) => [issuer.application, issuer] as const),
    ...issuers.map((issuer) => [issuer.name, issuer] as const),
  ])
}

/** Whether tokens with this `iss` are this issuer's: its URL at any of its hosts, with any scheme and port. */
export function isIssuedBy({ mount, hosts }: Pick<IssuerConfig, 'mount' | 'hosts'>, issuer: string): boolean {
  const url = URL.parse(issuer)
  if (url === null || url.pathname !== mount) return false
  return hosts.some((host) => host === '*' || host.toLowerCase() === url.hostname)
}
