import { parseIssuerUrl, parseTrustedUrl } from '#kernel/address.ts'
import type { Issues } from '#kernel/issues.ts'
import { linkParameters, parseSubjectLink } from '#sdk/login/linked-subject.ts'
import { choice, flag, parsed, text } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

export const parameters = {
  ...linkParameters,
  issuer: text({
    about:
      'The issuer; the `iss` of an id_token must be exactly this. An `https:` address, or `http:` on this machine. Where `idpURL` is `<issuer>/auth` of an issuer at `/auth/idp/<name>`, as in OpenUnison, it may be absent, and the endpoints are discovered.',
    requirement: 'yes, or such an `idpURL`',
  }),
  clientid: text({ about: 'The client id that the issuer gave.', required: true }),
  secretid: text({ about: 'The client secret; a public client when absent.', secret: true }),
  idpURL: parsed('URL', parseTrustedUrl, {
    about: 'The authorization endpoint of an issuer without a discovery document; with `loadTokenURL`.',
  }),
  loadTokenURL: parsed('URL', parseTrustedUrl, {
    about: 'The token endpoint of such an issuer.',
    requirement: 'with `idpURL`',
  }),
  jwksURL: parsed('URL', parseTrustedUrl, {
    about: 'The keys of such an issuer; without them an id_token is trusted because of whom it came from over TLS.',
  }),
  responseType: choice(['code'], { about: 'Only `code` is supported.', fallback: 'code' }),
  scope: text({ about: 'Requested scopes; must include `openid`.', fallback: 'openid email profile' }),
  forceAuthentication: flag({
    about:
      'Ask the issuer to authenticate the user again (`max_age=0`). Where its id_token has `auth_time`, that must be of this login.',
    fallback: true,
  }),
  hd: text({ about: 'Only users whose claim `hd` is this domain.' }),
  bearerTokenName: text({
    about: 'The slot of the session that keeps the access token; `<name>-id` keeps the id_token.',
  }),
  userLookupClassName: text({
    about: 'Where claims come from: `id_token`, `userinfo` (the id_token too, which wins), or the class names below.',
    fallback: 'id_token',
  }),
  jwtTokenAttributeName: text({ about: 'Accepted where it is `id_token`.', fallback: 'id_token' }),
  restURL: parsed('URL', parseTrustedUrl, { about: 'The userinfo endpoint, where it is not the discovered one.' }),
  loginHintEnabled: flag({ about: 'Send a `login_hint`.' }),
  loginHintAttribute: text({
    about: 'The attribute of the user identified so far that is the hint.',
    requirement: 'with `loginHintEnabled`',
  }),
  loginHintFromUser: flag({ about: 'Must be `"true"`: hints come from attributes only.', fallback: true }),
  usePkce: flag({ about: 'PKCE is always used.', fallback: true }),
  usePKCE: flag({ about: 'Another spelling of the same.', fallback: true }),
  endSession: flag({
    about: 'A logout also ends the session at the issuer, if it has an `end_session_endpoint`.',
    fallback: true,
  }),
  postLogoutRedirectURI: parsed('URL', parseTrustedUrl, {
    about:
      'Where the issuer redirects users after that; it must be registered there. The page of the issuer when absent.',
  }),
} satisfies ParameterTable

export type OpenIdConnectConfig = ReturnType<typeof parseOpenIdConnect>

const loaders = 'com.tremolosecurity.unison.proxy.auth.openidconnect.loadUser.'
const claimSources = new Map<string, 'id_token' | 'userinfo'>([
  ['id_token', 'id_token'],
  ['userinfo', 'userinfo'],
  [`${loaders}LoadJWTFromAccessToken`, 'id_token'],
  [`${loaders}LoadAttributesFromWS`, 'userinfo'],
])

export function parseOpenIdConnect(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  const problem = (name: keyof typeof parameters, message: string): void =>
    issues.error(params.pathOf(name), `"${name}": ${message}`)
  const source = claimSources.get(given.userLookupClassName)
  if (source === undefined) {
    problem('userLookupClassName', 'must be id_token, userinfo, or the class name that means one of them')
  }
  if (given.jwtTokenAttributeName !== 'id_token') problem('jwtTokenAttributeName', 'must be id_token')
  if (!given.scope.split(/\s+/).includes('openid')) problem('scope', 'must hold openid, else there is no id_token')
  if (!/^[\w.-]{1,80}$/.test(given.bearerTokenName ?? 'none')) {
    problem('bearerTokenName', 'may hold letters, digits, dots, dashes and underscores')
  }
  if (!given.loginHintFromUser) problem('loginHintFromUser', 'hints come from attributes only')
  if (given.loginHintEnabled && given.loginHintAttribute === undefined) {
    problem('loginHintAttribute', 'is required where loginHintEnabled is "true"')
  }
  for (const name of ['usePkce', 'usePKCE'] as const) {
    if (!given[name]) issues.warning(params.pathOf(name), `"${name}" has no effect: PKCE is always used`)
  }
  const ownIssuer = given.issuer === undefined ? issuerOfOpenUnison(given.idpURL, given.loadTokenURL) : undefined
  const issuer = given.issuer ?? ownIssuer
  if (issuer === undefined) issues.error(params.pathOf('issuer'), 'parameter "issuer" is required')
  else checkIssuer(issuer, params, issues)
  return {
    issuer: issuer ?? '',
    clientId: given.clientid,
    clientSecret: given.secretid,
    /** Undefined if the issuer has a discovery document. */
    endpoints: ownIssuer === undefined ? endpointsOf(given, params, issues) : undefined,
    userInfo: given.restURL,
    loadsUserInfo: source === 'userinfo',
    scope: given.scope,
    forcesAuthentication: given.forceAuthentication,
    hostedDomain: given.hd,
    tokenSlot: given.bearerTokenName,
    hintAttribute: given.loginHintEnabled ? given.loginHintAttribute : undefined,
    endsSession: given.endSession,
    afterLogout: given.postLogoutRedirectURI?.href,
    link: parseSubjectLink(given, params, issues),
  }
}

function checkIssuer(issuer: string, params: Params, issues: Issues): void {
  try {
    parseIssuerUrl(issuer)
  } catch (error) {
    issues.error(params.pathOf('issuer', 0), `"issuer": ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Its issuers, like ours, are `/auth/idp/<name>`, with a discovery document that names these endpoints. */
function issuerOfOpenUnison(authorization: URL | undefined, token: URL | undefined): string | undefined {
  const issuer = /^(https?:\/\/[^/]+\/auth\/idp\/[\w.-]+)\/auth$/.exec(authorization?.href ?? '')?.[1]
  return issuer !== undefined && token?.href === `${issuer}/token` ? issuer : undefined
}

/** Both addresses are required, or neither. */
function endpointsOf(
  { idpURL, loadTokenURL, jwksURL, restURL, userLookupClassName }: ParsedParameters<typeof parameters>,
  params: Params,
  issues: Issues,
): { readonly authorization: URL; readonly token: URL; readonly keys: URL | undefined } | undefined {
  const isSet = (name: string): boolean => params.values(name).some((value) => value !== '')
  if (!isSet('idpURL') && !isSet('loadTokenURL')) {
    if (isSet('jwksURL'))
      issues.warning(params.pathOf('jwksURL'), '"jwksURL" has no effect where endpoints are discovered')
    return undefined
  }
  for (const name of ['idpURL', 'loadTokenURL']) {
    if (!isSet(name)) issues.error(params.pathOf(name), `parameter "${name}" is required with the other endpoint`)
  }
  if (claimSources.get(userLookupClassName) === 'userinfo' && restURL === undefined) {
    issues.error(params.pathOf('restURL'), 'parameter "restURL" is required where endpoints are not discovered')
  }
  if (idpURL === undefined || loadTokenURL === undefined) return undefined
  return { authorization: idpURL, token: loadTokenURL, keys: jwksURL }
}
