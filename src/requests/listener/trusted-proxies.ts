import { BlockList, isIP } from 'node:net'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'

/** Peers whose X-Forwarded-For, -Proto and -Host headers are trusted. None, unless configured. */
export class TrustedProxies {
  readonly #list = new BlockList()
  readonly #any: boolean
  /** Called for each request whose forwarded headers were ignored. */
  readonly ignored: (peer: string) => void

  /** Addresses or CIDR ranges; throws an Error for anything else. */
  constructor(ranges: readonly string[], ignored: (peer: string) => void = () => {}) {
    this.#any = ranges.length > 0
    this.ignored = ignored
    for (const range of ranges) {
      // An empty prefix must not count as 0, which would match everyone.
      const match = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range)
      const address = match?.[1] ?? ''
      const family = isIP(address)
      const most = family === 4 ? 32 : 128
      const bits = Number(match?.[2] ?? most)
      if (family === 0 || bits > most) throw new Error(`not an address or CIDR range: ${range}`)
      this.#list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
    }
  }

  trusts(address: string): boolean {
    if (!this.#any) return false
    const plain = address.startsWith('::ffff:') ? address.slice(7) : address
    const family = isIP(plain)
    return family !== 0 && this.#list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** How client addresses are determined, for the operator who starts the gateway. */
export const clientAddressText = (ranges: readonly string[]): string =>
  ranges.length === 0
    ? 'Client addresses are those of the connections. Behind a proxy or an ingress, name it with --trusted-proxy: otherwise all of its clients count as one.'
    : `Client addresses come from the X-Forwarded-For header of ${ranges.join(', ')}, and from the connection for other peers.`

const repeatMillis = 10 * 60_000

/**
 * Counts requests whose forwarded headers were ignored, and logs a warning at most every ten minutes. The usual cause is an
 * ingress that isn't a trusted proxy, so that all clients behind it share one address.
 */
export function reportIgnoredHeaders(parts: {
  readonly count: () => void
  readonly log: Logger
  readonly clock: Clock
}): (peer: string) => void {
  let next = 0
  let requests = 0
  return (peer) => {
    parts.count()
    requests++
    const now = parts.clock().getTime()
    if (now < next) return
    next = now + repeatMillis
    parts.log.warn(
      'forwarded headers ignored: the peer is not a trusted proxy, so all clients behind it share its address; if it is your proxy or ingress, name it with --trusted-proxy (trustedProxies in the chart)',
      { peer, requests },
    )
    requests = 0
  }
}
