import type { AuditStore } from '#audit/store/audit-store.ts'
import { type AuditAnchorConfig, defaultAnchorMillis } from '#config/configuration/configuration.ts'
import type { AuditAnchor } from '#database/audit-seal.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditSink } from '#sdk/audit/audit-sink.ts'
import type { OwnPlaces } from '#sdk/host/own-file.ts'
import { type CopyHealth, copyHealth, type LastAttempt, unavailable } from './copy-health.ts'

interface AuditAnchorsParts extends OwnPlaces {
  readonly audit: AuditStore
  readonly clock: Clock
  readonly log: Logger
  readonly meter: AuditMeter
}

/** The services that anchors use. */
interface Place {
  readonly name: string
  readonly intervalMillis: number
  keep(anchor: AuditAnchor): Promise<string | undefined>
  health?(): Promise<CopyHealth>
  close?(): Promise<void> | void
  /** The time of the last comparison, and the last anchored heads. */
  lookedAt: number
  kept: string
}

const lookEveryMillis = 1000
const sendMillis = 10_000

/**
 * Writes the signed heads of the audit outside the database after they moved: to the log, and to each AuditAnchor
 * of the configuration. Every process does so.
 */
export class AuditAnchors {
  readonly #parts: AuditAnchorsParts
  readonly #timer: NodeJS.Timeout
  readonly #log: Place
  #places: readonly Place[] = []
  #broken: readonly CopyHealth[] = []
  #last: AuditAnchor | undefined
  #working: Promise<void> = Promise.resolve()

  constructor(parts: AuditAnchorsParts) {
    this.#parts = parts
    const lookedAt = parts.clock().getTime()
    this.#log = {
      name: 'log',
      intervalMillis: defaultAnchorMillis,
      lookedAt,
      kept: '',
      keep: async (anchor) => {
        parts.log.info('audit anchor', { anchor })
        return undefined
      },
    }
    this.#timer = setInterval(() => this.#next(() => this.#keepDue(false)), lookEveryMillis)
    this.#timer.unref()
  }

  configure(configs: ReadonlyMap<string, AuditAnchorConfig>): Promise<void> {
    return this.#next(async () => {
      const { dataFolder, databaseFile, clock, log } = this.#parts
      await this.#closePlaces()
      const places: Place[] = []
      const broken: CopyHealth[] = []
      for (const [name, { sink, intervalMillis }] of configs) {
        try {
          const created = await sink.create({ name, dataFolder, databaseFile })
          let last: LastAttempt
          places.push({
            name,
            intervalMillis,
            lookedAt: clock().getTime(),
            kept: '',
            keep: async (anchor) => {
              last = { problem: await send(created, anchor) }
              return last.problem
            },
            health: () => copyHealth(name, created, last),
            close: () => created.close?.(),
          })
        } catch (err) {
          log.error('an audit anchor could not be created', { anchor: name, err })
          broken.push(unavailable(name, err))
        }
      }
      this.#places = places
      this.#broken = broken
    })
  }

  /** The health of each AuditAnchor. */
  async health(): Promise<readonly CopyHealth[]> {
    return [...this.#broken, ...(await Promise.all(this.#places.flatMap((place) => place.health?.() ?? [])))]
  }

  /** Anchors the records written since the last anchor. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#next(() => this.#keepDue(true))
    await this.#closePlaces()
  }

  /** One after the other; never throws. */
  #next(work: () => Promise<void>): Promise<void> {
    this.#working = this.#working.then(work)
    return this.#working
  }

  async #keepDue(isLast: boolean): Promise<void> {
    const { clock, log, audit } = this.#parts
    const now = clock().getTime()
    const due = [this.#log, ...this.#places].filter((place) => isLast || now - place.lookedAt >= place.intervalMillis)
    if (due.length === 0) return
    try {
      const anchor = await audit.anchor()
      for (const place of due) place.lookedAt = now
      if (anchor === undefined) return
      this.#compare(anchor)
      for (const place of due) await this.#keep(place, anchor)
    } catch (err) {
      log.warn('the audit could not be anchored', { err })
    }
  }

  async #keep(place: Place, anchor: AuditAnchor): Promise<void> {
    const { log, meter } = this.#parts
    const heads = JSON.stringify(anchor.heads)
    if (place.kept === heads) return
    const reason = await place.keep(anchor)
    meter.anchored(place.name, reason === undefined ? 'kept' : 'failed')
    if (reason === undefined) place.kept = heads
    else log.warn('an audit anchor was not kept', { anchor: place.name, reason })
  }

  /** A chain never gets shorter. If it did, someone restored an older database while this process ran. */
  #compare(anchor: AuditAnchor): void {
    const before = this.#last
    this.#last = anchor
    const shorter = before?.heads.filter(
      ({ chain, number }) => (anchor.heads.find((head) => head.chain === chain)?.number ?? 0) < number,
    )
    if (shorter !== undefined && shorter.length > 0) {
      const chains = shorter.map(({ chain }) => chain)
      this.#parts.log.error('the audit has fewer records than before; run "gatehouse audit verify"', { chains })
    }
  }

  async #closePlaces(): Promise<void> {
    const places = this.#places
    this.#places = []
    for (const place of places) await place.close?.()
  }
}

/** The error, if it failed. */
async function send(sink: AuditSink, anchor: AuditAnchor): Promise<string | undefined> {
  const link = { chain: -1, number: Date.parse(anchor.time), hash: anchor.mac }
  const record = { link, lines: [JSON.stringify(anchor)], time: new Date(anchor.time) }
  const outcome = await sink.send([record], AbortSignal.timeout(sendMillis))
  return outcome.kind === 'failed' ? outcome.reason : undefined
}

export interface AuditMeter {
  /** The sink took these records. */
  sent(sink: string, records: number): void
  /** An attempt failed. */
  failed(sink: string): void
  /** How many records the sink lacks, and the age of the oldest of them. */
  lag(sink: string, records: number, seconds: number): void
  /** The sink is no longer configured. */
  forget(sink: string): void
  /** An anchor was written, or failed. */
  anchored(anchor: string, outcome: 'kept' | 'failed'): void
}
