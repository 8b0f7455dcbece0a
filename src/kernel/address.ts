import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** Whether a host name or an address, with or without brackets, is this machine. */
export function isLoopbackHost(host: string): boolean {
  const plain = host
    .replace(/^\[|\]$/g, '')
    .replace(/^::ffff:(?=\d+\.)/i, '')
    .toLowerCase()
  const family = isIP(plain)
  if (family === 0) return plain === 'localhost' || plain.endsWith('.localhost')
  return loopback.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}

/** `127.0.0.1:8080`, `[::1]:0`, `localhost:80`. Throws an Error with the reason for anything else. */
export function parseHostPort(text: string): { host: string; port: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  if (match?.[1] === undefined || port > 65535) throw new Error(`not HOST:PORT: ${text}`)
  return { host: match[1].replace(/^\[|\]$/g, ''), port }
}

/**
 * What rate limits count as one caller: an IPv4 address, or the /64 network of an IPv6 address, since one
 * subscriber has all of it.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [head = '', tail] = address.split('%', 1)[0]?.toLowerCase().split('::') ?? []
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length)
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...after]
  return groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}

/** 127.0.0.0/8, ::1 and localhost: addresses that only this machine answers. */
export function isLoopback(url: URL): boolean {
  const host = url.hostname
  return host === 'localhost' || host === '[::1]' || (isIPv4(host) && host.startsWith('127.'))
}

/**
 * A URL whose responses are trusted: `https:`, or `http:` on this machine only. Throws a plain Error with the
 * reason.
 */
export function parseTrustedUrl(text: string): URL {
  if (!URL.canParse(text)) throw new Error(`"${text}" is not an absolute URL`)
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new Error('must start with https://')
  if (url.protocol === 'http:' && !isLoopback(url)) {
    throw new Error('http is accepted on this machine only (127.0.0.1, ::1, localhost); use https')
  }
  if (url.username !== '' || url.password !== '') throw new Error('must not hold a user name or password')
  return url
}

/** The same for an issuer identifier (OpenID Connect Discovery 2): also without query and fragment. */
export function parseIssuerUrl(text: string): URL {
  const url = parseTrustedUrl(text)
  if (text.includes('?') || text.includes('#')) throw new Error('must not hold a query or a fragment')
  return url
}
