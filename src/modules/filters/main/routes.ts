import { GatewayError } from '#kernel/errors.ts'
import { badRequest, notFound } from '#modules/shared/http/json-answer.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/filter/http.ts'

/** `names` are the parts of the path that match `*`, decoded, in their order. */
export type Handler = (exchange: Exchange, ...names: string[]) => Promise<GatewayResponse>

export interface Route {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** Below the mount; `*` is any single part. */
  readonly path: string
  readonly handle: Handler
}

/** The path after `/main`, which may be the end of the mount or follow it. */
export function mainPath({ mount, pathInfo }: Pick<Exchange, 'mount' | 'pathInfo'>): string {
  if (mount.endsWith('/main')) return pathInfo
  if (pathInfo === '/main' || pathInfo.startsWith('/main/')) return pathInfo.slice('/main'.length)
  throw notFound(`nothing at "${pathInfo}"`)
}

/** Throws NOT_FOUND, or METHOD_NOT_ALLOWED for a path that has other methods. HEAD is a GET without the body. */
export async function answerRoute(
  routes: readonly Route[],
  exchange: Exchange,
  path: string,
): Promise<GatewayResponse> {
  const { method } = exchange.request
  const wanted = method === 'HEAD' ? 'GET' : method
  const parts = path.split('/').slice(1).map(decode)
  const allowed = new Set<string>()
  for (const route of routes) {
    const names = namesIn(route.path, parts)
    if (names === undefined) continue
    if (route.method !== wanted) {
      allowed.add(route.method)
      continue
    }
    const response = await route.handle(exchange, ...names)
    return method === 'HEAD' ? { status: response.status, headers: response.headers } : response
  }
  if (allowed.size === 0) throw notFound(`nothing at "${path}"`)
  throw new GatewayError('METHOD_NOT_ALLOWED', method, { headers: { allow: [...allowed].sort().join(', ') } })
}

function namesIn(path: string, parts: readonly string[]): string[] | undefined {
  const pattern = path.split('/')
  if (pattern.length !== parts.length) return undefined
  const fits = pattern.every((word, i) => (word === '*' ? parts[i] !== '' : word === parts[i]))
  return fits ? parts.filter((_, i) => pattern[i] === '*') : undefined
}

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
