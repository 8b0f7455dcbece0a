import { type BuiltEndpoint, buildStsEndpoint } from '#config/build/sts-endpoint.ts'
import { placeOf } from '#config/build/sts-issuer.ts'
import { buildStsWebhook } from '#config/build/sts-webhook.ts'
import { BuildContext, type LoadState } from '#config/build-context.ts'
import type { ConfigDocument } from '#config/config-document.ts'
import { ParamsBuilder } from '#config/params.ts'
import { Dn } from '#identity/dn.ts'
import type { Path } from '#kernel/issues.ts'
import { isJsonObject } from '#kernel/json.ts'
import { type StsFrame, stsEndpointSchema, stsFrameSchema } from '#model/sts.ts'
import type { UrlConfig } from '#sdk/configuration.ts'
import type { PreparedFilter } from '#sdk/filter.ts'
import type { Rule } from '#sdk/rule.ts'
import { webhookHost, webhookKeys, webhookPath } from '#sdk/sts-webhook.ts'

/** The application whose URLs are those of the token endpoints. */
export const stsApplication = 'sts.endpoints'
const endpointPath = /^(?:\/[A-Za-z0-9._~-]+)+$/
const hostName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
/** Token endpoints decide by the token that is brought, so everybody may bring one. */
const anybody: Rule = { scope: 'dn', constraint: 'o=Tremolo', dn: Dn.parse('o=Tremolo') }

/** The `sts` block of one values document, its values put in: endpoints, and the URLs that they answer at. */
export function buildSts(value: unknown, document: ConfigDocument, state: LoadState): void {
  const block = isJsonObject(value) ? value['sts'] : undefined
  if (block === undefined) return
  const context = new BuildContext(state, document, stsApplication, undefined)
  const frame = context.part(stsFrameSchema, block, ['sts'])
  if (frame === undefined) return
  const hosts = readHosts(frame, context)
  const claim = uniqueNames(context)
  claim('name', webhookKeys, ['sts', 'injector'])
  const urls: UrlConfig[] = []
  for (const [i, written] of frame.endpoints.entries()) {
    const at = ['sts', 'endpoints', i]
    const spec = context.part(stsEndpointSchema, written, at)
    if (spec === undefined) continue
    claim('name', spec.name, [...at, 'name'])
    const isFirst = claim('path', spec.path, [...at, 'path'])
    if (!endpointPath.test(spec.path) || /\/\.{1,2}(\/|$)/.test(spec.path)) {
      context.issues.error(
        [...at, 'path'],
        `"${spec.path}" is not a path such as /sts/cloud, without a slash at its end`,
      )
    }
    const built = buildStsEndpoint(spec, frame, at, context)
    claim('key pair', spec.issuer.keypair ?? spec.name, [...at, 'issuer', 'keypair'])
    claim('issuer', built.issuer.url, [...at, 'issuer', 'host'])
    for (const destination of built.config.issuer.destinations) {
      claim('place to publish', placeOf(destination), spec.publish === undefined ? at : [...at, 'publish'])
    }
    state.draft.stsEndpoints.push(built.config)
    if (isFirst) urls.push(...endpointUrls(built, hosts, at, context))
  }
  urls.push(...injectorUrls(frame, hosts, context))
  if (urls.length === 0) return
  const config = { name: stsApplication, namespace: undefined, at: context.at(['sts']), azTimeoutMillis: 0 }
  state.draft.applications.push({ config: { ...config, cookies: undefined, urls }, document })
}

/** Each endpoint has a name, a path, a key pair and an issuer of its own: a key that two share speaks for both. */
function uniqueNames(context: BuildContext): (word: string, value: string, path: Path) => boolean {
  const taken = new Map<string, string>()
  return (word, value, path) => {
    const key = JSON.stringify([word, value])
    const earlier = taken.get(key)
    if (earlier === undefined) taken.set(key, context.at(path))
    else context.issues.error(path, `another endpoint has the ${word} "${value}" (${earlier})`)
    return earlier === undefined
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
  at: Path,
  context: BuildContext,
): UrlConfig[] {
  const { name, path, host_in_openunison: hosted } = config.spec
  const documents = (document: string) => filter('filters.StsDocuments', { endpoint: name, document }, at, context)
  const token = filter('filters.StsToken', { endpoint: name }, at, context)
  const issuerHosts = [issuer.host]
  return [
    url(hosts, `${path}/token`, token, [...at, 'path'], context),
    url(hosts, `${path}/issuer-docs`, documents('both'), [...at, 'path'], context),
    ...(hosted === true
      ? [
          url(
            issuerHosts,
            `${issuer.path}/.well-known/openid-configuration`,
            documents('discovery'),
            [...at, 'issuer'],
            context,
          ),
          url(issuerHosts, `${issuer.path}/certs`, documents('keys'), [...at, 'issuer'], context),
          // The `token_endpoint` of the discovery document.
          ...(hosts.includes(issuer.host) && issuer.path === path
            ? []
            : [url(issuerHosts, `${issuer.path}/token`, token, [...at, 'issuer'], context)]),
        ]
      : []),
  ]
}

/** The webhook that puts sidecars into pods, where the block asks for it: on its own listener only, if it has one. */
function injectorUrls({ injector }: StsFrame, hosts: readonly string[], context: BuildContext): UrlConfig[] {
  if (injector === undefined) return []
  const { webhook, ...params } = injector
  const path = ['sts', 'injector']
  const { state, issues } = context
  const module = context.module(state.catalog.filters, 'filters.StsInjector', path)
  if (module === undefined) return []
  const cluster = injectedCluster(injector, context)
  const known = cluster === undefined ? params : { ...params, cluster }
  const prepared = module.prepare(context.params(known, path), issues, context)
  if (webhook === undefined) return [url(hosts, webhookPath, [prepared], path, context)]
  state.draft.stsWebhook = buildStsWebhook(webhook, context)
  return [url([webhookHost], webhookPath, [prepared], path, context)]
}

/** The Kubernetes target whose API server asks: the one that is named, or the only one. */
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
): UrlConfig {
  const { state, document } = context
  state.draft.claims.push({ document, path, hosts, uri, regex: false })
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
