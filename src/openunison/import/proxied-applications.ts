import { parse } from 'yaml'
import { placeholder } from '#config/context/substitute.ts'
import { isJsonObject, type JsonObject } from '#kernel/json.ts'
import type { ImportedObject } from './openunison-source.ts'

/** What the charts put behind the reverse proxy of OpenUnison. */
export type ProxiedKind = 'headlamp' | 'dashboard' | 'api'

export interface ImportedUrl {
  readonly application: string
  readonly hosts: readonly string[]
  readonly uri: string
  readonly proxied: ProxiedKind | undefined
  /** Where OpenUnison passes requests on to, without their path. */
  readonly upstream: string
  /** Whether it acts for users with an account of its own, since the API server does not know the issuer. */
  readonly impersonates: boolean
  /** Of an identity provider: the chains of its applications, by client id. */
  readonly clients: Values | undefined
}

/** An identity provider, and the chain that users log in by. */
export interface ImportedIssuer {
  readonly address: string
  readonly chain: string
}

type Values = ReadonlyMap<string, string>

const hostValue = 'OU_HOST'

/** The URLs of all applications, with their values. */
export function importedUrls(objects: readonly ImportedObject[], values: Values): ImportedUrl[] {
  return objects.flatMap(({ kind, name, text }) => {
    if (kind !== 'Application') return []
    return listIn(specOf(text)['urls']).map((url) => {
      const proxyTo = resolve(textIn(url['proxyTo']), values)
      const hosts: readonly unknown[] = Array.isArray(url['hosts']) ? url['hosts'] : []
      return {
        application: name,
        hosts: hosts.map((host) => resolve(textIn(host), values)),
        uri: url['regex'] === true ? '' : resolve(textIn(url['uri']), values),
        proxied: kindOf(name, proxyTo),
        upstream: proxyTo.replace('${fullURI}', ''),
        impersonates: listIn(url['filterChain']).some((one) =>
          /K8sInjectImpersonation$/.test(textIn(one['className'])),
        ),
        clients: isJsonObject(url['idp']) ? clientsOf(url['idp'], values) : undefined,
      }
    })
  })
}

function kindOf(application: string, proxyTo: string): ProxiedKind | undefined {
  if (proxyTo === '') return undefined
  if (proxyTo.includes('${k8s_url}')) return 'api'
  if (application === 'headlamp' || /\bheadlamp\b/.test(proxyTo)) return 'headlamp'
  return application === 'dashboard' || /\bkubernetes-dashboard\b/.test(proxyTo) ? 'dashboard' : undefined
}

/** The application that a PortalUrl leads to; undefined if it leads elsewhere. */
export function applicationOfLink(
  { text }: ImportedObject,
  urls: readonly ImportedUrl[],
  values: Values,
): ImportedUrl | undefined {
  const address = URL.parse(resolve(textIn(specOf(text)['url']), values), `https://${values.get(hostValue)}`)
  if (address === null) return undefined
  const within = (uri: string): boolean =>
    uri !== '' && `${address.pathname}/`.startsWith(uri.endsWith('/') ? uri : `${uri}/`)
  return urls
    .filter(({ hosts, uri }) => within(uri) && (hosts.includes(address.hostname) || hosts.includes('*')))
    .toSorted((a, b) => b.uri.length - a.uri.length)[0]
}

function clientsOf(idp: JsonObject, values: Values): Values {
  const text = (value: unknown): string => resolve(textIn(value), values)
  return new Map(
    listIn(idp['trusts']).flatMap(({ params }) =>
      isJsonObject(params) ? [[text(params['clientID']), text(params['authChainName'])] as const] : [],
    ),
  )
}

/** The identity provider of the API server, which knows it as "kubernetes"; undefined if there is none. */
export function issuerOf(urls: readonly ImportedUrl[]): ImportedIssuer | undefined {
  const issuers = urls.flatMap(({ clients, hosts, uri }) => {
    const chain = clients?.get('kubernetes') ?? ''
    const isPlain = isHost(hosts[0]) && /^[\w./-]+$/.test(uri) && /^[\w.-]+$/.test(chain)
    return isPlain ? [{ address: `https://${hosts[0]}${uri}`, chain }] : []
  })
  return issuers[0]
}

/** The first URL of each kind. */
export const proxiedUrls = (urls: readonly ImportedUrl[]): ReadonlyMap<ProxiedKind, ImportedUrl> =>
  new Map(urls.toReversed().flatMap((url) => (url.proxied === undefined ? [] : [[url.proxied, url] as const])))

/** Only these are written into commands and settings of other programs. */
export const isHost = (text = ''): boolean => /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(text)

const resolve = (text: string, values: Values): string =>
  text.replaceAll(placeholder, (_, name: string, fallback: string | undefined) => values.get(name) ?? fallback ?? '')

function specOf(text: string): JsonObject {
  const value: unknown = parse(text)
  const spec = isJsonObject(value) ? value['spec'] : undefined
  return isJsonObject(spec) ? spec : {}
}

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

const listIn = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])
