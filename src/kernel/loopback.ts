import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether a host name or an address, with or without brackets, is this machine itself. */
export function isLoopbackHost(host: string): boolean {
  const plain = host
    .replace(/^\[|\]$/g, '')
    .replace(/^::ffff:(?=\d+\.)/i, '')
    .toLowerCase()
  const family = isIP(plain)
  if (family === 0) return plain === 'localhost' || plain.endsWith('.localhost')
  return loopback.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}
