import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its private key, as PEM; secret, and shared by all replicas. */
export interface StoredCertificate {
  readonly certificate: string
  readonly privateKey: string
}

export interface StoredAuthority extends StoredCertificate {
  /** When it was registered at the API server, in milliseconds; undefined before. */
  readonly registered?: number | undefined
}

export interface WebhookTls {
  /** The newest one last. All are registered at the API server. */
  readonly authorities: readonly StoredAuthority[]
  readonly server: StoredCertificate
}

const hour = 3_600_000
const day = 24 * hour
const authorityLife = 365 * day
const serverLife = 90 * day
/** Clocks of API servers may be behind. */
const skew = hour
/** A new CA signs nothing before every API server had time to learn it. */
const settling = day

/**
 * The webhook's TLS data as it should be now; the same object if nothing changes. Certificates are renewed after
 * two thirds of their lifetime. A new CA signs a day after its registration at the API server, and an old one is
 * dropped only when nothing it signed is served, so that no call fails in between. The caller must store the result
 * by compare and swap, register `authoritiesOf` at the API server, and store `withRegistration`, before it serves the new
 * certificate.
 */
export function renewWebhookTls(present: WebhookTls | undefined, names: readonly string[], now: Date): WebhookTls {
  if (present === undefined || present.authorities.every(({ certificate }) => isOver(certificate, now))) {
    const authority = newAuthority(now)
    return { authorities: [authority], server: newServer(authority, names, now) }
  }
  let authorities = present.authorities
  const newest = authorities.at(-1)
  if (newest === undefined || isDue(newest.certificate, now)) authorities = [...authorities, newAuthority(now)]

  let server = present.server
  const signer = authorities.find(({ certificate }) => isSignedBy(server.certificate, certificate))
  const settled =
    authorities.findLast((authority) => isSettled(authority, now)) ??
    authorities.find(({ certificate }) => !isOver(certificate, now))
  const isStale = isDue(server.certificate, now) || !isFor(server.certificate, names) || signer === undefined
  if (settled !== undefined && (isStale || signer !== settled)) server = newServer(settled, names, now)

  const serving = authorities.findIndex(({ certificate }) => isSignedBy(server.certificate, certificate))
  if (serving > 0) authorities = authorities.slice(serving)
  const isUnchanged = authorities === present.authorities && server === present.server
  return isUnchanged ? present : { authorities, server }
}

/** The same, once the API server knows all CAs; the same object if it already did. */
export function withRegistration(tls: WebhookTls, now: Date): WebhookTls {
  if (tls.authorities.every(({ registered }) => registered !== undefined)) return tls
  const authorities = tls.authorities.map((authority) => ({
    ...authority,
    registered: authority.registered ?? now.getTime(),
  }))
  return { ...tls, authorities }
}

/** The `caBundle` of the webhook, as PEM. */
export const authoritiesOf = ({ authorities }: WebhookTls): string =>
  authorities.map(({ certificate }) => certificate).join('')

function newAuthority(now: Date): StoredAuthority {
  const { privateKey, publicKey } = keyPair()
  const commonName = `${authorityName} ${now.toISOString().slice(0, 10)}`
  const certificate = makeCertificate({
    commonName,
    issuerName: commonName,
    issuerKey: privateKey,
    publicKey,
    ...period(now, authorityLife),
  })
  return { certificate, privateKey: pem(privateKey) }
}

function newServer(authority: StoredCertificate, names: readonly string[], now: Date): StoredCertificate {
  const { privateKey, publicKey } = keyPair()
  const certificate = makeCertificate({
    commonName: 'gatehouse-webhook',
    issuerName: commonNameOf(authority.certificate),
    issuerKey: createPrivateKey(authority.privateKey),
    publicKey,
    names,
    ...period(now, serverLife),
  })
  return { certificate, privateKey: pem(privateKey) }
}

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const period = (now: Date, life: number) => ({
  notBefore: new Date(now.getTime() - skew),
  notAfter: new Date(now.getTime() + life),
})

/** Whether the certificate was made here. */
export const isOfOwnAuthority = (certificate: string): boolean =>
  new X509Certificate(certificate).issuer.startsWith(`CN=${authorityName} `)

const authorityName = 'gatehouse-webhook-ca'
const commonNameOf = (certificate: string): string => new X509Certificate(certificate).subject.replace(/^CN=/, '')
const startOf = (certificate: string): number => Date.parse(new X509Certificate(certificate).validFrom)
const endOf = (certificate: string): number => Date.parse(new X509Certificate(certificate).validTo)

const isOver = (certificate: string, now: Date): boolean => endOf(certificate) <= now.getTime()
const isSettled = ({ certificate, registered }: StoredAuthority, now: Date): boolean =>
  registered !== undefined && now.getTime() >= registered + settling && !isOver(certificate, now)
const isDue = (certificate: string, now: Date): boolean =>
  now.getTime() >= startOf(certificate) + ((endOf(certificate) - startOf(certificate)) * 2) / 3

const isSignedBy = (certificate: string, authority: string): boolean =>
  new X509Certificate(certificate).verify(createPublicKey(authority))

function isFor(certificate: string, names: readonly string[]): boolean {
  const present = new X509Certificate(certificate).subjectAltName ?? ''
  const served = present.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, ''))
  return served.length === names.length && names.every((name) => served.includes(name))
}

/** The few forms of DER (X.690) that a certificate needs. */

const tag = { boolean: 0x01, integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30, set: 0x31 }

function encoded(kind: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  return Buffer.concat([Buffer.from([kind]), lengthOf(content.length), content])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const hex = length.toString(16)
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex')
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes])
}

const sequence = (...members: readonly Buffer[]): Buffer => encoded(tag.sequence, ...members)
const set = (...members: readonly Buffer[]): Buffer => encoded(tag.set, ...members)
const boolean = (value: boolean): Buffer => encoded(tag.boolean, Buffer.from([value ? 0xff : 0]))
const utf8 = (text: string): Buffer => encoded(tag.utf8, Buffer.from(text))
const octets = (content: Buffer): Buffer => encoded(tag.octets, content)

/** A non-negative number from its bytes, the highest first. */
export function integer(bytes: Buffer): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start += 1
  const short = bytes.subarray(start)
  const isNegative = (short[0] ?? 0) >= 0x80
  return encoded(tag.integer, ...(isNegative ? [Buffer.from([0]), short] : [short]))
}

/** Bits of whole bytes, or fewer if `unused` ones at the end do not count. */
const bits = (content: Buffer, unused = 0): Buffer => encoded(tag.bits, Buffer.from([unused]), content)

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return encoded(tag.oid, ...[first * 40 + second, ...rest].map(base128))
}

function base128(value: number): Buffer {
  const bytes = [value & 0x7f]
  for (let left = value >>> 7; left > 0; left >>>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return Buffer.from(bytes)
}

/** UTCTime until 2049, GeneralizedTime from then on, as RFC 5280 requires. */
export function time(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)
  return at.getUTCFullYear() < 2050
    ? encoded(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : encoded(0x18, Buffer.from(`${digits}Z`))
}

/** `[n]` around whole values (constructed), or instead of a value's own tag (primitive). */
const explicit = (number: number, ...contents: readonly Buffer[]): Buffer => encoded(0xa0 | number, ...contents)
const implicit = (number: number, content: Buffer): Buffer => encoded(0x80 | number, content)

interface CertificateOptions {
  readonly commonName: string
  /** The issuer; the certificate itself if it is self-signed. */
  readonly issuerName: string
  readonly issuerKey: KeyObject
  /** EC on P-256, like the issuer's. */
  readonly publicKey: KeyObject
  readonly notBefore: Date
  readonly notAfter: Date
  /** DNS names and IPv4 addresses of a server; absent for a CA. */
  readonly names?: readonly string[]
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const keyCertSign = 0b0000_0110
const digitalSignature = 0b1000_0000

/** An X.509 certificate (RFC 5280), as PEM, for Gatehouse's own listeners. */
export function makeCertificate(options: CertificateOptions): string {
  const publicKey = options.publicKey.export({ type: 'spki', format: 'der' })
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(serialNumber()),
    ecdsaWithSha256,
    distinguishedName(options.issuerName),
    sequence(time(options.notBefore), time(options.notAfter)),
    distinguishedName(options.commonName),
    publicKey,
    explicit(3, sequence(...extensionsOf(options, publicKey))),
  )
  const signature = sign('sha256', body, options.issuerKey)
  const lines =
    sequence(body, ecdsaWithSha256, bits(signature))
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** 127 random bits, never zero. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16)
  bytes.writeUInt8((bytes.readUInt8(0) & 0x7f) | 0x01, 0)
  return bytes
}

const distinguishedName = (commonName: string): Buffer => sequence(set(sequence(oid('2.5.4.3'), utf8(commonName))))

function extensionsOf({ names, issuerKey }: CertificateOptions, publicKey: Buffer): Buffer[] {
  const issuer = createPublicKey(issuerKey).export({ type: 'spki', format: 'der' })
  const common = [
    extension('2.5.29.14', false, octets(keyIdentifier(publicKey))),
    extension('2.5.29.35', false, sequence(implicit(0, keyIdentifier(issuer)))),
  ]
  if (names === undefined) {
    return [
      ...common,
      extension('2.5.29.19', true, sequence(boolean(true), integer(Buffer.from([0])))),
      extension('2.5.29.15', true, bits(Buffer.from([keyCertSign]), 1)),
    ]
  }
  return [
    ...common,
    extension('2.5.29.19', true, sequence()),
    extension('2.5.29.15', true, bits(Buffer.from([digitalSignature]), 7)),
    extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, sequence(...names.map(alternativeName))),
  ]
}

const extension = (id: string, isCritical: boolean, value: Buffer): Buffer =>
  sequence(oid(id), ...(isCritical ? [boolean(true)] : []), octets(value))

const keyIdentifier = (publicKey: Buffer): Buffer => createHash('sha256').update(publicKey).digest().subarray(0, 20)

const alternativeName = (name: string): Buffer =>
  isIP(name) === 4 ? implicit(7, Buffer.from(name.split('.').map(Number))) : implicit(2, Buffer.from(name, 'ascii'))
