import { setTimeout as delay } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import { ExpiredList, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type { ObjectChange, Selection, Snapshot, WatchSelection } from '#protocols/kubernetes/object-client.ts'
import type { ClusterObject, ClusterResource } from './cluster.ts'

/** The part of an ObjectClient that an informer needs. */
export interface WatchedObjects {
  snapshot(resource: ClusterResource, most: number, wanted?: Selection): Promise<Snapshot>
  watch(resource: ClusterResource, since: string, wanted: WatchSelection): AsyncIterable<ObjectChange>
}

interface InformerOptions {
  readonly objects: WatchedObjects
  readonly resource: ClusterResource
  /** The only object of interest. */
  readonly name?: string
  /** The maximum number of objects; with more, nothing is known until there are fewer. */
  readonly most: number
  readonly times?: InformerTimes
  /** Called when something changed, or is known for the first time. */
  onChange(): void
  /** Called for each failure; the informer continues. */
  onError(error: unknown): void
}

interface InformerTimes {
  readonly watchSeconds: number
  readonly firstPauseMillis: number
  readonly longestPauseMillis: number
}

const usualTimes: InformerTimes = { watchSeconds: 240, firstPauseMillis: 200, longestPauseMillis: 30_000 }

/**
 * Knows the current objects of one kind in a namespace: a list, then all changes since. After an interruption it
 * continues from the last known revision, or with a new list if the server no longer has that revision. It keeps
 * its objects while the server is unavailable.
 */
export class Informer {
  readonly #options: InformerOptions
  readonly #times: InformerTimes
  readonly #stopping = new AbortController()
  readonly #known = new Map<string, ClusterObject>()
  #isComplete = false
  #failure: unknown
  #running: Promise<void> | undefined

  constructor(options: InformerOptions) {
    this.#options = options
    this.#times = options.times ?? usualTimes
  }

  /** False until the first list was read. A kind that is not served has no objects. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The last failure; undefined after a success. */
  get failure(): unknown {
    return this.#failure
  }

  get objects(): readonly ClusterObject[] {
    return [...this.#known.values()]
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    let since: string | undefined
    let pause = 0
    while (!this.#stopping.signal.aborted) {
      const began = performance.now()
      try {
        since ??= await this.#list()
        for await (const version of this.#changes(since)) {
          since = version
          pause = 0
        }
        this.#failure = undefined
        // A server that ends watches at once must not be called without a pause.
        if (performance.now() - began > this.#times.firstPauseMillis) {
          pause = 0
          continue
        }
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        if (!(error instanceof ExpiredList)) this.#fail(error)
        if (error instanceof ExpiredList || isRefusal(error)) since = undefined
      }
      pause = Math.min(this.#times.longestPauseMillis, Math.max(this.#times.firstPauseMillis, pause * 2))
      await this.#wait(pause * (0.5 + Math.random() / 2))
    }
  }

  async #list(): Promise<string> {
    const { objects, resource, most, name } = this.#options
    const wanted = { signal: this.#stopping.signal, ...selection(name) }
    const { objects: found, version } = await objects.snapshot(resource, most, wanted)
    const before = new Map(this.#known)
    this.#known.clear()
    for (const object of found) this.#known.set(object.metadata.name, object)
    const isSame =
      before.size === found.length && found.every((one) => versionOf(before.get(one.metadata.name)) === versionOf(one))
    const isFirst = !this.#isComplete
    this.#isComplete = true
    this.#failure = undefined
    if (isFirst || !isSame) this.#options.onChange()
    return version
  }

  /** The revisions that were reached. */
  async *#changes(since: string): AsyncGenerator<string> {
    const { objects, resource, most, name } = this.#options
    const seconds = Math.ceil(this.#times.watchSeconds * (0.75 + Math.random() / 4))
    const wanted = { seconds, signal: this.#stopping.signal, ...selection(name) }
    for await (const change of objects.watch(resource, since, wanted)) {
      if (change.kind === 'moment') {
        yield change.version
        continue
      }
      const { metadata } = change.object
      if (change.kind === 'removed') this.#known.delete(metadata.name)
      else this.#known.set(metadata.name, change.object)
      if (this.#known.size > most) {
        throw new GatewayError('TARGET_FAILED', `there are more than ${most} ${resource.plural}`)
      }
      this.#options.onChange()
      yield metadata.resourceVersion
    }
  }

  #fail(error: unknown): void {
    this.#failure = error
    if (error instanceof KindNotServed) {
      const isNews = !this.#isComplete || this.#known.size > 0
      this.#known.clear()
      this.#isComplete = true
      if (isNews) this.#options.onChange()
    }
    this.#options.onError(error)
  }

  async #wait(millis: number): Promise<void> {
    await delay(millis, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {})
  }
}

/** The server answered, and a watch from the same revision would end in the same way. */
const isRefusal = (error: unknown): boolean => error instanceof GatewayError && error.code !== 'TARGET_UNREACHABLE'

const selection = (name: string | undefined): Selection => (name === undefined ? {} : { name })
const versionOf = (object: ClusterObject | undefined): string | undefined => object?.metadata.resourceVersion
