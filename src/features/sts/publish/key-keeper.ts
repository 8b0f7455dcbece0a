import type {
  IssuerDocuments,
  PublicTokenKey,
  PublishDestination,
  TokenIssuer,
} from '#config/configuration/token-keys.ts'
import { parseIssuerUrl, parseTrustedUrl } from '#kernel/address.ts'
import type { Clock } from '#kernel/clock.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { advance, type KeyRing, keyIn, observe, type Sighting } from '#keys/key-ring.ts'
import type { KeyStore } from '#keys/key-store.ts'
import { documentsOf, servedMaxAgeSeconds, type TokenKeyRings } from '#keys/token-key-rings.ts'
import { openExchange } from '#protocols/http/http-client.ts'
import { type FetchLimits, fetchJsonAnswer } from '#protocols/jwt/discovered-key-set.ts'
import { cacheLifetime, discoveryPath, keysPath, unknownLifetimeSeconds } from '#protocols/sts/discovery-document.ts'
import { bundlePath, svidKey } from '#protocols/sts/spiffe.ts'
import {
  destinationName,
  failed,
  noPublication,
  type Publication,
  publicationRecord,
  readBackName,
  readPublications,
  sourceName,
  succeeded,
} from './publication.ts'
import { fingerprint, type IssuerFile, issuerFiles, type Publisher } from './publishers.ts'

/** Counts publications, for metrics. */
export interface KeyMeter {
  published(endpoint: string, destination: string, ok: boolean): void
  /** Whether the signing key can be read at the issuer URL. */
  readable(endpoint: string, ok: boolean): void
  /** Whether the source of keys provides a usable one. */
  source(endpoint: string, ok: boolean): void
}

export const noKeyMeter: KeyMeter = { published() {}, readable() {}, source() {} }

interface KeeperParts {
  readonly rings: TokenKeyRings
  readonly store: KeyStore
  /** Identifies this process. */
  readonly worker: string
  readonly clock: Clock
  readonly log: Logger
  readonly meter: KeyMeter
  open(destination: PublishDestination): Publisher
  readonly readBack?: ReadBack
  readonly random?: () => number
}

export interface PassOutcome {
  readonly ring: KeyRing
  readonly publications: ReadonlyMap<string, Publication>
}

/** A process that is killed while it publishes blocks others for this long. */
export const leaseMillis = 120_000
const putMillis = 30_000
const lookSeconds = { waiting: 60, otherwise: 240 }
/** How often wrong documents at the issuer are written again. */
const repairSeconds = 300

/**
 * Maintains the keys of endpoints: creates due keys, publishes, reads back and applies the passing of time. Only
 * one process at a time does it for an endpoint; the next one sees what it did.
 */
export class KeyKeeper {
  readonly #parts: KeeperParts
  /** Endpoints whose documents this process has written, so that a start restores lost ones. */
  readonly #written = new Set<string>()

  constructor(parts: KeeperParts) {
    this.#parts = parts
  }

  /**
   * Undefined if another process does it, or took over meanwhile; the next pass then writes everything again. With
   * `force`, writes and reads everything, due or not. The signal ends a running write, which counts as failed.
   */
  async pass(issuer: TokenIssuer, force = false, stop?: AbortSignal): Promise<PassOutcome | undefined> {
    const { rings, store, worker, meter } = this.#parts
    const { endpoint } = issuer
    await rings.tend(endpoint).finally(() => meter.source(endpoint, rings.problem(endpoint) === undefined))
    if (!(await this.#claim(endpoint))) return undefined
    try {
      const publications = readPublications((await store.get(endpoint))?.publications ?? {})
      forgetOthers(publications, issuer)
      // What was read before the claim may be outdated.
      const ring = await rings.tend(endpoint)
      await this.#recordSource(endpoint, publications)
      await this.#publish(issuer, ring, publications, { force: force || !this.#written.has(endpoint), stop })
      this.#written.add(endpoint)
      const after = await this.#look(issuer, ring, publications, force)
      // Removed and added keys are published at once.
      const changed = after.keys.map(({ kid }) => kid).join() !== ring.keys.map(({ kid }) => kid).join()
      if (changed) await this.#publish(issuer, after, publications, { force: false, stop })
      if (await store.record(endpoint, worker, publicationRecord(publications))) return { ring: after, publications }
      // The process was suspended for longer than its lease, and may have replaced newer documents with older ones.
      this.#written.delete(endpoint)
      return undefined
    } finally {
      await store.release(endpoint, worker)
    }
  }

  async #publish(
    issuer: TokenIssuer,
    ring: KeyRing,
    publications: Map<string, Publication>,
    { force, stop }: { readonly force: boolean; readonly stop: AbortSignal | undefined },
  ): Promise<void> {
    const { clock, meter, random = Math.random } = this.#parts
    const files = issuerFiles(documentsOf(issuer, ring))
    const wanted = fingerprint(files)
    for (const destination of issuer.destinations) {
      const name = destinationName(destination)
      const before = publications.get(name) ?? noPublication
      const due = before.retryAt === null || clock().getTime() >= before.retryAt
      if (!force && (!due || (before.documents === wanted && before.failures === 0))) continue
      if (!(await this.#claim(issuer.endpoint))) return
      try {
        await this.#put(destination, issuer, files, stop)
        publications.set(name, succeeded(wanted, clock().getTime()))
        await this.#reportPublished(issuer.endpoint, name, ring, before, wanted)
      } catch (error) {
        const after = failed(before, error, clock().getTime(), random())
        publications.set(name, after)
        await this.#reportFailed(issuer.endpoint, name, ring, after, error)
      }
      meter.published(issuer.endpoint, name, publications.get(name)?.failures === 0)
    }
  }

  /** Rewriting existing documents after a start is not an audit event. */
  async #reportPublished(
    endpoint: string,
    destination: string,
    ring: KeyRing,
    before: Publication,
    wanted: string,
  ): Promise<void> {
    const { rings, log } = this.#parts
    const kid = keyIn(ring, 'active')?.kid ?? ''
    const kids = ring.keys.map((key) => key.kid)
    if (before.documents === wanted && before.failures === 0) {
      log.info('keys published again', { endpoint, kid, kids, destination })
      return
    }
    await rings.events.report(endpoint, [{ name: 'published', kid, details: { kids, destination } }])
  }

  /** Audits the first of several failures; the log and the metric have each. */
  async #reportFailed(
    endpoint: string,
    destination: string,
    ring: KeyRing,
    { failures, error }: Publication,
    err: unknown,
  ): Promise<void> {
    const { rings, log } = this.#parts
    const kid = keyIn(ring, 'active')?.kid ?? ''
    const details = { destination, failures, why: error }
    if (failures > 1) log.error('keys not published again', { endpoint, kid, ...details, err })
    else await rings.events.report(endpoint, [{ name: 'publishFailed', kid, details }])
  }

  /** The source of keys is listed with the destinations; one process reports its changes. */
  async #recordSource(endpoint: string, publications: Map<string, Publication>): Promise<void> {
    const { rings, clock } = this.#parts
    const problem = rings.problem(endpoint)
    const before = publications.get(sourceName)
    if (problem === undefined) {
      if (before === undefined) return
      publications.delete(sourceName)
      await rings.events.report(endpoint, [{ name: 'accepted', kid: '' }])
      return
    }
    const after = failed(before ?? noPublication, new Error(problem.reason), clock().getTime(), 0)
    publications.set(sourceName, { ...after, retryAt: null })
    if (before?.error === after.error) return
    await rings.events.report(endpoint, [{ name: problem.event, kid: '', details: { why: problem.reason } }])
  }

  async #put(
    destination: PublishDestination,
    { issuer }: TokenIssuer,
    files: readonly IssuerFile[],
    stop: AbortSignal | undefined,
  ): Promise<void> {
    const timeout = AbortSignal.timeout(putMillis)
    const signal = stop === undefined ? timeout : AbortSignal.any([timeout, stop])
    await this.#parts.open(destination).put(files, signal)
    if (destination.invalidate !== undefined) await invalidate(destination.invalidate, issuer, files, signal)
  }

  async #look(
    issuer: TokenIssuer,
    ring: KeyRing,
    publications: Map<string, Publication>,
    force: boolean,
  ): Promise<KeyRing> {
    const { rings, clock, log, random = Math.random } = this.#parts
    const { endpoint } = issuer
    const before = publications.get(readBackName) ?? noPublication
    if (!force && !this.#isLookDue(ring, before)) return ring
    let sighting: Sighting
    try {
      sighting = await this.#sighting(issuer, ring, publications)
      publications.set(readBackName, succeeded(null, sighting.at))
    } catch (error) {
      publications.set(readBackName, failed(before, error, clock().getTime(), random()))
      log.warn('the documents of an issuer could not be read back', { endpoint, issuer: issuer.issuer, error })
      this.#parts.meter.readable(endpoint, false)
      return ring
    }
    const active = keyIn(ring, 'active')
    const readable = active !== undefined && sighting.kids.has(active.kid)
    this.#parts.meter.readable(endpoint, readable)
    if (!readable) {
      log.error('the issuer does not show the key that signs', { endpoint, issuer: issuer.issuer, kid: active?.kid })
      repair(publications, clock().getTime())
    }
    const after = await rings.update(endpoint, (present, policy, now) =>
      advance(observe(present, sighting), policy, now),
    )
    return after
  }

  #isLookDue(ring: KeyRing, { retryAt }: Publication): boolean {
    const now = this.#parts.clock().getTime()
    if (retryAt !== null && now < retryAt) return false
    const next = keyIn(ring, 'next')
    if (next !== undefined && next.visible === null) return true
    const seconds = next === undefined ? lookSeconds.otherwise : lookSeconds.waiting
    return ring.looked === null || now < ring.looked || now - ring.looked >= seconds * 1000
  }

  async #sighting(
    issuer: TokenIssuer,
    ring: KeyRing,
    publications: ReadonlyMap<string, Publication>,
  ): Promise<Sighting> {
    const { clock } = this.#parts
    const documents = documentsOf(issuer, ring)
    if (issuer.readBack === 'issuer') return (this.#parts.readBack ?? readBack)(issuer, documents, clock)
    const wanted = fingerprint(issuerFiles(documents))
    for (const destination of issuer.destinations) {
      const name = destinationName(destination)
      const { documents: present, failures } = publications.get(name) ?? noPublication
      if (present !== wanted || failures > 0) throw new Error(`not written: ${name}`)
    }
    const { cdnSeconds } = issuer
    const cacheSeconds = cdnSeconds === undefined ? unknownLifetimeSeconds : cdnSeconds + servedMaxAgeSeconds
    return { at: clock().getTime(), kids: new Set(ring.keys.map(({ kid }) => kid)), cacheSeconds }
  }

  #claim(endpoint: string): Promise<boolean> {
    return this.#parts.store.claim(endpoint, this.#parts.worker, leaseMillis)
  }
}

function forgetOthers(publications: Map<string, Publication>, { destinations }: TokenIssuer): void {
  const names = new Set([readBackName, sourceName, ...destinations.map(destinationName)])
  for (const name of publications.keys()) if (!names.has(name)) publications.delete(name)
}

/** Documents that were written a while ago and are not visible are written again. */
function repair(publications: Map<string, Publication>, now: number): void {
  for (const [name, publication] of publications) {
    const old = publication.done !== null && now - publication.done >= repairSeconds * 1000
    if (name !== readBackName && name !== sourceName && old) publications.set(name, { ...publication, documents: null })
  }
}

type Hook = NonNullable<PublishDestination['invalidate']>

/**
 * Sends a cache the changed paths by POST: `{"issuer": ..., "paths": [...]}`. Any status from 200 to 299 is
 * success; redirects are not followed, since the header may contain a secret. Throws a plain Error otherwise.
 */
export async function invalidate(
  { url, header, secret }: Hook,
  issuer: string,
  files: readonly IssuerFile[],
  signal: AbortSignal,
): Promise<void> {
  const base = new URL(issuer).pathname.replace(/\/$/, '')
  const body = JSON.stringify({ issuer, paths: files.map(({ path }) => `${base}/${path}`) })
  const address = parseTrustedUrl(url)
  const headers = {
    'content-type': 'application/json',
    ...(secret === undefined ? {} : { [header ?? 'authorization']: secret }),
  }
  const answer = await openExchange({ method: 'POST', url: address, headers, body }, {}, signal)
  answer.destroy()
  const { statusCode: status = 0 } = answer
  if (status < 200 || status > 299) throw new Error(`${address.origin} answered ${status}`)
}

const limits: FetchLimits = { bytes: 256 * 1024, millis: 10_000 }
/** The limit of Azure. */
const mostKeys = 100

type ReadBack = (issuer: TokenIssuer, documents: IssuerDocuments, clock: Clock) => Promise<Sighting>

/**
 * Reads what a consumer finds at the issuer URL, in the same way: no redirects, bounded. A key counts if it is
 * complete as we would publish it, and its algorithm is announced. Throws a plain Error, for people, if the
 * documents are not those of the issuer.
 */
const readBack: ReadBack = async (issuer, documents, clock) => {
  const base = issuer.issuer
  parseIssuerUrl(base)
  const discovery = await fetchJsonAnswer(new URL(base + discoveryPath), limits)
  if (!isJsonObject(discovery.body)) throw new Error('the discovery document is not a JSON object')
  if (discovery.body['issuer'] !== base) throw new Error('the discovery document names another issuer')
  if (discovery.body['jwks_uri'] !== base + keysPath) throw new Error('the discovery document names other keys')
  const keys = await fetchJsonAnswer(new URL(base + keysPath), limits)
  const found = isJsonObject(keys.body) ? keys.body['keys'] : undefined
  if (!Array.isArray(found)) throw new Error('the key document has no "keys"')
  if (found.length > mostKeys) throw new Error(`the key document has more than ${mostKeys} keys`)
  const algorithms = discovery.body['id_token_signing_alg_values_supported']
  const announced = (alg: string | undefined) => Array.isArray(algorithms) && algorithms.includes(alg ?? '')
  const bundle = documents.bundle && (await fetchJsonAnswer(new URL(base + bundlePath), limits))
  const inBundle = isJsonObject(bundle?.body) && Array.isArray(bundle.body['keys']) ? bundle.body['keys'] : []
  const seen = documents.keys.keys.filter(
    (key) =>
      announced(key['alg']) &&
      found.some((other) => isSameKey(key, other)) &&
      (bundle === undefined || inBundle.some((other) => isSameKey(svidKey(key), other))),
  )
  const lifetimes = [discovery, keys, ...(bundle === undefined ? [] : [bundle])].map(({ headers }) =>
    cacheLifetime(headers, issuer.cdnSeconds),
  )
  return {
    at: clock().getTime(),
    kids: new Set(seen.flatMap(({ kid }) => (kid === undefined ? [] : [kid]))),
    cacheSeconds: Math.max(...lifetimes),
  }
}

const isSameKey = (key: PublicTokenKey, other: unknown): boolean =>
  isJsonObject(other) && Object.entries(key).every(([name, value]) => other[name] === value)

interface KeeperLoopOptions {
  readonly keeper: Pick<KeyKeeper, 'pass'>
  readonly rings: Pick<TokenKeyRings, 'issuers'>
  readonly log: Logger
  readonly everyMillis?: number
}

/** How many endpoints are maintained concurrently. */
const lanes = 4

/** Maintains the keys of all configured endpoints: at start, when it is woken, and every few seconds. */
export class KeeperLoop implements Closable {
  readonly #options: Required<KeeperLoopOptions>
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #again = false
  readonly #stop = new AbortController()

  constructor({ keeper, rings, log, everyMillis = 15_000 }: KeeperLoopOptions) {
    this.#options = { keeper, rings, log, everyMillis }
  }

  start(): void {
    this.wake()
  }

  /** For example after a change of the configuration. */
  wake(): void {
    if (this.#stop.signal.aborted) return
    clearTimeout(this.#timer)
    if (this.#round !== undefined) {
      this.#again = true
      return
    }
    this.#again = false
    this.#round = this.#all().finally(() => {
      this.#round = undefined
      if (this.#stop.signal.aborted) return
      this.#timer = setTimeout(() => this.wake(), this.#again ? 0 : this.#options.everyMillis)
    })
  }

  /** Gives up a running write, which the next start repeats. */
  async close(): Promise<void> {
    this.#stop.abort()
    clearTimeout(this.#timer)
    await this.#round
  }

  async #all(): Promise<void> {
    const waiting = [...this.#options.rings.issuers]
    await Promise.all(Array.from({ length: lanes }, () => this.#lane(waiting)))
  }

  async #lane(waiting: TokenIssuer[]): Promise<void> {
    const { signal } = this.#stop
    for (let issuer = waiting.shift(); issuer !== undefined && !signal.aborted; issuer = waiting.shift()) {
      const { endpoint } = issuer
      await this.#options.keeper.pass(issuer, false, signal).then(
        () => {},
        (error: unknown) =>
          this.#options.log.error('the keys of an endpoint were not looked after', { endpoint, error }),
      )
    }
  }
}
