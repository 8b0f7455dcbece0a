import type { GatewayRequest } from './http.ts'

export type RequestPlace = Pick<GatewayRequest, 'origin' | 'host'>

/** The origins of these hosts, that of the request first. Other hosts are reached as this one: by the same scheme, at the same port. */
export function hostOrigins(hosts: readonly string[], { origin, host: own }: RequestPlace): string[] {
  const origins = hosts.map((host) => {
    if (host === '*' || host === own) return origin
    const other = new URL(origin)
    other.hostname = host
    return other.origin
  })
  return [...new Set([...origins.filter((one) => one === origin), ...origins])]
}
