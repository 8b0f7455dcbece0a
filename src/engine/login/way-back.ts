import { loginPrefix } from '#engine/login/login-routes.ts'
import type { Routes } from '#engine/pipeline/routes.ts'
import { type GatewayRequest, header } from '#sdk/filter/http.ts'

type Asked = Pick<GatewayRequest, 'headers' | 'host' | 'origin'>

/**
 * Where somebody can go on from a page that ends something: the page of this very host that the browser says it came from,
 * or the start of the only application that people log in to here. Undefined when neither is known.
 */
export const wayBack = (request: Asked, routes: Routes): string | undefined =>
  pageBefore(request, routes) ?? onlyStart(request, routes)

/** A path without its query, which may do something or hold a secret. */
function pageBefore(request: Asked, routes: Routes): string | undefined {
  const before = URL.parse(header(request, 'referer') ?? '')
  if (before === null || before.origin !== request.origin) return undefined
  const { pathname: path } = before
  // Two slashes at the beginning would name another host.
  if (/^[/\\]{2}/.test(path) || path.startsWith(loginPrefix)) return undefined
  const cookies = routes.find(request.host, path)?.application.cookies
  return cookies === undefined || cookies.logoutUri === path ? undefined : path
}

function onlyStart({ host }: Asked, routes: Routes): string | undefined {
  const [application, another] = routes.at(host).filter(({ cookies }) => cookies !== undefined)
  if (application === undefined || another !== undefined) return undefined
  const start = application.urls.find(
    ({ chain, pattern, hosts }) =>
      chain !== undefined && pattern === undefined && (hosts.includes(host) || hosts.includes('*')),
  )
  return start === undefined || start.uri.startsWith(loginPrefix) ? undefined : start.uri
}
