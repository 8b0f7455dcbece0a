import type { ChainLink, ChainRunner } from '#requests/routing/chain.ts'
import type { Application } from '#requests/routing/routes.ts'
import type { AuthMechanism } from '#sdk/auth/auth-mechanism.ts'
import { type GatewayRequest, header } from '#sdk/http/http.ts'

export const loginPrefix = '/auth/'

/** Mechanisms by host and by the URI of their own requests. */
export class LoginRoutes {
  readonly #hosts = new Map<string, Map<string, Set<AuthMechanism>>>()
  /** The length of the longest URI. */
  #longest = 0

  constructor(applications: readonly Application[], chains: ChainRunner) {
    for (const { chain, otherChains = [], hosts } of applications.flatMap(({ urls }) => urls)) {
      const links = [...(chain === undefined ? [] : [chain]), ...otherChains].flatMap((one) => chains.reachable(one))
      for (const host of hosts) for (const link of links) this.#add(host, link)
    }
  }

  /** The mechanisms whose URI is the path, or a prefix of it in whole segments; may be empty. */
  find(
    host: string,
    path: string,
  ): { readonly uri: string; readonly mechanisms: readonly AuthMechanism[] } | undefined {
    if (!path.startsWith(loginPrefix)) return undefined
    const own = this.#hosts.get(host)
    const every = this.#hosts.get('*')
    // A path of thousands of slashes must not be tried slash by slash.
    const first = path.length > this.#longest ? path.slice(0, path.lastIndexOf('/', this.#longest)) : path
    for (let uri = first; uri.length > loginPrefix.length; uri = uri.slice(0, Math.max(0, uri.lastIndexOf('/')))) {
      const mechanisms = [...(own?.get(uri) ?? []), ...(every?.get(uri) ?? [])]
      if (mechanisms.length > 0) return { uri, mechanisms }
    }
    return undefined
  }

  #add(host: string, { uri, interactive, mechanism }: ChainLink): void {
    if (uri === undefined || interactive !== true) return
    const path = uri.length > loginPrefix.length ? uri.replace(/\/$/, '') : uri
    const uris = this.#hosts.get(host) ?? new Map<string, Set<AuthMechanism>>()
    this.#hosts.set(host, uris)
    this.#longest = Math.max(this.#longest, path.length)
    uris.set(path, (uris.get(path) ?? new Set()).add(mechanism))
  }
}

/** What follows the URI; undefined for a path that is not below it. */
export function pathBelow(uri: string, path: string): string | undefined {
  const base = uri.replace(/\/$/, '')
  if (path === base) return ''
  return path.startsWith(`${base}/`) ? path.slice(base.length) : undefined
}

/** Whether a browser requests a page, so that it can be redirected to a login. Scripts and APIs can't. */
export function isNavigation(request: Pick<GatewayRequest, 'method' | 'headers'>): boolean {
  if (request.method !== 'GET') return false
  const mode = header(request, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return /(?:^|[\s,])text\/html(?:[\s,;]|$)/i.test(header(request, 'accept') ?? '')
}

/** The requested page: a path of this host and its query, taken from the request itself and never from a parameter. */
export function addressOf(request: Pick<GatewayRequest, 'path' | 'query'>): string {
  const query = request.query.toString()
  // Two leading slashes would name another host.
  const path = `/${request.path.replace(/^[/\\]+/, '')}`
  return query === '' ? path : `${path}?${query}`
}

/** Whether a POST comes from a page of this origin, according to the browser. */
export function isOwnPost(request: Pick<GatewayRequest, 'method' | 'headers' | 'origin'>): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return true
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}
