import type { ExchangeRights } from '#config/configuration/issuer.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { DraftTrust } from '#config/context/draft.ts'
import type { TrustSpec } from '#config/kinds/trust.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { parseRuleText, type Rule } from '#sdk/rule/rule.ts'

/** The common part of a Trust object and an inline trust. */
interface WrittenTrust {
  readonly name: string
  readonly label: string | undefined
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly publicEndpoint: boolean
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  readonly chain: string | undefined
  readonly codeTokenSkewMilis: number | undefined
  readonly accessTokenTimeToLive: number | undefined
  readonly accessTokenSkewMillis: number | undefined
  readonly signedUserInfo: boolean
  readonly verifyRedirect: boolean
  readonly enableDeviceGrant: boolean
  readonly isSts: boolean
  readonly stsImpersonation: boolean
  readonly stsDelegation: boolean
  readonly authorizedAudiences: readonly string[]
  readonly clientAzRules: readonly string[]
  readonly subjectAzRules: readonly string[]
}

type TrustPlace = (field: keyof TrustSpec, index?: number) => Path

const defaultCodeMillis = 60_000
const defaultTokenMillis = 60_000
const mostTokenMillis = 86_400_000
const mostCodeMillis = 600_000
const mostSkewMillis = 1_200_000
const loopbacks = new Set(['localhost', '127.0.0.1', '[::1]'])
/** URLs that a browser would run, or that lead nowhere. */
const deadSchemes = new Set(['javascript:', 'data:', 'vbscript:', 'blob:', 'about:', 'file:', 'mailto:'])

export function readTrust(written: WrittenTrust, place: TrustPlace, context: BuildContext): DraftTrust {
  const { issues } = context
  if (!/^[\x21-\x7e]+$/.test(written.clientId)) {
    issues.error(place('clientId'), 'must be printable ASCII without spaces')
  }
  if (!written.verifyRedirect && written.redirectUris.length > 0) {
    issues.error(place('verifyRedirect'), 'must be true; otherwise codes could be sent to any site')
  }
  checkRedirects(written, 'redirectURI', written.redirectUris, place, context)
  checkRedirects(written, 'postLogoutRedirectURI', written.postLogoutRedirectUris, place, context)
  const millis = (field: keyof TrustSpec, value: number | undefined, fallback: number, least: number, most: number) => {
    const given = value ?? fallback
    if (given >= least && given <= most) return given
    issues.error(place(field), `must be from ${least} to ${most} milliseconds, not ${given}`)
    return fallback
  }
  const code = millis('codeTokenSkewMilis', written.codeTokenSkewMilis, defaultCodeMillis, 1000, mostCodeMillis)
  const token = millis(
    'accessTokenTimeToLive',
    written.accessTokenTimeToLive,
    defaultTokenMillis,
    1000,
    mostTokenMillis,
  )
  const skew = millis('accessTokenSkewMillis', written.accessTokenSkewMillis, 0, 0, mostSkewMillis)
  return {
    name: written.name,
    label: written.label ?? written.name,
    clientId: written.clientId,
    clientSecret: written.publicEndpoint ? undefined : written.clientSecret,
    redirectUris: written.redirectUris,
    postLogoutRedirectUris: written.postLogoutRedirectUris,
    chain: written.chain,
    codeSeconds: Math.ceil(code / 1000),
    tokenSeconds: Math.floor(token / 1000),
    skewSeconds: Math.ceil(skew / 1000),
    signedUserInfo: written.signedUserInfo,
    deviceGrant: written.enableDeviceGrant,
    exchange: written.isSts ? readExchange(written, place, context) : undefined,
  }
}

function readExchange(written: WrittenTrust, place: TrustPlace, context: BuildContext): ExchangeRights {
  const { stsImpersonation: impersonation, stsDelegation: delegation, authorizedAudiences: audiences } = written
  const { issues } = context
  if (!impersonation && !delegation) {
    issues.error(place('isSts'), 'nothing can be exchanged: set stsImpersonation or stsDelegation to true')
  }
  if (audiences.length === 0) {
    issues.error(place('authorizedAudiences'), 'is required with isSts: the client ids that tokens are exchanged for')
  }
  const rules = (field: 'clientAzRules' | 'subjectAzRules', whom: string): Rule[] => {
    if (written[field].length === 0) {
      issues.error(place(field), `is required with isSts: without a rule, ${whom}; a rule is "scope;constraint"`)
    }
    return written[field].flatMap((text, i) => parseRuleText(text, place(field, i), issues, context) ?? [])
  }
  return {
    impersonation,
    delegation,
    audiences,
    clientRules: rules('clientAzRules', 'no client may exchange tokens'),
    subjectRules: rules('subjectAzRules', 'the tokens of no user may be exchanged'),
  }
}

/** Whether it runs on the user's own machine, where ports vary (RFC 8252). */
const isNative = (uris: readonly string[]): boolean =>
  uris.some((uri) => {
    const url = URL.parse(uri)
    return url !== null && (!isWeb(url) || (url.protocol === 'http:' && loopbacks.has(url.hostname)))
  })

const isWeb = ({ protocol }: URL): boolean => protocol === 'https:' || protocol === 'http:'

function checkRedirects(
  { redirectUris }: WrittenTrust,
  field: 'redirectURI' | 'postLogoutRedirectURI',
  uris: readonly string[],
  place: TrustPlace,
  { issues }: BuildContext,
): void {
  const native = isNative(redirectUris)
  for (const [i, uri] of uris.entries()) {
    const path = place(field, i)
    const url = URL.parse(uri)
    if (uri.includes('*')) {
      issues.error(path, uri === '*' ? 'a bare "*" would accept any site' : 'must be exact, without "*"')
    } else if (url === null || deadSchemes.has(url.protocol)) {
      issues.error(path, `"${uri}" is not an address that a browser can be sent to`)
    } else if (uri.includes('#')) {
      issues.error(path, 'must have no fragment')
    } else if (url.protocol === 'http:' && !loopbacks.has(url.hostname)) {
      const message = 'codes would be sent over http, where others can read them'
      if (native) issues.error(path, `${message}; beside addresses on people's own machines that is refused`)
      else issues.warning(path, message)
    } else if (native && url.protocol === 'https:' && loopbacks.has(url.hostname)) {
      issues.error(path, `"${uri}" must be http, or not on the person's own machine`)
    }
  }
}

export function buildTrust(spec: TrustSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const isPublic = spec.publicEndpoint ?? false
  if (spec.clientSecret === undefined && !isPublic) {
    issues.error(['spec', 'clientSecret'], 'is required unless publicEndpoint is true')
  }
  if (spec.enableClientCredentialsGrant === true) warnOfGrant(['spec', 'enableClientCredentialsGrant'], issues)
  if ((spec.tokenCookieName ?? '') !== '') warnOfCookie(['spec', 'tokenCookieName'], issues)
  const trust = readTrust(
    {
      name: placed.name,
      label: spec.label,
      clientId: spec.clientId,
      clientSecret: isPublic ? undefined : readSecret(spec, context),
      publicEndpoint: isPublic,
      redirectUris: spec.redirectURI,
      postLogoutRedirectUris: spec.postLogoutRedirectURI ?? [],
      chain: context.optional('chain', spec.authChainName, ['spec', 'authChainName']),
      codeTokenSkewMilis: spec.codeTokenSkewMilis,
      accessTokenTimeToLive: spec.accessTokenTimeToLive,
      accessTokenSkewMillis: spec.accessTokenSkewMillis,
      signedUserInfo: spec.signedUserInfo ?? false,
      verifyRedirect: spec.verifyRedirect ?? true,
      enableDeviceGrant: spec.enableDeviceGrant ?? false,
      isSts: spec.isSts ?? false,
      stsImpersonation: spec.stsImpersonation ?? false,
      stsDelegation: spec.stsDelegation ?? false,
      authorizedAudiences: spec.authorizedAudiences ?? [],
      clientAzRules: spec.clientAzRules ?? [],
      subjectAzRules: spec.subjectAzRules ?? [],
    },
    (field, index) => ['spec', field, ...(index === undefined ? [] : [index])],
    context,
  )
  state.draft.trusts.set(placed.name, { ...placed, spec, trust, document: context.document })
}

export const warnOfGrant = (path: Path, issues: Issues): void =>
  issues.warning(path, 'is not used: the client credentials grant is not offered')

export const warnOfCookie = (path: Path, issues: Issues): void =>
  issues.warning(path, 'is not used: tokens are not kept in cookies')

function readSecret({ clientSecret }: TrustSpec, { state, issues }: BuildContext): string | undefined {
  if (clientSecret === undefined) return undefined
  const answer = state.secrets.read(clientSecret.secretName, clientSecret.keyName)
  if ('value' in answer) {
    if (answer.value !== '') return answer.value
    issues.error(['spec', 'clientSecret'], 'the secret is empty')
    return undefined
  }
  const path = ['spec', 'clientSecret', 'secretName']
  if (answer.absent && !state.strictSecrets)
    issues.warning(path, `${answer.problem}; without it, serve sets this object aside`)
  else issues.error(path, answer.problem)
  return undefined
}
