import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto'
import { makeCertificate } from '#protocols/x509/certificate.ts'

/** A certificate with its private key, as PEM; what is kept secret and shared by all replicas. */
export interface KeptCertificate {
  readonly certificate: string
  readonly privateKey: string
}

export interface KeptAuthority extends KeptCertificate {
  /** When the API server was told of it, in milliseconds; undefined while it was not. */
  readonly told?: number | undefined
}

export interface WebhookTls {
  /** The newest one last. All are told to the API server. */
  readonly authorities: readonly KeptAuthority[]
  readonly server: KeptCertificate
}

const hour = 3_600_000
const day = 24 * hour
const authorityLife = 365 * day
const serverLife = 90 * day
/** Clocks of API servers may be behind. */
const skew = hour
/** A new authority signs nothing before every API server had time to take up what it was told. */
const settling = day

/**
 * The webhook's TLS as it ought to be at this moment; the same object when all is well. Certificates are renewed after two
 * thirds of their life. A new authority signs a day after the API server was told of it, and an old one is dropped only
 * when nothing it signed is served, so that no call fails in between. Whoever stores the result must do so by compare and
 * swap, and tell `authoritiesOf` to the API server, and store `toldOf`, before it serves the new certificate.
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

/** The same, once the API server knows all authorities; the same object when it did already. */
export function toldOf(tls: WebhookTls, now: Date): WebhookTls {
  if (tls.authorities.every(({ told }) => told !== undefined)) return tls
  const authorities = tls.authorities.map((authority) => ({ ...authority, told: authority.told ?? now.getTime() }))
  return { ...tls, authorities }
}

/** The `caBundle` of the webhook, as PEM. */
export const authoritiesOf = ({ authorities }: WebhookTls): string =>
  authorities.map(({ certificate }) => certificate).join('')

function newAuthority(now: Date): KeptAuthority {
  const { privateKey, publicKey } = keyPair()
  const commonName = `gatehouse-webhook-ca ${now.toISOString().slice(0, 10)}`
  const certificate = makeCertificate({
    commonName,
    issuerName: commonName,
    issuerKey: privateKey,
    publicKey,
    ...period(now, authorityLife),
  })
  return { certificate, privateKey: pem(privateKey) }
}

function newServer(authority: KeptCertificate, names: readonly string[], now: Date): KeptCertificate {
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

const commonNameOf = (certificate: string): string => new X509Certificate(certificate).subject.replace(/^CN=/, '')
const startOf = (certificate: string): number => Date.parse(new X509Certificate(certificate).validFrom)
const endOf = (certificate: string): number => Date.parse(new X509Certificate(certificate).validTo)

const isOver = (certificate: string, now: Date): boolean => endOf(certificate) <= now.getTime()
const isSettled = ({ certificate, told }: KeptAuthority, now: Date): boolean =>
  told !== undefined && now.getTime() >= told + settling && !isOver(certificate, now)
const isDue = (certificate: string, now: Date): boolean =>
  now.getTime() >= startOf(certificate) + ((endOf(certificate) - startOf(certificate)) * 2) / 3

const isSignedBy = (certificate: string, authority: string): boolean =>
  new X509Certificate(certificate).verify(createPublicKey(authority))

function isFor(certificate: string, names: readonly string[]): boolean {
  const present = new X509Certificate(certificate).subjectAltName ?? ''
  const served = present.split(', ').map((name) => name.replace(/^(?:DNS|IP Address):/, ''))
  return served.length === names.length && names.every((name) => served.includes(name))
}
