import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'
import {
  bits,
  boolean,
  explicit,
  implicit,
  integer,
  octets,
  oid,
  sequence,
  set,
  time,
  utf8,
} from '#protocols/x509/der.ts'

export interface CertificateOptions {
  readonly commonName: string
  /** Of whoever signs; the certificate's own when it signs itself. */
  readonly issuerName: string
  readonly issuerKey: KeyObject
  /** EC on P-256, as the issuer's. */
  readonly publicKey: KeyObject
  readonly notBefore: Date
  readonly notAfter: Date
  /** DNS names and IPv4 addresses of a server; an authority where absent. */
  readonly names?: readonly string[]
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'))
const keyCertSign = 0b0000_0110
const digitalSignature = 0b1000_0000

/** An X.509 certificate (RFC 5280), as PEM, for what Gatehouse itself serves. */
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
