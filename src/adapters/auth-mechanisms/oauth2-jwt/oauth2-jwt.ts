import { parseIssuerUrl } from '#kernel/address.ts'
import { BoundedCache } from '#kernel/bounded-cache.ts'
import { secretHash } from '#kernel/ids.ts'
import type { Issues } from '#kernel/issues.ts'
import { bearerRefusals, readBearer } from '#protocols/jwt/bearer.ts'
import { DiscoveredKeySet } from '#protocols/jwt/discovered-key-set.ts'
import { type KeySet, pinnedKeySet, type VerificationKey } from '#protocols/jwt/keys.ts'
import {
  clockTolerance,
  createTokenVerifier,
  TokenRejected,
  type VerifiedToken,
} from '#protocols/jwt/token-verifier.ts'
import { type AuthHost, type AuthMechanism, type AuthOutcome, defineAuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { type GatewayRequest, type GatewayResponse, header } from '#sdk/http/http.ts'
import {
  claimAttributes,
  linkedForMillis,
  linkParameters,
  linkSubject,
  parseSubjectLink,
} from '#sdk/login/linked-subject.ts'
import { flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParameterTable, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

const parameters = {
  ...linkParameters,
  issuer: text({
    about:
      'The issuer; a token’s `iss` must be exactly this. With `fromWellKnown` it is an `https:` address, or `http:` on this machine.',
    required: true,
  }),
  audience: list({
    about: 'The audiences of this service; `aud` of a token must contain one of them.',
    required: true,
  }),
  fromWellKnown: flag({ about: 'Reads the keys from `<issuer>/.well-known/openid-configuration`.' }),
  validationKey: text({
    about:
      'The name of the certificate or public key: `keys/<name>.pem`, `.crt` or `.key` in the configuration folder, or `tls.crt` of the secret `<name>`.',
    requirement: 'unless `fromWellKnown`',
  }),
  realm: text({ about: 'The realm named in `WWW-Authenticate`.', fallback: 'gatehouse' }),
  scope: text({ about: 'The scope named in `WWW-Authenticate`.' }),
  'cors-headers': list({
    about:
      'Request headers, beside `Authorization`, that pages of other origins may send; turns CORS on. Also in the form of OpenUnison, `Access-Control-Allow-Origin=*`, for `Origin`, `Methods` and `Headers`.',
  }),
  'cors-origins': list({
    about: 'The origins of such pages, such as `https://app.example.com`; any, without credentials, when absent.',
    requirement: 'no, any',
  }),
  defaultNotBeforeMinutes: wholeNumber({
    about: 'Minutes before its `iat` for which a token is accepted.',
    fallback: 5,
    max: 1440,
  }),
  clockToleranceSeconds: wholeNumber({
    about:
      'By how many seconds the clocks of the issuer and of this machine may differ. Tokens of [our own issuer](../../guides/own-issuer.md) and of the token service get no tolerance unless you set this.',
    requirement: 'no, `30`, or `0` for our own issuers',
    fallback: clockTolerance,
    max: 300,
  }),
  allowNoIat: flag({ about: 'Accept tokens without `iat`.' }),
  webfingerCredentialLoader: text({ about: 'Not supported; an error when set.' }),
  userLookupClassName: text({
    about: 'Accepted and not used: the claims of the token are the attributes. `check` says so.',
  }),
  target: text({ about: 'Belongs to `webfingerCredentialLoader`; an error when set.' }),
} satisfies ParameterTable

type OAuth2JwtConfig = ReturnType<typeof parseOAuth2Jwt>

function parseOAuth2Jwt(params: Params, issues: Issues, context: ParseContext) {
  const given = readParameters(parameters, params, issues, context)
  for (const name of ['webfingerCredentialLoader', 'target']) {
    if (params.values(name).some((value) => value !== '')) {
      issues.error(params.pathOf(name), `"${name}" is not supported: credentials are not loaded by WebFinger here`)
    }
  }
  if (given.userLookupClassName !== undefined) {
    const message = '"userLookupClassName" is not used: the claims of the token are the attributes'
    issues.warning(params.pathOf('userLookupClassName'), message)
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
  const toleranceIsGiven = params.values('clockToleranceSeconds').some((value) => value !== '')
  return {
    ...given,
    audiences: given.audience,
    /** Undefined if the issuer's discovery document gives the keys. */
    keyName: given.fromWellKnown ? undefined : given.validationKey,
    notBeforeMinutes: given.defaultNotBeforeMinutes,
    /** Undefined if absent: the default depends on whether the issuer is one of our own. */
    clockTolerance: toleranceIsGiven ? given.clockToleranceSeconds : undefined,
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
  written: readonly string[],
  given: readonly string[],
  params: Params,
  issues: Issues,
): CrossOrigin | undefined {
  const headers: string[] = []
  const origins = [...given]
  let methods = allMethods
  for (const [i, entry] of written.entries()) {
    const report = (message: string, level: 'error' | 'warning' = 'error') =>
      issues[level](params.pathOf('cors-headers', i), `"cors-headers": ${message}`)
    const [, name, text = ''] = /^Access-Control-([A-Za-z-]+)=(.*)$/is.exec(entry) ?? []
    const values = text.split(',').map((value) => value.trim())
    switch (name?.toLowerCase()) {
      case undefined:
        if (!isHeaderName(entry)) report(`"${entry}" is not a header name`)
        headers.push(entry)
        break
      case 'allow-origin':
        // Browsers send an origin without a path; OpenUnison's documentation writes a slash after it.
        origins.push(...values.map((value) => value.replace(/\/$/, '')))
        for (const origin of values) if (!isOrigin(origin.replace(/\/$/, ''))) report(`"${origin}" is not an origin`)
        break
      case 'allow-headers':
        for (const header of values) {
          if (header !== '*' && !isHeaderName(header)) report(`"${header}" is not a header name`)
        }
        headers.push(...values.filter((header) => header.toLowerCase() !== 'authorization'))
        break
      case 'allow-methods':
        for (const method of values) if (!/^(?:\*|[A-Z]+)$/.test(method)) report(`"${method}" is not a method`)
        if (!values.includes('*')) methods = values.join(', ')
        break
      case 'allow-credentials':
        if (values.join() !== 'false') report('credentials of pages such as cookies are never allowed', 'warning')
        break
      default:
        report(`"${entry}" has no effect here`, 'warning')
    }
  }
  for (const [i, origin] of given.entries()) {
    if (isOrigin(origin)) continue
    issues.error(
      params.pathOf('cors-origins', i),
      `"cors-origins": "${origin}" is not an origin such as https://app.example.com`,
    )
  }
  if (headers.length === 0 && origins.length === 0) return undefined
  return { headers, methods, origins: origins.length === 0 ? ['*'] : origins }
}

/** A bearer JWT, verified with a pinned key or the issuer's published keys. */
export default defineAuthMechanism({
  className: 'auth.OAuth2JWT',
  aliases: ['com.tremolosecurity.proxy.auth.oauth2.OAuth2JWT'],
  parameters,
  parse: parseOAuth2Jwt,
  callers: ({ issuer, link }) => (link.lookup === undefined ? { issuer } : 'people'),
  create: async (config, host) => createMechanism(config, host, await keysOf(config, host)),
})

/** How many verified tokens are remembered. */
const rememberedTokens = 10_000

interface Remembered {
  readonly outcome: AuthOutcome
  readonly key: VerificationKey
  readonly root: string
}

async function keysOf(config: OAuth2JwtConfig, host: AuthHost): Promise<KeySet> {
  if (config.keyName === undefined) {
    const { issuer } = config
    return new DiscoveredKeySet({ issuer, clock: host.clock, log: host.log, loaded: host.watchIssuer?.(issuer) })
  }
  const key = await host.keys.publicKey(config.keyName)
  if (key === undefined) throw new Error(`there is no key named "${config.keyName}"`)
  return pinnedKeySet(key)
}

function createMechanism(config: OAuth2JwtConfig, host: AuthHost, keys: KeySet): AuthMechanism {
  const { crossOrigin, link } = config
  const tolerance = config.clockTolerance ?? (host.ownsIssuer?.(config.issuer) === true ? 0 : clockTolerance)
  const verifier = createTokenVerifier({ ...config, clockTolerance: tolerance }, keys, host.clock)
  const remembered = new BoundedCache<Remembered>(rememberedTokens, host.clock)
  const refusals = bearerRefusals(config.realm, config.scope)
  const refuse = (reason: string) => refusals.badToken(reason, 'The token does not identify a caller')

  async function verify(token: string, root: string, hash: string): Promise<AuthOutcome> {
    try {
      return await identify(await verifier.verify(token), root, hash)
    } catch (error) {
      if (error instanceof TokenRejected) return refusals.badToken(error.message, error.description)
      throw error
    }
  }

  async function identify({ claims, key, expires }: VerifiedToken, root: string, hash: string): Promise<AuthOutcome> {
    const uid = Object.hasOwn(claims, link.uidAttr) ? claims[link.uidAttr] : undefined
    if (typeof uid !== 'string') return refuse(`the claim "${link.uidAttr}" is missing or no text`)
    const attributes = claimAttributes(claims)
    if (attributes === undefined) return refuse('two claims differ in letter case only')
    const linked = await linkSubject(attributes, link, root, host)
    if (linked.kind === 'refused') return refuse(linked.reason)
    const outcome: AuthOutcome = { kind: 'authenticated', subject: linked.subject }
    remembered.set(hash, { outcome, key, root }, keepUntil(expires))
    return outcome
  }

  /** A token that names a user of the directory is not remembered for long, since the entry may change. */
  function keepUntil(expires: Date): Date {
    if (link.lookup === undefined) return expires
    return new Date(Math.min(expires.getTime(), host.clock().getTime() + linkedForMillis))
  }

  return {
    begin({ request, root }) {
      const bearer = readBearer(request.headers, { bare: true })
      if (bearer.kind === 'none') return refusals.noToken
      if (bearer.kind === 'malformed') return refusals.badHeader(bearer.reason)
      const hash = secretHash(bearer.token)
      const known = remembered.get(hash)
      if (known?.key.current === true && known.root === root && keys.fresh()) return known.outcome
      return verify(bearer.token, root, hash)
    },
    ...(crossOrigin === undefined
      ? {}
      : {
          preflight: (request) => answerPreflight(request, crossOrigin),
          responseHeaders: (request) => crossOriginHeaders(request, crossOrigin),
        }),
  }
}

interface CrossOrigin {
  /** Header names that a page may send beside Authorization; `*` is any. */
  readonly headers: readonly string[]
  readonly methods: string
  /** Origins of such pages; `*` is any. */
  readonly origins: readonly string[]
}

const allMethods = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const exposed = 'ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id'
const preflightSeconds = '600'

/** Whether this can be an entry of `cors-headers`: a header name (RFC 9110 5.6.2). `*` is not one. */
const isHeaderName = (text: string): boolean => text !== '*' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text)

/** Whether this can be an entry of `cors-origins`: `*`, or scheme, host and port as a browser writes them. */
const isOrigin = (text: string): boolean =>
  text === '*' || (URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text)

/** Headers that let a page of the request's origin read the answer. Credentials such as cookies are never allowed. */
function crossOriginHeaders(request: GatewayRequest, settings: CrossOrigin): Readonly<Record<string, string>> {
  if (settings.origins.includes('*')) {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': exposed }
  }
  const origin = header(request, 'origin')
  if (origin === undefined || !settings.origins.includes(origin)) return { vary: 'Origin' }
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, vary: 'Origin' }
}

/** The answer to a preflight request; undefined for other requests and other origins. */
function answerPreflight(request: GatewayRequest, settings: CrossOrigin): GatewayResponse | undefined {
  if (request.method !== 'OPTIONS' || header(request, 'access-control-request-method') === undefined) return undefined
  const origin = header(request, 'origin')
  if (origin === undefined || !settings.origins.some((allowed) => allowed === '*' || allowed === origin))
    return undefined
  return {
    status: 204,
    headers: {
      'access-control-allow-origin': settings.origins.includes('*') ? '*' : origin,
      'access-control-allow-methods': settings.methods,
      'access-control-allow-headers': ['Authorization', ...settings.headers].join(', '),
      'access-control-max-age': preflightSeconds,
      vary: 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers',
    },
  }
}
