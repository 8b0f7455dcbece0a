import type { StsEndpointConfig, UrlConfig } from '#config/configuration/configuration.ts'
import { webhookHost, webhookKeys, webhookPath } from '#config/configuration/sts-webhook.ts'
import { BuildContext, type LoadState } from '#config/context/build-context.ts'
import { type ConfigDocument, PartPlace } from '#config/context/config-document.ts'
import { ParamsBuilder } from '#config/context/params.ts'
import { type StsFrame, stsEndpointSchema, stsFrameSchema } from '#config/kinds/sts.ts'
import { Dn } from '#identity/dn.ts'
import type { Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { labelName } from '#protocols/admission/pod-endpoint.ts'
import type { PreparedFilter } from '#sdk/filter/filter.ts'
import type { Rule } from '#sdk/rule/rule.ts'
import { type BuiltEndpoint, buildStsEndpoint } from './endpoint.ts'
import { placeOf } from './issuer.ts'
import { readSubjectIssuers } from './subjects.ts'
import { buildStsWebhook } from './webhook.ts'

/** The application with the URLs of the token endpoints. */
const stsApplication = 'sts.endpoints'
const valueField = 'label_value_environment_variable_name'
const injectorClass = 'filters.StsInjector'
/** As the parameter of that class has it. */
const defaultCredentialSeconds = 3600
const endpointPath = /^(?:\/[A-Za-z0-9._~-]+)+$/
const hostName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
/** Token endpoints authenticate by the subject token, so their URLs are open to everyone. */
const anybody: Rule = { scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }

/** The `sts` block of one values document, with its values substituted: endpoints, and their URLs. */
export function buildSts(value: unknown, document: ConfigDocument, state: LoadState): void {
  const block = isJsonObject(value) ? value['sts'] : undefined
  if (block === undefined) return
  state.draft.stsDocuments.push(document)
  const context = new BuildContext(state, document, stsApplication, undefined)
  const frame = context.part(stsFrameSchema, block, ['sts'])
  if (frame === undefined) return
  for (const name of ['image', 'openunison'] as const) {
    if (frame[name] === undefined) continue
    context.issues.warning(['sts', name], 'is not used: it belongs to the sidecars and the webhook of OpenUnison')
  }
  const hosts = readHosts(frame, context)
  const claimFor = uniqueNames(context)
  const claimKeyPair = sharedKeyPairs(context)
  claimFor(undefined, 'name', webhookKeys, ['sts', 'injector'])
  const issuers = readSubjectIssuers(frame, context)
  const placed: PlacedEndpoint[] = []
  const urls: UrlConfig[] = []
  for (const [i, written] of frame.endpoints.entries()) {
    const at = ['sts', 'endpoints', i]
    const place = new PartPlace(document, at)
    const claim = (word: string, value: string, path: Path) => claimFor(place, word, value, path)
    const spec = context.part(stsEndpointSchema, written, at)
    if (spec === undefined) {
      const name = textIn(written, 'name')
      const lost = unreadUrls(written, name, hosts, place, context)
      state.draft.stsEndpoints.push({ place, name, config: undefined, urls: lost })
      urls.push(...lost)
      continue
    }
    claim('name', spec.name, [...at, 'name'])
    const isFirst = claim('path', spec.path, [...at, 'path'])
    if (!endpointPath.test(spec.path) || /\/\.{1,2}(\/|$)/.test(spec.path)) {
      context.issues.error(
        [...at, 'path'],
        `"${spec.path}" is not a path such as /sts/cloud, without a slash at its end`,
      )
    }
    const built = buildStsEndpoint(spec, frame, issuers, at, context)
    claimKeyPair(place, spec.issuer.keypair ?? spec.name, built.issuer.host, [...at, 'issuer', 'keypair'])
    claim('issuer', built.issuer.url, [...at, 'issuer', 'host'])
    const { custody } = built.config.issuer
    if (custody !== undefined) {
      const key = `${custody.address}/${custody.mount}/${custody.key}`
      claim('Transit key', key, spec.keys?.custody === undefined ? at : [...at, 'keys', 'custody'])
    }
    for (const destination of built.config.issuer.destinations) {
      claim('place to publish', placeOf(destination), spec.publish === undefined ? at : [...at, 'publish'])
    }
    const own = isFirst ? endpointUrls(built, hosts, place, context) : []
    placed.push({ config: built.config, at, place })
    state.draft.stsEndpoints.push({ place, name: spec.name, config: built.config, urls: own })
    urls.push(...own)
  }
  checkVariables(placed, context)
  checkInjector(frame, hosts, placed, context)
  urls.push(...injectorUrls(frame, hosts, context))
  if (urls.length === 0) return
  const config = { name: stsApplication, namespace: undefined, at: context.at(['sts']), azTimeoutMillis: 0 }
  state.draft.applications.push({ config: { ...config, cookies: undefined, urls }, document })
}

const textIn = (value: unknown, name: string): string | undefined => {
  const text = isJsonObject(value) ? value[name] : undefined
  return typeof text === 'string' && text !== '' ? text : undefined
}

/** The addresses of an endpoint that can't be read otherwise: none of them may lead to another application. */
function unreadUrls(
  written: unknown,
  name: string | undefined,
  hosts: readonly string[],
  place: PartPlace,
  context: BuildContext,
): UrlConfig[] {
  const path = textIn(written, 'path')
  if (path === undefined || !endpointPath.test(path)) return []
  const at = [...place.path, 'path']
  const token = name === undefined ? [] : filter('filters.StsToken', { endpoint: name }, at, context)
  return [
    url(hosts, `${path}/token`, token, at, context, place),
    url(hosts, `${path}/issuer-docs`, [], at, context, place),
  ]
}

type EndpointPlace = PartPlace | undefined

/** Each endpoint has its own name, path and issuer; of two that share one, neither is served. */
function uniqueNames(
  context: BuildContext,
): (place: EndpointPlace, word: string, value: string, path: Path) => boolean {
  const taken = new Map<string, { readonly at: string; readonly place: EndpointPlace }>()
  return (place, word, value, path) => {
    const key = JSON.stringify([word, value])
    const earlier = taken.get(key)
    if (earlier === undefined) taken.set(key, { at: context.at(path), place })
    else {
      context.issues.error(path, `another endpoint has the ${word} "${value}" (${earlier.at})`)
      addRivals(earlier.place, place, context)
    }
    return earlier === undefined
  }
}

function addRivals(first: EndpointPlace, later: EndpointPlace, { state }: BuildContext): void {
  if (first !== undefined && later !== undefined) state.draft.rivals.push({ first, later })
}

/**
 * A key that two endpoints share signs for both. Issuers of one host must not share one; those of different hosts
 * may.
 */
function sharedKeyPairs(
  context: BuildContext,
): (endpoint: PartPlace, keypair: string, host: string, path: Path) => void {
  const taken = new Map<string, { readonly host: string; readonly place: string; readonly endpoint: PartPlace }[]>()
  return (endpoint, keypair, host, path) => {
    const others = taken.get(keypair) ?? []
    const sameHost = others.find((other) => other.host === host)
    const [other] = others
    if (sameHost !== undefined) {
      const reason = `another endpoint of the host ${host} has the key pair "${keypair}" (${sameHost.place})`
      context.issues.error(path, `${reason}: name another one; only issuers of different hosts may share a key pair`)
      addRivals(sameHost.endpoint, endpoint, context)
    } else if (other !== undefined) {
      const reason = `the issuer of another host, ${other.host}, has the key pair "${keypair}" as well (${other.place})`
      const effect = 'a given key of that name signs for both, so anyone who gets it can sign tokens of both'
      context.issues.warning(path, `${reason}: ${effect}; give each its own unless they are one service`)
    }
    taken.set(keypair, [...others, { host, place: context.at(path), endpoint }])
  }
}

interface PlacedEndpoint {
  readonly config: StsEndpointConfig
  readonly at: Path
  readonly place: PartPlace
}

/**
 * A pod gets all endpoints of a label at once, so each needs its own variable for the token, and for the file that
 * its preset writes. The value of the annotation is the same for all of them.
 */
function checkVariables(endpoints: readonly PlacedEndpoint[], context: BuildContext): void {
  const taken = new Map<string, { readonly field: string; readonly place: string; readonly endpoint: PartPlace }>()
  for (const { config, at, place } of endpoints) {
    const { label = '', tokenVariable, valueVariable, file } = config.pods ?? {}
    const variables = {
      token_environment_variable_name: tokenVariable,
      [valueField]: valueVariable,
      preset: file?.variable,
    }
    for (const [field, name] of Object.entries(variables)) {
      if (name === undefined || tokenVariable === valueVariable) continue
      const key = JSON.stringify([labelName(label), name])
      const path = field === 'preset' ? [...at, field] : [...at, 'injector', field]
      const earlier = taken.get(key)
      taken.set(key, earlier ?? { field, place: context.at(path), endpoint: place })
      if (earlier === undefined || (earlier.field === valueField && field === valueField)) continue
      const problem = `another endpoint with the label "${label}" sets ${name} too (${earlier.place})`
      const remedy = field === 'preset' ? 'use another label' : 'use another variable or label'
      context.issues.error(path, `${problem}, and a pod can get only one of the two: ${remedy}`)
      addRivals(earlier.endpoint, place, context)
    }
  }
}

/** Settings that would leave pods without the tokens of their labels, or with shorter ones. */
function checkInjector(
  { injector }: StsFrame,
  hosts: readonly string[],
  endpoints: readonly PlacedEndpoint[],
  { issues, state }: BuildContext,
): void {
  const labelled = endpoints.filter(({ config }) => config.pods !== undefined)
  if (injector === undefined) {
    const urls = state.draft.applications.flatMap(({ config }) => config.urls)
    if (urls.some(({ filters }) => filters.some(({ className }) => className === injectorClass))) return
    for (const { at } of labelled) {
      const problem = 'pods with the label get no token, because nothing serves the injector'
      issues.warning([...at, 'injector'], `${problem}: add sts.injector with tokenService`)
    }
    return
  }
  const path = ['sts', 'injector']
  if (labelled.length === 0) issues.warning(path, 'no endpoint has an injector.label, so no pod gets a token')
  const { tokenService, credentialSeconds = defaultCredentialSeconds } = injector
  if (typeof tokenService === 'string' && URL.canParse(tokenService) && !hosts.includes('*')) {
    const { hostname } = new URL(tokenService)
    if (!hosts.includes(hostname)) {
      const problem = `nothing is served for sidecars at "${hostname}": sts.hosts has only ${hosts.join(', ')}`
      issues.warning([...path, 'tokenService'], problem)
    }
  }
  for (const { config, at } of labelled) {
    if (config.endpoint.ttlSeconds <= Number(credentialSeconds)) continue
    const problem = `tokens of pods live at most ${credentialSeconds} s, because none outlives the token it was exchanged for`
    issues.warning([...at, 'ttlSeconds'], `${problem}: raise sts.injector.credentialSeconds, or lower this`)
  }
}

function readHosts(frame: StsFrame, context: BuildContext): readonly string[] {
  return (frame.hosts ?? ['*']).map((host, i) => {
    const lower = host.toLowerCase()
    if (lower !== '*' && !hostName.test(lower)) {
      context.issues.error(['sts', 'hosts', i], `"${host}" is not a host: a name without scheme, port or path, or "*"`)
    }
    return lower
  })
}

function endpointUrls(
  { config, issuer }: BuiltEndpoint,
  hosts: readonly string[],
  place: PartPlace,
  context: BuildContext,
): UrlConfig[] {
  const { path: at } = place
  const { name, path, preset, host_in_openunison: hosted } = config.spec
  const documents = (document: string) => filter('filters.StsDocuments', { endpoint: name, document }, at, context)
  const token = filter('filters.StsToken', { endpoint: name }, at, context)
  const issuerHosts = [issuer.host]
  return [
    url(hosts, `${path}/token`, token, [...at, 'path'], context, place),
    url(hosts, `${path}/issuer-docs`, documents('both'), [...at, 'path'], context, place),
    ...(hosted === true
      ? [
          url(
            issuerHosts,
            `${issuer.path}/.well-known/openid-configuration`,
            documents('discovery'),
            [...at, 'issuer'],
            context,
            place,
          ),
          url(issuerHosts, `${issuer.path}/certs`, documents('keys'), [...at, 'issuer'], context, place),
          ...(preset === 'spiffe'
            ? [url(issuerHosts, `${issuer.path}/bundle`, documents('bundle'), [...at, 'issuer'], context, place)]
            : []),
          // The `token_endpoint` of the discovery document.
          ...(hosts.includes(issuer.host) && issuer.path === path
            ? []
            : [url(issuerHosts, `${issuer.path}/token`, token, [...at, 'issuer'], context, place)]),
        ]
      : []),
  ]
}

/** The webhook that adds sidecars to pods, if the block has it: only on its own listener, if it has one. */
function injectorUrls({ injector }: StsFrame, hosts: readonly string[], context: BuildContext): UrlConfig[] {
  if (injector === undefined) return []
  const { webhook, ...params } = injector
  const path = ['sts', 'injector']
  const { state, issues } = context
  const module = context.module(state.catalog.filters, injectorClass, path)
  if (module === undefined) return []
  const cluster = injectedCluster(injector, context)
  const known = cluster === undefined ? params : { ...params, cluster }
  const prepared = module.prepare(context.params(known, path), issues, context)
  if (webhook === undefined) return [url(hosts, webhookPath, [prepared], path, context)]
  state.draft.stsWebhook = buildStsWebhook(webhook, context)
  return [url([webhookHost], webhookPath, [prepared], path, context)]
}

/** The Kubernetes target whose API server calls: the named one, or the only one. */
function injectedCluster(injector: NonNullable<StsFrame['injector']>, { state }: BuildContext): string | undefined {
  const { cluster, webhook } = injector
  if (cluster !== undefined) return undefined
  const named = isJsonObject(webhook) ? webhook['cluster'] : undefined
  const targets = [...state.draft.targets.values()].map(({ config }) => config)
  const clusters = targets.filter(({ target }) => target.className === 'targets.Kubernetes').map(({ name }) => name)
  return clusters.length === 1 ? clusters[0] : clusters.find((name) => name === named)
}

function filter(
  className: string,
  given: Readonly<Record<string, string>>,
  at: Path,
  context: BuildContext,
): PreparedFilter[] {
  const { state, issues } = context
  const module = context.module(state.catalog.filters, className, at)
  if (module === undefined) return []
  const params = new ParamsBuilder(at)
  for (const [name, value] of Object.entries(given)) params.add(name, value, at, at)
  return [module.prepare(params, issues, context)]
}

function url(
  hosts: readonly string[],
  uri: string,
  filters: readonly PreparedFilter[],
  path: Path,
  context: BuildContext,
  part?: PartPlace,
): UrlConfig {
  const { state, document } = context
  state.draft.claims.push({ document, path, hosts, uri, regex: false, part })
  const at = context.at(path)
  return {
    at: `${at} ${uri}`,
    hosts,
    uri,
    pattern: undefined,
    chain: undefined,
    rules: [anybody],
    filters: filters.map((one) => ({ ...one, at })),
    results: { auSuccess: undefined, auFail: undefined, azSuccess: undefined, azFail: undefined },
  }
}
