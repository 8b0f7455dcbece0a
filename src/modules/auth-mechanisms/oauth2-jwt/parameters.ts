import { parseIssuerUrl } from '#kernel/issuer-url.ts'
import type { Issues } from '#kernel/issues.ts'
import { type CrossOrigin, isHeaderName, isOrigin } from '#modules/auth-mechanisms/oauth2-jwt/cross-origin.ts'
import { linkParameters, parseSubjectLink, type SubjectLink } from '#modules/shared/login/linked-subject.ts'
import { clockTolerance } from '#protocols/jwt/token-verifier.ts'
import { flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

export const parameters = {
  ...linkParameters,
  issuer: text({ about: 'The issuer; a token’s `iss` must be exactly this.', required: true }),
  audience: list({
    about: 'The audiences of this service; `aud` of a token must contain one of them.',
    required: true,
  }),
  fromWellKnown: flag({ about: 'Reads the keys from the discovery document of the issuer.' }),
  validationKey: text({
    about: 'The name of the certificate or public key that verifies tokens, where fromWellKnown is not `"true"`.',
  }),
  realm: text({ about: 'The realm named in `WWW-Authenticate`.', fallback: 'gatehouse' }),
  scope: text({ about: 'The scope named in `WWW-Authenticate`.' }),
  'cors-headers': list({
    about: 'Request headers, beside `Authorization`, that pages of other origins may send; turns CORS on.',
  }),
  'cors-origins': list({ about: 'The origins of such pages; any, without credentials, when absent.' }),
  defaultNotBeforeMinutes: wholeNumber({
    about: 'Minutes before its `iat` for which a token is accepted.',
    fallback: 5,
    max: 1440,
  }),
  clockToleranceSeconds: wholeNumber({
    about:
      'By how many seconds the clocks of the issuer and of this machine may differ; for tokens of our own issuers 0, unless given.',
    fallback: clockTolerance,
    max: 300,
  }),
  allowNoIat: flag({ about: 'Accept tokens without `iat`.' }),
  webfingerCredentialLoader: text({ about: 'Not supported; an error when set.' }),
  target: text({ about: 'Belongs to webfingerCredentialLoader; an error when set.' }),
} satisfies ParameterTable

export interface OAuth2JwtConfig {
  readonly issuer: string
  readonly audiences: readonly string[]
  /** Undefined where the issuer's discovery document gives the keys. */
  readonly keyName: string | undefined
  readonly allowNoIat: boolean
  readonly notBeforeMinutes: number
  /** Undefined where the parameter is absent: that depends on whether the issuer is one of our own. */
  readonly clockTolerance: number | undefined
  readonly realm: string
  readonly scope: string | undefined
  readonly crossOrigin: CrossOrigin | undefined
  readonly link: SubjectLink
}

export function parseOAuth2Jwt(params: Params, issues: Issues, context: ParseContext): OAuth2JwtConfig {
  const given = readParameters(parameters, params, issues, context)
  for (const name of ['webfingerCredentialLoader', 'target']) {
    if (params.values(name).some((value) => value !== '')) {
      issues.error(params.pathOf(name), `"${name}" is not supported: credentials are not loaded by WebFinger here`)
    }
  }
  if (given.fromWellKnown) {
    if (given.issuer !== '') checkIssuer(given.issuer, params, issues)
    if (given.validationKey !== undefined) {
      issues.warning(params.pathOf('validationKey'), '"validationKey" has no effect where fromWellKnown is "true"')
    }
  } else if (given.validationKey === undefined) {
    issues.error(params.pathOf('validationKey'), 'parameter "validationKey" is required unless fromWellKnown is "true"')
  } else {
    context.refer('key', given.validationKey, params.pathOf('validationKey', 0))
  }
  return {
    issuer: given.issuer,
    audiences: given.audience,
    keyName: given.fromWellKnown ? undefined : given.validationKey,
    allowNoIat: given.allowNoIat,
    notBeforeMinutes: given.defaultNotBeforeMinutes,
    clockTolerance: params.values('clockToleranceSeconds').some((value) => value !== '')
      ? given.clockToleranceSeconds
      : undefined,
    realm: given.realm,
    scope: given.scope,
    crossOrigin: parseCrossOrigin(given['cors-headers'], given['cors-origins'], params, issues),
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

function parseCrossOrigin(
  headers: readonly string[],
  origins: readonly string[],
  params: Params,
  issues: Issues,
): CrossOrigin | undefined {
  for (const [i, name] of headers.entries()) {
    if (!isHeaderName(name))
      issues.error(params.pathOf('cors-headers', i), `"cors-headers": "${name}" is not a header name`)
  }
  for (const [i, origin] of origins.entries()) {
    if (isOrigin(origin)) continue
    issues.error(
      params.pathOf('cors-origins', i),
      `"cors-origins": "${origin}" is not an origin such as https://app.example.com`,
    )
  }
  if (headers.length === 0 && origins.length === 0) return undefined
  return { headers, origins: origins.length === 0 ? ['*'] : origins }
}
