import { readTrust, warnOfCookie, warnOfGrant } from '#config/build/trust.ts'
import type { UrlConfig } from '#config/configuration/configuration.ts'
import type { IssuerConfig, IssuerTrust } from '#config/configuration/issuer.ts'
import type { BuildContext } from '#config/context/build-context.ts'
import type { Draft, DraftTrust } from '#config/context/draft.ts'
import { ParamsBuilder } from '#config/context/params.ts'
import { unservedClass } from '#config/context/unknown-class.ts'
import type { UrlSpec } from '#config/kinds/application.ts'
import type { TrustSpec } from '#config/kinds/trust.ts'
import { checkGivenKey } from '#config/sts/issuer.ts'
import { parseFilter } from '#identity/filter/filter-text.ts'
import type { Issues, Path } from '#kernel/issues.ts'
import { isForbiddenKey } from '#kernel/json.ts'
import type { PreparedFilter } from '#sdk/filter/filter.ts'
import { type MappingRule, prepareMapping } from '#sdk/mapper/mapping.ts'
import { choice, flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { serviceTokenSeconds } from '#sdk/target-module/service-tokens.ts'

const classNames = ['idp.OpenIDConnect', 'com.tremolosecurity.idp.providers.OpenIDConnectIdP']
const issuerUri = /^\/auth\/idp\/([A-Za-z0-9._-]{1,64})$/
const reservedClaims = new Set(['iss', 'aud', 'exp', 'iat', 'nbf', 'jti', 'auth_time', 'nonce', 'azp', 'acr', 'amr'])
const usualClaims = [
  'act',
  'may_act',
  'at_hash',
  'c_hash',
  's_hash',
  'sid',
  'events',
  '_claim_names',
  '_claim_sources',
  'cnf',
]
const daySeconds = 86_400
/** A program that copied a replaced refresh token can use it for so long without being noticed. */
const mostGraceMillis = 600_000
/** Applications authenticate themselves, and the issuer's own rules apply to users when they log in. */
const anybodyText = '(|(objectClass=*)(!(objectClass=*)))'
const anybody: Rule = { scope: 'filter', constraint: anybodyText, filter: parseFilter(anybodyText) }

type IdpSpec = NonNullable<UrlSpec['idp']>

/** The endpoint under which the keys of an issuer are stored. */
const issuerEndpoint = (name: string): string => `idp:${name}`

/** The references to a trust: its name or client id, after a name of its issuer. */
export const trustNames = (issuerName: string, trust: IssuerTrust): string[] =>
  [trust.name, trust.clientId].map((one) => `${issuerName} ${one}`)

/** A URL with an `idp`: the issuer, and the handler of its URL. `built` is the rest of the URL. */
export function buildIssuer(spec: UrlSpec, built: UrlConfig, path: Path, context: BuildContext): UrlConfig {
  const { idp } = spec
  const { state, issues } = context
  if (idp === undefined) return built
  const at = [...path, 'idp']
  const name = readName(spec, idp, path, issues)
  if (name === undefined) return built
  checkFilterChain(spec, built, path, issues)
  const config = readIssuer(spec, idp, { name, built, at, context })
  addToDraft({ config, document: context.document, hasChain: built.chain !== undefined }, path, context)
  const module = context.module(state.catalog.filters, 'filters.Issuer', at)
  if (module === undefined) return built
  const filterParams = new ParamsBuilder(at)
  filterParams.add('issuer', name, at, at)
  const prepared = module.prepare(filterParams, issues, context)
  const summary = [...prepared.summary, ...summaryOf(config)]
  const filter = { ...prepared, chains: chainsOf(config), summary, at: context.at(at) }
  return { ...built, chain: undefined, rules: [anybody], filters: [filter] }
}

/** Undefined if this can't be an issuer, which is then reported. */
function readName({ uri, regex }: UrlSpec, { className }: IdpSpec, path: Path, issues: Issues): string | undefined {
  if (!classNames.includes(className)) {
    const unserved = unservedClass('identity provider', className)
    const message = unserved ?? `no identity provider "${className}"; there is ${classNames[0]}`
    issues.error([...path, 'idp', 'className'], message)
    return undefined
  }
  const name = issuerUri.exec(uri.replace(/\/$/, ''))?.[1]
  if (name !== undefined && regex !== true && !isForbiddenKey(name)) return name
  issues.error([...path, 'uri'], `the uri of an identity provider is /auth/idp/<name>, not "${uri}"`)
  return undefined
}

function checkFilterChain(spec: UrlSpec, built: UrlConfig, path: Path, issues: Issues): void {
  const written = spec.filterChain ?? []
  const isUsable = ({ hasNoEffect, subjectFilter }: PreparedFilter): boolean =>
    hasNoEffect === true || subjectFilter !== undefined
  if (built.filters.length < written.length || !built.filters.every(isUsable)) {
    issues.error(
      [...path, 'filterChain'],
      'an identity provider runs only filters that change the attributes of the user: say in mappings what claims are',
    )
  }
}

interface IssuerPlace {
  readonly name: string
  /** The rest of the URL. */
  readonly built: UrlConfig
  readonly at: Path
  readonly context: BuildContext
}

function readIssuer(spec: UrlSpec, idp: IdpSpec, { name, built, at, context }: IssuerPlace): IssuerConfig {
  const { state, issues } = context
  const params = context.params(idp.params, [...at, 'params'], idp.secretParams, [...at, 'secretParams'])
  const given = readParameters(issuerParameters, params, issues, context)
  warnOfUnused(given, params, issues)
  const mapped = readClaims(idp.mappings, at, context)
  const rules =
    given.updateClaimsClassName === undefined
      ? mapped
      : updatedClaims(given.updateClaimsClassName, mapped, params.pathOf('updateClaimsClassName'), issues)
  const trusts = readTrusts(spec, given['trusts.namespace'], at, context)
  const keypair = given.jwtSigningKey ?? issuerEndpoint(name)
  if (given.jwtSigningKey !== undefined) {
    checkGivenKey(keypair, given.algorithm, params.pathOf('jwtSigningKey'), context)
  }
  return {
    name,
    application: context.placed.name,
    at: context.at(at),
    mount: `/auth/idp/${name}`,
    hosts: built.hosts,
    rules: built.rules,
    subjectFilters: built.filters.flatMap(({ subjectFilter }) => subjectFilter ?? []),
    claims: prepareMapping(rules, issues, context),
    claimNames: rules.map(({ attribute }) => attribute),
    trusts,
    deviceChain: built.chain ?? weakest(trusts, state.draft.chains) ?? '',
    amr: readAmr(given.authChainToAmr, params, context),
    refreshGraceMillis: given.refreshTokenGraceMillis,
    keys: {
      endpoint: issuerEndpoint(name),
      issuer: `https://${built.hosts.find((host) => host !== '*') ?? 'localhost'}/auth/idp/${name}`,
      algorithm: given.algorithm,
      keypair,
      maxTokenSeconds: Math.max(serviceTokenSeconds, ...trusts.map(({ tokenSeconds }) => tokenSeconds)),
      claims: rules.map(({ attribute }) => attribute),
      rotateSeconds: given.rotateDays * daySeconds,
      // The key document is served from the ring itself, and never from a copy.
      readBack: 'written',
      cdnSeconds: 0,
      destinations: [],
    },
  }
}

function warnOfUnused(given: ParsedParameters<typeof issuerParameters>, params: Params, issues: Issues): void {
  for (const unused of unusedIssuerParameters) {
    if (params.values(unused).some((value) => value !== '')) {
      const reason = /^trust/.test(unused)
        ? 'trusts are read from the configuration'
        : 'issuers store sessions and tokens in the database of Gatehouse'
      issues.warning(params.pathOf(unused), `"${unused}" is not used: ${reason}`)
    }
  }
  if (given['cors-headers'].length > 0) {
    const message = 'not used: pages of the origins of the redirect addresses of a trust may call the issuer'
    issues.warning(params.pathOf('cors-headers'), `"cors-headers" is ${message}`)
  }
}

function addToDraft(issuer: Draft['issuers'][number], path: Path, { state, issues }: BuildContext): void {
  const earlier = state.draft.issuers.find((other) => other.config.name === issuer.config.name)
  if (earlier !== undefined) {
    issues.error([...path, 'uri'], `another identity provider is named "${issuer.config.name}" (${earlier.config.at})`)
    state.draft.rivals.push({ first: earlier.document, later: issuer.document })
  } else {
    state.draft.issuers.push(issuer)
  }
}

const chainsOf = ({ trusts, deviceChain }: IssuerConfig): string[] =>
  [...new Set([...trusts.map(({ chain }) => chain), deviceChain])].filter((chain) => chain !== '')

/** The issuer without the applications whose Trust is set aside. */
export function withoutClients(
  { config, hasChain }: Draft['issuers'][number],
  clients: ReadonlySet<string>,
  { chains }: Pick<Draft, 'chains'>,
): IssuerConfig {
  const trusts = config.trusts.filter(({ clientId }) => !clients.has(clientId))
  if (trusts.length === config.trusts.length) return config
  return { ...config, trusts, deviceChain: hasChain ? config.deviceChain : (weakest(trusts, chains) ?? '') }
}

/** The URL of an issuer that has lost applications. */
export function withIssuer(url: UrlConfig, issuers: readonly IssuerConfig[]): UrlConfig {
  const issuer = issuers.find(({ at }) => url.filters.some((filter) => filter.at === at))
  if (issuer === undefined) return url
  const now = summaryOf(issuer)
  const filters = url.filters.map((filter) => ({
    ...filter,
    chains: chainsOf(issuer),
    summary: filter.summary.map((line) => now.find(({ label }) => label === line.label) ?? line),
  }))
  return { ...url, filters }
}

/** For `explain`: the URL itself is open to applications, and these rules apply to users. */
const summaryOf = ({ trusts, rules }: IssuerConfig): { readonly label: string; readonly value: string }[] => [
  { label: 'applications', value: trusts.map(describeTrust).join(', ') },
  {
    label: 'who may log in',
    value: rules.map(({ scope, constraint }) => `${scope} ${constraint}`).join(', or ') || 'nobody',
  },
]

function describeTrust({ clientId, chain, exchange, redirectUris }: IssuerTrust): string {
  if (exchange !== undefined)
    return `${clientId} (exchanges tokens for ${exchange.audiences.join(', ')}; chain ${chain})`
  return redirectUris.length === 0 ? `${clientId} (by token exchange only)` : `${clientId} (chain ${chain})`
}

/** By chain. OpenUnison writes each as `chain=value`. */
function readAmr(texts: readonly string[], params: Params, context: BuildContext): ReadonlyMap<string, string> {
  return new Map(
    texts.flatMap((text, i): [string, string][] => {
      const path = params.pathOf('authChainToAmr', i)
      const [, chain, value] = /^\s*([^=]+?)\s*=\s*(\S(?:.*\S)?)\s*$/s.exec(text) ?? []
      if (chain === undefined || value === undefined) {
        context.issues.error(path, `"authChainToAmr": must be "chain=value", not "${text}"`)
        return []
      }
      context.refer('chain', chain, path, 'warning')
      return [[chain, value]]
    }),
  )
}

function readClaims(mappings: IdpSpec['mappings'], at: Path, { issues }: BuildContext): MappingRule[] {
  const path = [...at, 'mappings', 'map']
  const rules = (mappings?.map ?? []).flatMap((entry, i): MappingRule[] => {
    const attribute = entry.targetAttributeName
    const here = [...path, i, 'targetAttributeName']
    if (reservedClaims.has(attribute) || usualClaims.includes(attribute) || isForbiddenKey(attribute)) {
      issues.error(here, `the claim "${attribute}" cannot be made from an attribute`)
      return []
    }
    const source = entry.targetAttributeSource
    return [{ attribute, sourceType: entry.sourceType, source, path: [...path, i, 'targetAttributeSource'] }]
  })
  if (mappings?.strict === false) {
    issues.warning([...at, 'mappings', 'strict'], 'claims are always those of the map and no others')
  }
  if (!rules.some(({ attribute }) => attribute === 'sub')) {
    issues.error(mappings === undefined ? at : path, 'the claim "sub" must be mapped: it identifies the user')
  }
  return rules
}

const addClusterGroups = 'com.tremolosecurity.oidc.k8s.AddClusterGroupsToClaims'

/** With the claim `groups` that OpenUnison's class makes of the groups of the user and of the claim `cluster`. */
function updatedClaims(className: string, mapped: MappingRule[], path: Path, issues: Issues): MappingRule[] {
  if (className !== addClusterGroups) {
    const message = `there is only ${addClusterGroups}; say in mappings what the claims are`
    issues.error(path, `"updateClaimsClassName": ${message}`)
    return mapped
  }
  const cluster = mapped.find(({ attribute }) => attribute === 'cluster')
  if (cluster?.sourceType !== 'static' || !/^[A-Za-z0-9][\w.-]*$/.test(cluster.source)) {
    issues.error(
      path,
      '"updateClaimsClassName": needs a static claim "cluster" with the name of the cluster in mappings',
    )
    return mapped
  }
  const groups = { attribute: 'groups', sourceType: 'custom', path } as const
  return [
    ...mapped.filter(({ attribute }) => attribute !== groups.attribute),
    { ...groups, source: `mappers.ClusterGroups|${cluster.source}` },
  ]
}

type TrustField = 'clientId' | 'authChainName' | 'redirectURI'

/** Inline trusts, and the Trust objects. A Trust that can't belong to the issuer has the error itself. */
function readTrusts(spec: UrlSpec, namespace: string | undefined, at: Path, context: BuildContext): IssuerTrust[] {
  const { state, issues } = context
  const inside = (spec.idp?.trusts ?? []).map((written, i) => {
    const path = [...at, 'trusts', i]
    const trust = readInside(written, path, context)
    const report = (_: TrustField, message: string) => issues.error([...path, 'name'], message)
    const warn = (message: string) => issues.warning([...path, 'name'], message)
    return { trust, what: `the trust "${written.name}" of this identity provider`, document: undefined, report, warn }
  })
  const objects = [...state.draft.trusts.values()]
    .filter((object) => namespace === undefined || object.namespace === undefined || object.namespace === namespace)
    .map(({ trust, name, document }) => {
      const filed = state.issues.for(document)
      const report = (field: TrustField, message: string) => filed.error(['spec', field], message)
      const warn = (message: string) => filed.warning(['spec', 'authorizedAudiences'], message)
      return { trust, what: `the Trust "${name}"`, document, report, warn }
    })
  const all = [...inside, ...objects]
  const ids = new Set(all.map(({ trust }) => trust.clientId))
  const exchangedFor = new Set(all.flatMap(({ trust }) => trust.exchange?.audiences ?? []))
  const clients = new Map<string, (typeof objects)[number] | (typeof inside)[number]>()
  return all.flatMap((one): IssuerTrust[] => {
    const { trust, document, report, warn } = one
    const earlier = clients.get(trust.clientId)
    if (earlier !== undefined) {
      report('clientId', `${earlier.what} has the client id "${trust.clientId}" too`)
      if (earlier.document !== undefined && document !== undefined) {
        state.draft.rivals.push({ first: earlier.document, later: document })
      }
      return []
    }
    clients.set(trust.clientId, one)
    if (trust.redirectUris.length === 0 && trust.exchange === undefined && !exchangedFor.has(trust.clientId)) {
      report(
        'redirectURI',
        'is empty, so no user can log in: only a client among the authorizedAudiences of a trust with isSts may have none',
      )
    }
    for (const audience of trust.exchange?.audiences ?? []) {
      if (!ids.has(audience)) warn(`no trust of the identity provider has the client id "${audience}"`)
    }
    const chain = trust.chain ?? (spec.authChain === '' ? undefined : spec.authChain)
    if (chain === undefined) {
      report(
        'authChainName',
        `is required, because the URL of the identity provider (${context.at(at)}) has no authChain`,
      )
      return []
    }
    return [{ ...trust, chain }]
  })
}

function readInside(written: NonNullable<IdpSpec['trusts']>[number], path: Path, context: BuildContext): DraftTrust {
  const { issues } = context
  const params = context.params(written.params, [...path, 'params'], written.secretParams, [...path, 'secretParams'])
  const given = readParameters(trustParameters, params, issues, context)
  if (given.clientSecret === undefined && !given.publicEndpoint && !params.isSecret('clientSecret')) {
    issues.error(params.pathOf('clientSecret'), '"clientSecret" is required unless publicEndpoint is true')
  }
  if (given.enableClientCredentialsGrant) warnOfGrant(params.pathOf('enableClientCredentialsGrant'), issues)
  if (given.tokenCookieName !== undefined) warnOfCookie(params.pathOf('tokenCookieName'), issues)
  const places: Partial<Record<keyof TrustSpec, string>> = { clientId: 'clientID' }
  const number = (name: 'codeTokenSkewMilis' | 'accessTokenTimeToLive' | 'accessTokenSkewMillis') => {
    const text = given[name]
    if (text === undefined || /^\d{1,12}$/.test(text)) return text === undefined ? undefined : Number(text)
    issues.error(params.pathOf(name), `"${name}": must be a number of milliseconds, not "${text}"`)
    return undefined
  }
  return readTrust(
    {
      name: written.name,
      label: given.label,
      clientId: given.clientID,
      clientSecret: given.clientSecret,
      publicEndpoint: given.publicEndpoint,
      redirectUris: given.redirectURI,
      postLogoutRedirectUris: given.postLogoutRedirectURI,
      chain: given.authChainName,
      codeTokenSkewMilis: number('codeTokenSkewMilis'),
      accessTokenTimeToLive: number('accessTokenTimeToLive'),
      accessTokenSkewMillis: number('accessTokenSkewMillis'),
      signedUserInfo: given.signedUserInfo,
      verifyRedirect: given.verifyRedirect,
      enableDeviceGrant: given.enableDeviceGrant,
      isSts: given.isSts,
      stsImpersonation: given.stsImpersonation,
      stsDelegation: given.stsDelegation,
      authorizedAudiences: given.authorizedAudiences,
      clientAzRules: given.clientAzRules,
      subjectAzRules: given.subjectAzRules,
    },
    (field, index) => params.pathOf(places[field] ?? field, index),
    context,
  )
}

/** The chain with the lowest level: the application of a typed code is not known yet, and may require more later. */
function weakest(trusts: readonly IssuerTrust[], chains: Draft['chains']): string | undefined {
  const level = (chain: string): number => chains.get(chain)?.config.level ?? Number.POSITIVE_INFINITY
  const loggedIn = trusts.filter(({ redirectUris, exchange }) => redirectUris.length > 0 && exchange === undefined)
  return loggedIn.map(({ chain }) => chain).toSorted((one, other) => level(one) - level(other))[0]
}

/** Where OpenUnison stored the state of its issuers; here that is in Gatehouse's own database. */
const unusedAbout =
  'Not used: issuers store sessions and tokens in the database of Gatehouse, and trusts are read from the configuration.'

export const unusedIssuerParameters = [
  'sessionStoreClassName',
  'k8sTarget',
  'k8sNameSpace',
  'trustConfigurationClassName',
  'trusts.k8starget',
  'sessionIdIdpName',
  'sessionIdTrustName',
  'driver',
  'url',
  'user',
  'password',
  'maxCons',
  'maxIdleCons',
  'dialect',
  'validationQuery',
  'hibernateConfig',
] as const

const unused = text({ about: unusedAbout })

/** Parameters of an `idp`. */
export const issuerParameters = {
  jwtSigningKey: text({
    about:
      'The name of the key that signs: a private key of that name in the `keys/` folder or in a secret is used; otherwise keys are made, and replaced in time.',
  }),
  algorithm: choice(['RS256', 'ES256'], { about: 'The signature algorithm.', fallback: 'RS256' }),
  rotateDays: wholeNumber({
    about: 'Days after which a generated key is replaced; 0 for never.',
    fallback: 90,
    max: 3650,
  }),
  authChainToAmr: list({
    about:
      'Each `chain=value`: ID tokens of logins by that chain have the claim `amr` with the value. Without it they have none.',
  }),
  'trusts.namespace': text({
    about: 'Only `Trust` objects of this namespace, and those of none, belong to the issuer; all when absent.',
  }),
  'cors-headers': list({
    about: 'Not used: pages of the origins of a trust’s redirect addresses may call the issuer. `check` says so.',
  }),
  refreshTokenGraceMillis: wholeNumber({
    about:
      'For how many milliseconds a refresh token that was just replaced is still accepted, for programs that refresh at the same time: both get the same new one. After that, a token that is used again was copied, and everything that belongs to it ends.',
    fallback: 0,
    max: mostGraceMillis,
  }),
  updateClaimsClassName: text({
    about:
      'Only `com.tremolosecurity.oidc.k8s.AddClusterGroupsToClaims`: the claim `groups` has those groups of the user that count in the cluster that the static claim `cluster` names.',
  }),
  sessionStoreClassName: unused,
  k8sTarget: unused,
  k8sNameSpace: unused,
  trustConfigurationClassName: unused,
  'trusts.k8starget': unused,
  sessionIdIdpName: unused,
  sessionIdTrustName: unused,
  driver: unused,
  url: unused,
  user: unused,
  password: text({ about: unusedAbout, secret: true }),
  maxCons: unused,
  maxIdleCons: unused,
  dialect: unused,
  validationQuery: unused,
  hibernateConfig: unused,
}

const millis = (about: string) => text({ about })

/** Parameters of a trust inside an `idp`. */
export const trustParameters = {
  clientID: text({ about: 'The client id of the application.', required: true }),
  clientSecret: text({ about: 'Its secret; required unless `publicEndpoint`.', secret: true }),
  publicEndpoint: flag({
    about:
      'A public client without a secret, which must use PKCE, unless each redirect address is a port of 127.0.0.1 or [::1].',
  }),
  redirectURI: list({
    about:
      'The exact redirect addresses; on `localhost` and `127.0.0.1` with any port. Required, except for token exchange.',
  }),
  postLogoutRedirectURI: list({ about: 'Where users may be redirected after a logout that the application started.' }),
  label: text({ about: 'The name of the application that users see; its name when absent.' }),
  codeLastMileKeyName: text({ about: 'Not used: codes are random and stored as hashes.' }),
  authChainName: text({
    about: 'The chain with which users log in; the `authChain` of the URL when absent.',
    reference: 'chain',
  }),
  codeTokenSkewMilis: millis('How long a code is good for, in milliseconds; 60000 when absent.'),
  accessTokenTimeToLive: millis('How long access and id tokens are good for, in milliseconds; 60000 when absent.'),
  accessTokenSkewMillis: millis('How long before it was made an id token is valid, for clocks that are behind.'),
  signedUserInfo: flag({ about: 'Userinfo returns a signed JWT.' }),
  verifyRedirect: flag({ about: 'Must be true: a redirect is always verified.', fallback: true }),
  enableDeviceGrant: flag({ about: 'Devices without a browser may log in with a code that a user types (RFC 8628).' }),
  enableClientCredentialsGrant: flag({ about: 'Not used: the grant is not offered. `check` says so.' }),
  tokenCookieName: text({ about: 'Not used: tokens are not kept in cookies. `check` says so.' }),
  isSts: flag({ about: 'It exchanges tokens of users for tokens of other applications (RFC 8693).' }),
  stsImpersonation: flag({ about: 'With `isSts`: the new token does not name the caller.' }),
  stsDelegation: flag({ about: 'With `isSts`: the new token names the actor, by its own token, in the claim `act`.' }),
  authorizedAudiences: list({ about: 'With `isSts`: the client ids of the applications that new tokens may be for.' }),
  clientAzRules: list({ about: 'With `isSts`: rules as `scope;constraint`; callers and actors must pass one.' }),
  subjectAzRules: list({
    about: 'With `isSts`: rules as `scope;constraint`; the user whose token is exchanged must pass one.',
  }),
}
