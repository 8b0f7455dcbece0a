import { BlockList, isIP } from 'node:net'

/** Peers whose X-Forwarded-For, -Proto and -Host headers are believed. Nobody, unless configured. */
export class TrustedProxies {
  readonly #list = new BlockList()
  readonly #any: boolean

  /** Addresses or CIDR ranges; throws an Error for anything else. */
  constructor(ranges: readonly string[]) {
    this.#any = ranges.length > 0
    for (const range of ranges) {
      // An empty prefix must not count as 0, which would be everybody.
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
