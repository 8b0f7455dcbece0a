import { createPrivateKey, X509Certificate } from 'node:crypto'
import type https from 'node:https'
import { createSecureContext } from 'node:tls'
import type { CertificateWithKey } from '#config/configuration/sts-webhook.ts'
import type { CertificateFacts } from '#features/portal/access/system-facts.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { readSmallFile } from '#kernel/small-file.ts'

export interface TlsFiles {
  readonly certFile: string
  readonly keyFile: string
}

interface CertificateMeter {
  /** When the served certificate expires; undefined if there is none. */
  serves(listener: string, expires: Date | undefined): void
  /** Whether that is the newest one: false while a newer one is unusable. */
  current(listener: string, isCurrent: boolean): void
}

/** A pair that is replaced while it is read is read again. */
const attempts = 3

/**
 * The current certificate chain and private key; reads again if the certificate changes meanwhile, so that they
 * match.
 */
export async function readPair({ certFile, keyFile }: TlsFiles): Promise<CertificateWithKey> {
  for (let attempt = 1; ; attempt++) {
    const certificate = await readSmallFile(certFile)
    const privateKey = await readSmallFile(keyFile)
    if (attempt >= attempts || (await readSmallFile(certFile)) === certificate) return { certificate, privateKey }
  }
}

/** The expiry of a certificate. Throws an Error with the reason for an unusable pair. */
export function checkPair({ certificate, privateKey }: CertificateWithKey): Date {
  const parsed = new X509Certificate(certificate)
  if (!parsed.checkPrivateKey(createPrivateKey(privateKey))) {
    throw new Error('the private key is not that of the certificate')
  }
  // The rest of the chain too.
  createSecureContext({ cert: certificate, key: privateKey })
  return new Date(parsed.validTo)
}

/** Why clients reject the certificate at this time; undefined if it is valid. */
export function timeProblem({ certificate }: Pick<CertificateWithKey, 'certificate'>, now: Date): string | undefined {
  const { validFrom, validTo } = new X509Certificate(certificate)
  if (Date.parse(validTo) <= now.getTime()) return `the certificate expired on ${new Date(validTo).toISOString()}`
  if (Date.parse(validFrom) > now.getTime()) {
    return `the certificate is not valid before ${new Date(validFrom).toISOString()}`
  }
  return undefined
}

/** The public part of a certificate. `problem` is that of its successor. */
export function describeCertificate(served: CertificateWithKey, now: Date, problem?: string): CertificateFacts {
  const { subject, issuer, subjectAltName = '', validFrom, validTo } = new X509Certificate(served.certificate)
  const trouble = problem ?? timeProblem(served, now)
  return {
    subject: subject?.replaceAll('\n', ', ') ?? '',
    issuer: issuer?.replaceAll('\n', ', ') ?? '',
    names: subjectAltName
      .split(', ')
      .flatMap((name) => (name === '' ? [] : [name.replace(/^(?:DNS|IP Address):/, '')])),
    validFrom: new Date(validFrom),
    validTo: new Date(validTo),
    ...(trouble === undefined ? {} : { problem: trouble }),
  }
}

/** New connections use the pair; open ones stay. Throws if the pair is unusable. */
export function replaceCertificate(
  server: https.Server,
  { certificate, privateKey }: CertificateWithKey,
  clientAuthorities: string | undefined,
): void {
  server.setSecureContext({
    cert: certificate,
    key: privateKey,
    minVersion: 'TLSv1.2',
    ca: clientAuthorities,
  })
}

interface CertificateReloadParts {
  /** As in the metrics. */
  readonly listener: string
  readonly files: TlsFiles
  /** What the server started with. */
  readonly served: CertificateWithKey
  readonly server: https.Server
  readonly clock: Clock
  readonly log: Logger
  readonly meter: CertificateMeter
  readonly everyMillis?: number
}

/**
 * Serves a new certificate soon after its files have changed. It compares their content, since Kubernetes swaps a
 * link far above them, which no watch of the files sees. An unusable pair is reported, and the old one stays.
 */
export class CertificateReload implements Closable {
  readonly #parts: CertificateReloadParts
  readonly #timer: NodeJS.Timeout
  #served: CertificateWithKey
  #problem: string | undefined
  #looking: Promise<void> | undefined

  constructor(parts: CertificateReloadParts) {
    this.#parts = parts
    this.#served = parts.served
    const { listener, meter, log, clock } = parts
    meter.serves(listener, checkPair(parts.served))
    meter.current(listener, true)
    const problem = timeProblem(parts.served, clock())
    if (problem !== undefined) log.error('clients refuse the certificate of a listener', { listener, problem })
    this.#timer = setInterval(() => void this.look(), parts.everyMillis ?? 10_000)
    this.#timer.unref()
  }

  /** The certificate that new connections get. */
  describe(): CertificateFacts {
    return describeCertificate(this.#served, this.#parts.clock(), this.#problem)
  }

  /** Looks now. Never rejects. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look(): Promise<void> {
    const { listener, files, server, clock, log, meter } = this.#parts
    try {
      const pair = await readPair(files)
      const { certificate, privateKey } = this.#served
      if (pair.certificate !== certificate || pair.privateKey !== privateKey) {
        const expires = checkPair(pair)
        const problem = timeProblem(pair, clock())
        if (problem !== undefined) throw new Error(problem)
        replaceCertificate(server, pair, undefined)
        this.#served = pair
        meter.serves(listener, expires)
        log.info('a listener serves a new certificate', { listener, expires: expires.toISOString() })
      }
      this.#problem = undefined
      meter.current(listener, true)
    } catch (error) {
      meter.current(listener, false)
      const problem = error instanceof Error ? error.message : String(error)
      if (problem === this.#problem) return
      this.#problem = problem
      log.error('a new certificate cannot be used; the listener keeps the old one', { listener, ...files, error })
    }
  }
}
