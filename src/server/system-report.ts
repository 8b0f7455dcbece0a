import { statfs } from 'node:fs/promises'
import process from 'node:process'
import type { ListenerFacts, ReplicaFacts, SystemFacts } from '#features/portal/access/system-facts.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Closable } from '#kernel/scope.ts'
import { version } from '#kernel/version.ts'
import type { Storage } from '#server/composition/stores.ts'

interface SystemParts {
  /** The name of this process. */
  readonly replica: string
  readonly storage: Pick<Storage, 'system' | 'runs' | 'approvals' | 'mails'>
  readonly dataFolder: string
  readonly clock: Clock
  readonly log: Logger
}

const beatMillis = 30_000
/** A replica that missed two beats is not listed. */
const seenMillis = 3 * beatMillis
/** How long an administrator waits for a database that is down. */
const readMillis = 5_000

/** What this process knows about itself and the installation. With PostgreSQL it also records that it is alive. */
export class SystemReport implements Closable {
  readonly #parts: SystemParts
  readonly #own: Omit<ReplicaFacts, 'seen'>
  readonly #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> = Promise.resolve()
  #listeners: () => readonly ListenerFacts[] = () => []

  private constructor(parts: SystemParts, release: string) {
    this.#parts = parts
    this.#own = { name: parts.replica, version: release, started: parts.clock() }
    if (parts.storage.system.kind === 'sqlite') return
    this.#beat()
    this.#timer = setInterval(() => this.#beat(), beatMillis)
    this.#timer.unref()
  }

  static async start(parts: SystemParts): Promise<SystemReport> {
    return new SystemReport(parts, await version())
  }

  /** The listeners open after everything that they serve. */
  showListeners(listeners: () => readonly ListenerFacts[]): void {
    this.#listeners = listeners
  }

  async describe(): Promise<SystemFacts> {
    const { storage, dataFolder, clock } = this.#parts
    const { system } = storage
    const replica = { ...this.#own, seen: clock() }
    const [replicas, queues, bytes, disk] = await Promise.all([
      this.#known('replicas', this.#timer === undefined ? Promise.resolve([replica]) : system.replicas(seenMillis)),
      this.#known('queues', this.#queues()),
      this.#known('size of the database', system.bytes()),
      this.#known('disk', statfs(dataFolder)),
    ])
    return {
      replica,
      ...(replicas === undefined ? {} : { replicas: withOwn(replicas, replica) }),
      node: process.version,
      ...(queues === undefined ? {} : { queues }),
      listeners: this.#listeners(),
      database: { kind: system.kind, ...(bytes === undefined ? {} : { bytes }) },
      ...(disk === undefined
        ? {}
        : { disk: { freeBytes: disk.bavail * disk.bsize, totalBytes: disk.blocks * disk.bsize } }),
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#beating
    if (this.#timer === undefined) return
    const { storage, log } = this.#parts
    await storage.system
      .forget(this.#own.name)
      .catch((err: unknown) =>
        log.warn('could not deregister this replica; others list it until its entry expires', { err }),
      )
  }

  async #queues(): Promise<NonNullable<SystemFacts['queues']>> {
    const { runs, approvals, mails } = this.#parts.storage
    const [ofRuns, { open }, ofMails] = await Promise.all([runs.figures(), approvals.figures(), mails.figures()])
    const { ready, running, waiting, incident, oldestReadyMillis } = ofRuns
    const { queued, failed, unknown, oldestMillis } = ofMails
    return {
      runs: { ready, running, waiting, incident, ...(oldestReadyMillis === undefined ? {} : { oldestReadyMillis }) },
      approvals: { open },
      mails: { queued, failed, unknown, ...(oldestMillis === undefined ? {} : { oldestMillis }) },
    }
  }

  /** Undefined if it can't be read, or not in time. */
  async #known<T>(what: string, read: Promise<T>): Promise<T | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer after ${readMillis} ms`)), readMillis)
    })
    try {
      return await Promise.race([read, late])
    } catch (err) {
      this.#parts.log.warn('a part of the system cannot be described', { what, err })
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  #beat(): void {
    const { storage, log } = this.#parts
    this.#beating = storage.system
      .beat(this.#own)
      .catch((err: unknown) => log.warn('this replica could not report that it is alive', { err }))
  }
}

/** This process is alive even if its last report failed. */
const withOwn = (all: readonly ReplicaFacts[], own: ReplicaFacts): readonly ReplicaFacts[] =>
  all.some(({ name }) => name === own.name) ? all : [...all, own]
