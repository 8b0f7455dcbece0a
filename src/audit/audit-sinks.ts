import { setTimeout as delay } from 'node:timers/promises'
import type { AuditSinkStore, SinkPositions, SinkTurn } from '#audit/store/audit-sink-store.ts'
import type { AuditSinkConfig } from '#config/configuration/configuration.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { type DeliveryFailure, type DeliveryTimes, type DeliveryTurn, LeasedDelivery } from '#kernel/leased-delivery.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditRecord } from '#sdk/audit/audit-entry.ts'
import type { AuditSink, SinkRecord } from '#sdk/audit/audit-sink.ts'
import type { OwnPlaces } from '#sdk/host/own-file.ts'
import type { AuditMeter } from './audit-anchors.ts'
import { type CopyHealth, copyHealth, type LastAttempt, unavailable } from './copy-health.ts'

interface AuditSinksParts extends OwnPlaces {
  readonly store: AuditSinkStore
  readonly clock: Clock
  readonly log: Logger
  readonly meter: AuditMeter
  readonly times?: Partial<DeliveryTimes>
}

const lookEveryMillis = 2000

/** The audit sinks of this process, across configurations. */
export class AuditSinks {
  readonly #parts: AuditSinksParts
  readonly #owner = newId()
  readonly #timer: NodeJS.Timeout
  #configs: ReadonlyMap<string, AuditSinkConfig> = new Map()
  #setAside: readonly string[] = []
  #deliveries: readonly SinkDelivery[] = []
  #broken: readonly CopyHealth[] = []
  #isRecorded = true
  #looking: Promise<void> | undefined
  #changing: Promise<void> = Promise.resolve()

  constructor(parts: AuditSinksParts) {
    this.#parts = parts
    this.#timer = setInterval(() => {
      this.#looking ??= this.look().finally(() => {
        this.#looking = undefined
      })
    }, lookEveryMillis)
    this.#timer.unref()
  }

  /** Replaces the sinks that this process feeds. Records wait for a sink that is set aside. */
  configure(configs: ReadonlyMap<string, AuditSinkConfig>, setAside: readonly string[] = []): Promise<void> {
    this.#changing = this.#changing.then(() => this.#change(configs, setAside))
    return this.#changing
  }

  async #change(configs: ReadonlyMap<string, AuditSinkConfig>, setAside: readonly string[]): Promise<void> {
    const { log, meter, dataFolder, databaseFile, times } = this.#parts
    await this.#closeAll()
    for (const name of this.#configs.keys()) if (!configs.has(name)) meter.forget(name)
    this.#configs = configs
    this.#setAside = setAside
    this.#isRecorded = false
    await this.#record()
    const deliveries: SinkDelivery[] = []
    const broken: CopyHealth[] = []
    for (const [name, { sink }] of configs) {
      try {
        const created = await sink.create({ name, dataFolder, databaseFile })
        deliveries.push(new SinkDelivery({ ...this.#parts, name, owner: this.#owner, sink: created }, times))
      } catch (err) {
        log.error('an audit sink could not be created', { sink: name, err })
        broken.push(unavailable(name, err))
      }
    }
    this.#deliveries = deliveries
    this.#broken = broken
  }

  /** The health of each AuditSink, as far as this process knows it: one process at a time sends records. */
  async health(): Promise<readonly CopyHealth[]> {
    return [...this.#broken, ...(await Promise.all(this.#deliveries.map((delivery) => delivery.health())))]
  }

  /** While the database is unavailable, no sink is fed; retries until it answers. */
  async #record(): Promise<void> {
    try {
      const starts = new Map(Array.from(this.#configs, ([name, { start }]) => [name, start]))
      await this.#parts.store.configure(starts, this.#setAside)
      this.#isRecorded = true
    } catch (err) {
      this.#parts.log.warn('audit sinks could not be recorded', { err })
    }
  }

  /** Measures how far behind the sinks are. */
  async look(): Promise<void> {
    const { store, clock, meter, log } = this.#parts
    if (!this.#isRecorded) await this.#record()
    try {
      for (const name of this.#configs.keys()) {
        const { records, oldest } = await store.lag(name)
        const seconds = oldest === undefined ? 0 : Math.max(0, clock().getTime() - oldest.getTime()) / 1000
        if (this.#configs.has(name)) meter.lag(name, records, seconds)
      }
    } catch (err) {
      log.warn('the lag of audit sinks could not be read', { err })
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
    await this.#changing
    await this.#closeAll()
  }

  async #closeAll(): Promise<void> {
    const deliveries = this.#deliveries
    this.#deliveries = []
    await Promise.all(deliveries.map((delivery) => delivery.close()))
  }
}

interface SinkDeliveryParts {
  readonly name: string
  readonly sink: AuditSink
  /** Identifies this process among others that feed the same sink. */
  readonly owner: string
  readonly store: AuditSinkStore
  readonly clock: Clock
  readonly log: Logger
  readonly meter: AuditMeter
}

const sinkTimes: DeliveryTimes = { idleMillis: 1000, pushMillis: 15_000, leaseMillis: 45_000 }
/** How many records, and about how many characters, are read and sent at once. */
const batchRecords = 200
const batchChars = 1_000_000

/** Records that the sink accepted and may still lose. */
interface Unsettled {
  readonly positions: SinkPositions
  readonly at: number
}

/**
 * Feeds one sink from the audit, in order and at least once; only one process at a time does so. The position in
 * the database moves after the sink has settled. After a failure, or in another process, everything after it is
 * sent again.
 */
class SinkDelivery {
  readonly #parts: SinkDeliveryParts
  readonly #delivery: LeasedDelivery<SinkTurn>
  #last: LastAttempt

  constructor(parts: SinkDeliveryParts, times: Partial<DeliveryTimes> = {}) {
    const { name, owner, store, clock, log, meter } = parts
    this.#parts = parts
    this.#delivery = new LeasedDelivery({
      clock,
      times: { ...sinkTimes, ...times },
      hasWork: async () => (await store.lag(name)).records > 0,
      claim: (lease) => store.claim(name, owner, lease),
      release: (outcome) => store.release(name, owner, outcome),
      deliver: (turn) => this.#deliver(turn),
      failed: ({ reason }, failures, rest) => {
        meter.failed(name)
        this.#last = { problem: reason }
        const nextSeconds = Math.ceil(rest / 1000)
        log.warn('an audit sink did not take records; they are sent again', {
          sink: name,
          reason,
          failures,
          nextSeconds,
        })
      },
      broke: (err) => log.error('could not deliver records to the audit sink', { sink: name, err }),
    })
  }

  health(): Promise<CopyHealth> {
    return copyHealth(this.#parts.name, this.#parts.sink, this.#last)
  }

  async close(): Promise<void> {
    await this.#delivery.close()
    await this.#parts.sink.close?.()
  }

  async #deliver(turn: DeliveryTurn<SinkTurn>): Promise<DeliveryFailure | undefined> {
    const { name, sink, owner, store, clock, log, meter } = this.#parts
    let sent = turn.claimed.positions
    const unsettled: Unsettled[] = []
    // Records lost before this turn were sent again since, or are sent now.
    sink.hasLost?.()
    while (!turn.closing.aborted) {
      if (!(await turn.isOurs())) return undefined
      if (sink.hasLost?.() === true && unsettled.length > 0) {
        return { reason: 'the connection broke soon after records were sent' }
      }
      const settled = unsettled.findLast(({ at }) => clock().getTime() - at >= sink.settleMillis)
      if (settled !== undefined) {
        if (!(await store.advance(name, owner, settled.positions))) return undefined
        unsettled.splice(0, unsettled.indexOf(settled) + 1)
      }
      const batch = cut(await store.read(sent, batchRecords, batchChars))
      if (batch.length === 0) {
        if (unsettled.length === 0) return undefined
        await delay(Math.min(sink.settleMillis, 250), undefined, { signal: turn.closing }).catch(() => {})
        continue
      }
      const outcome = await sink.send(batch, turn.attempt())
      if (outcome.kind === 'failed') return outcome
      sent = behind(sent, batch)
      turn.succeeded()
      if (this.#last?.problem !== undefined) log.info('an audit sink takes records again', { sink: name })
      this.#last = { problem: undefined }
      meter.sent(name, batch.length)
      if (sink.settleMillis > 0) unsettled.push({ positions: sent, at: clock().getTime() })
      else if (!(await store.advance(name, owner, sent))) return undefined
    }
    return undefined
  }
}

/** As many as fit, at least one. */
function cut(found: readonly AuditRecord[]): SinkRecord[] {
  const records: SinkRecord[] = []
  let chars = 0
  for (const record of found) {
    const lines = auditJsonLines(record)
    chars += lines.reduce((sum, line) => sum + line.length, 0)
    if (records.length > 0 && chars > batchChars) break
    records.push({ link: record.link, lines, time: record.rows[0]?.time ?? new Date(0) })
  }
  return records
}

function behind(positions: SinkPositions, records: readonly SinkRecord[]): SinkPositions {
  const moved = new Map(positions)
  for (const { link } of records) moved.set(link.chain, link.number)
  return moved
}

/** One line with the record of each row: the format of exports and of audit sinks. */
export function auditJsonLines({ link, rows }: AuditRecord): string[] {
  return rows.map((row) => JSON.stringify({ ...row, record: link }))
}
