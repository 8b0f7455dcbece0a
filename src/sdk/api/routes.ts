import { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { badRequest, notFound } from './json-answer.ts'

/** `names` are the parts of the path in braces, decoded, in their order. */
export type Handler<P> = (parts: P, exchange: Exchange, ...names: string[]) => Promise<GatewayResponse>

/** Handlers by method and path, such as `GET /approvals/{id}`. A part in braces is any single part. */
export type Routes<P> = Readonly<Record<string, Handler<P>>>

/**
 * The path below `name`, such as `/main`, which may be the end of the mount or follow it. Throws NOT_FOUND for another
 * path.
 */
export function pathBelow(name: string, { mount, pathInfo }: Pick<Exchange, 'mount' | 'pathInfo'>): string {
  if (mount.endsWith(name)) return pathInfo
  if (pathInfo === name || pathInfo.startsWith(`${name}/`)) return pathInfo.slice(name.length)
  throw notFound(`nothing at "${pathInfo}"`)
}

/** Throws NOT_FOUND, or METHOD_NOT_ALLOWED for a path that has other methods. HEAD is a GET without the body. */
export async function answerRoute<P>(
  routes: Routes<P>,
  parts: P,
  exchange: Exchange,
  path: string,
): Promise<GatewayResponse> {
  const { method } = exchange.request
  const given = path.split('/').map(decode)
  const allowed = new Set<string>()
  for (const [route, handle] of Object.entries(routes)) {
    const [routeMethod = '', pattern = ''] = route.split(' ')
    const names = namesIn(pattern.split('/'), given)
    if (names === undefined) continue
    if (routeMethod === (method === 'HEAD' ? 'GET' : method)) {
      const { body, ...head } = await handle(parts, exchange, ...names)
      return method === 'HEAD' || body === undefined ? head : { ...head, body }
    }
    allowed.add(routeMethod === 'GET' ? 'GET, HEAD' : routeMethod)
  }
  if (allowed.size === 0) throw notFound(`nothing at "${path}"`)
  throw methodNotAllowed(method, [...allowed].sort())
}

function namesIn(pattern: readonly string[], given: readonly string[]): string[] | undefined {
  if (pattern.length !== given.length) return undefined
  const isName = (word: string | undefined): boolean => word?.startsWith('{') === true
  const fits = pattern.every((word, i) => (isName(word) ? given[i] !== '' : word === given[i]))
  return fits ? given.filter((_, i) => isName(pattern[i])) : undefined
}

/** Throws METHOD_NOT_ALLOWED for another method. */
export function allowMethods(method: string, ...allowed: readonly string[]): void {
  if (!allowed.includes(method)) throw methodNotAllowed(method, allowed)
}

export const methodNotAllowed = (method: string, allowed: readonly string[]): GatewayError =>
  new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: allowed.join(', ') } })

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch (cause) {
    throw new GatewayError('BAD_REQUEST', 'a path that does not decode', { cause })
  }
}

/** The query's values by name. Rejects an unknown or repeated parameter, which would change the result silently. */
export function readQuery<const N extends string>(
  query: URLSearchParams,
  names: readonly N[],
  many: readonly NoInfer<N>[] = [],
): Readonly<Record<N, readonly string[]>> {
  const isName = (name: string): name is N => names.some((known) => known === name)
  for (const name of query.keys()) {
    if (!isName(name)) throw badRequest(`There is no query parameter "${name.slice(0, 80)}".`)
    if (!many.includes(name) && query.getAll(name).length > 1) throw badRequest(`${name} may be given once.`)
  }
  const read = names.map((name) => [name, query.getAll(name)])
  return Object.fromEntries(read) as Record<N, readonly string[]>
}

export function readLimit([text]: readonly string[], fallback: number, max: number): number {
  if (text === undefined) return fallback
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= max) return number
  throw badRequest(`limit must be a whole number from 1 to ${max}.`)
}
