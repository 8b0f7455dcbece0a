import { BlockList, isIP } from 'node:net'

/** Peers whose X-Forwarded-For, -Proto and -Host headers are believed. Nobody, unless configured. */
export class TrustedProxies {
  readonly #list = new BlockList()
  readonly #any: boolean

  /** Addresses or CIDR ranges; throws an Error for anything else. */
  constructor(ranges: readonly string[]) {
    this.#any = ranges.length > 0
    for (const range of ranges) {
      const [address = '', prefix] = range.split('/')
      const family = isIP(address)
      const bits = prefix === undefined ? (family === 4 ? 32 : 128) : Number(prefix)
      if (family === 0 || !Number.isInteger(bits)) throw new Error(`not an address or CIDR range: ${range}`)
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
