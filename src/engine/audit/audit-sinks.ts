import type { AuditMeter } from '#engine/audit/audit-meter.ts'
import { SinkDelivery } from '#engine/audit/sink-delivery.ts'
import type { DeliveryTimes } from '#engine/events/leased-delivery.ts'
import type { Clock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import type { Logger } from '#kernel/logger.ts'
import type { AuditSinkConfig } from '#sdk/module/configuration.ts'
import type { OwnPlaces } from '#sdk/module/own-file.ts'
import type { AuditSinkStore } from '#storage/audit/audit-sink-store.ts'

export interface AuditSinksParts extends OwnPlaces {
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
  #deliveries: readonly SinkDelivery[] = []
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

  /** Replaces the sinks that this process feeds. */
  configure(configs: ReadonlyMap<string, AuditSinkConfig>): Promise<void> {
    this.#changing = this.#changing.then(() => this.#change(configs))
    return this.#changing
  }

  async #change(configs: ReadonlyMap<string, AuditSinkConfig>): Promise<void> {
    const { log, meter, dataFolder, databaseFile, times } = this.#parts
    await this.#closeAll()
    for (const name of this.#configs.keys()) if (!configs.has(name)) meter.forget(name)
    this.#configs = configs
    this.#isRecorded = false
    await this.#record()
    const deliveries: SinkDelivery[] = []
    for (const [name, { sink }] of configs) {
      try {
        const created = await sink.create({ name, dataFolder, databaseFile })
        deliveries.push(new SinkDelivery({ ...this.#parts, name, owner: this.#owner, sink: created }, times))
      } catch (err) {
        log.error('an audit sink could not be created', { sink: name, err })
      }
    }
    this.#deliveries = deliveries
  }

  /** While the database is unavailable, no sink is fed; retries until it answers. */
  async #record(): Promise<void> {
    try {
      await this.#parts.store.configure(new Map(Array.from(this.#configs, ([name, { start }]) => [name, start])))
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
