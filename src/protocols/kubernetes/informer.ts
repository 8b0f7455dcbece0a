import { setTimeout as delay } from 'node:timers/promises'
import { GatewayError } from '#kernel/errors.ts'
import { ExpiredList, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type {
  ListSelection,
  ObjectChange,
  Selection,
  Snapshot,
  WatchSelection,
} from '#protocols/kubernetes/object-client.ts'
import type { ClusterObject, ClusterResource } from './cluster.ts'

/** The part of an ObjectClient that an informer needs. */
export interface WatchedObjects {
  snapshot(resource: ClusterResource, most: number, wanted?: ListSelection): Promise<Snapshot>
  watch(resource: ClusterResource, since: string, wanted: WatchSelection): AsyncIterable<ObjectChange>
}

interface InformerOptions {
  readonly objects: WatchedObjects
  readonly resource: ClusterResource
  /** The only object of interest. */
  readonly name?: string
  /** The maximum number of objects; with more, nothing is known until there are fewer. */
  readonly most: number
  /** Of more objects in one namespace, those beyond it are not known. */
  readonly mostPerNamespace?: number
  /** What is kept of an object. */
  readonly reduce?: (object: ClusterObject) => ClusterObject
  /** What another informer of the same objects knew, to continue from there. */
  readonly resume?: InformerState | undefined
  readonly times?: InformerTimes
  /** Called when something changed, or is known for the first time. */
  onChange(): void
  /** Called for each failure; the informer continues. */
  onError(error: unknown): void
}

/** What an informer knows, for its successor. */
export interface InformerState {
  readonly objects: readonly ClusterObject[]
  readonly version: string
  /** As `heardAt`. */
  readonly heardAt: number
}

interface InformerTimes {
  readonly watchSeconds: number
  readonly firstPauseMillis: number
  readonly longestPauseMillis: number
}

const usualTimes: InformerTimes = { watchSeconds: 240, firstPauseMillis: 200, longestPauseMillis: 30_000 }

/**
 * Knows the current objects of one kind, in a namespace or all: a list, then all changes since. After an interruption it
 * continues from the last known revision, or with a new list if the server no longer has that revision. It keeps
 * its objects while the server is unavailable.
 */
export class Informer {
  readonly #options: InformerOptions
  readonly #times: InformerTimes
  readonly #stopping = new AbortController()
  readonly #known: KnownObjects
  #isComplete = false
  #hasMore = false
  #version: string | undefined
  #heardAt = Number.NEGATIVE_INFINITY
  #failure: unknown
  #running: Promise<void> | undefined

  constructor(options: InformerOptions) {
    this.#options = options
    this.#times = options.times ?? usualTimes
    this.#known = new KnownObjects(options.mostPerNamespace)
    const { resume } = options
    if (resume === undefined) return
    for (const object of resume.objects) this.#known.add(object)
    this.#version = resume.version
    this.#heardAt = resume.heardAt
    this.#isComplete = true
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
    return this.#known.objects
  }

  /** When the server last confirmed what is known, by `performance.now()`. Its watches do so about every minute. */
  get heardAt(): number {
    return this.#heardAt
  }

  /** Undefined before the first list. */
  get state(): InformerState | undefined {
    return this.#version === undefined
      ? undefined
      : { objects: this.objects, version: this.#version, heardAt: this.#heardAt }
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    let since = this.#version
    let pause = 0
    while (!this.#stopping.signal.aborted) {
      const began = performance.now()
      try {
        since ??= await this.#list()
        for await (const version of this.#changes(since)) {
          since = version
          this.#heard(version)
          pause = 0
        }
        this.#heard(since)
        this.#failure = undefined
        // What had no room may have it now.
        if (this.#hasMore) since = undefined
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
    const { objects, resource, most, mostPerNamespace, name } = this.#options
    // Each attempt to list starts counting at zero.
    const keep = () => {
      const found = new KnownObjects(mostPerNamespace)
      this.#hasMore = false
      return (object: ClusterObject) => this.#keep(found, object)
    }
    const wanted = { signal: this.#stopping.signal, keep, ...selection(name) }
    const { objects: found, version } = await objects.snapshot(resource, most, wanted)
    const before = new Map(this.objects.map((one) => [keyOf(one), one]))
    this.#known.clear()
    for (const object of found) this.#known.add(object)
    const isSame =
      before.size === found.length && found.every((one) => versionOf(before.get(keyOf(one))) === versionOf(one))
    const isFirst = !this.#isComplete
    this.#isComplete = true
    this.#failure = undefined
    this.#heard(version)
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
      if (change.kind === 'removed') this.#known.remove(change.object)
      else this.#keep(this.#known, change.object)
      if (this.#known.size > most) {
        throw new GatewayError('TARGET_FAILED', `there are more than ${most} ${resource.plural}`)
      }
      this.#options.onChange()
      yield metadata.resourceVersion
    }
  }

  /** What is kept of the object; undefined if there is no room for it. */
  #keep(known: KnownObjects, object: ClusterObject): ClusterObject | undefined {
    const kept = this.#options.reduce?.(object) ?? object
    if (known.add(kept)) return kept
    this.#hasMore = true
    return undefined
  }

  #heard(version: string): void {
    this.#version = version
    this.#heardAt = performance.now()
  }

  #fail(error: unknown): void {
    this.#failure = error
    if (error instanceof KindNotServed) {
      this.#heardAt = performance.now()
      // Nothing can continue from a revision whose objects are forgotten.
      this.#version = undefined
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

/** Objects by namespace and name, with a limit for each namespace. */
class KnownObjects {
  readonly #objects = new Map<string, ClusterObject>()
  readonly #counts = new Map<string, number>()
  readonly #mostPerNamespace: number

  constructor(mostPerNamespace = Number.POSITIVE_INFINITY) {
    this.#mostPerNamespace = mostPerNamespace
  }

  get size(): number {
    return this.#objects.size
  }

  get objects(): readonly ClusterObject[] {
    return [...this.#objects.values()]
  }

  /** False if it is new and its namespace has as many as it may have. */
  add(object: ClusterObject): boolean {
    const key = keyOf(object)
    if (!this.#objects.has(key)) {
      const { namespace = '' } = object.metadata
      const count = this.#counts.get(namespace) ?? 0
      if (count >= this.#mostPerNamespace) return false
      this.#counts.set(namespace, count + 1)
    }
    this.#objects.set(key, object)
    return true
  }

  remove(object: ClusterObject): void {
    if (!this.#objects.delete(keyOf(object))) return
    const { namespace = '' } = object.metadata
    const left = (this.#counts.get(namespace) ?? 0) - 1
    if (left > 0) this.#counts.set(namespace, left)
    else this.#counts.delete(namespace)
  }

  clear(): void {
    this.#objects.clear()
    this.#counts.clear()
  }
}

/** No name has a slash. */
const keyOf = ({ metadata: { namespace = '', name } }: ClusterObject): string => `${namespace}/${name}`

/** The server answered, and a watch from the same revision would end in the same way. */
const isRefusal = (error: unknown): boolean => error instanceof GatewayError && error.code !== 'TARGET_UNREACHABLE'

const selection = (name: string | undefined): Selection => (name === undefined ? {} : { name })
const versionOf = (object: ClusterObject | undefined): string | undefined => object?.metadata.resourceVersion
