import { type GatewayRequest, header } from '#sdk/filter/http.ts'

/** Whether a person's browser asks for a page, so that it can be sent elsewhere to log in. Scripts and APIs cannot. */
export function isNavigation(request: Pick<GatewayRequest, 'method' | 'headers'>): boolean {
  if (request.method !== 'GET') return false
  const mode = header(request, 'sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return /(?:^|[\s,])text\/html(?:[\s,;]|$)/i.test(header(request, 'accept') ?? '')
}

/** Where the person wanted to go: a path of this host and its query, from the request itself and from no parameter. */
export function addressOf(request: Pick<GatewayRequest, 'path' | 'query'>): string {
  const query = request.query.toString()
  // Two slashes at the beginning would name another host.
  const path = `/${request.path.replace(/^[/\\]+/, '')}`
  return query === '' ? path : `${path}?${query}`
}

/** Whether what is posted comes from a page of this origin, as far as the browser says. */
export function isOwnPost(request: Pick<GatewayRequest, 'method' | 'headers' | 'origin'>): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return true
  const site = header(request, 'sec-fetch-site')
  if (site !== undefined) return site === 'same-origin'
  const origin = header(request, 'origin')
  return origin === undefined || origin === request.origin
}
