import type { LoadResult } from '#config/load/load.ts'
import { type ConfigResource, objectPlace } from '#config/sources/cluster-documents.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { KindNotServed, ObjectMissing } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import type { LoadOutcome } from './configuration-source.ts'
import { type ObjectReading, objectVerdict, type ReadOutcome, statusToWrite } from './object-status.ts'

export interface WatchedKind {
  readonly resource: ConfigResource
  readonly informer: { readonly objects: readonly ClusterObject[] }
}

interface StatusParts {
  readonly objects: {
    replaceStatus(resource: ClusterResource, name: string, object: Readonly<Record<string, unknown>>): Promise<unknown>
  }
  readonly kinds: readonly WatchedKind[]
  readonly namespace: string
  readonly clock: Clock
  readonly log: Logger
}

interface Generation {
  readonly uid: string
  readonly generation: number
}

/** By the place of their object. */
type Generations = ReadonlyMap<string, Generation>

const writesAtOnce = 4
const notStarted = 'the configuration is in order but could not be started; the log of the gateway says why'

/**
 * Writes into each object's `status` whether it is served. Writes only changes, and only if `mayWrite` says so;
 * skips an object that changed since it was read, because it will be read again.
 */
export class ObjectStatusWriter {
  mayWrite: () => boolean = () => false
  readonly #parts: StatusParts
  readonly #read = new WeakMap<LoadResult, Generations>()
  readonly #withoutStatus = new Set<string>()
  #outcome: ReadOutcome | undefined
  #last: Generations = new Map()
  #running: Generations = new Map()
  readonly #reported = new Map<string, Generation>()
  #writing: Promise<void> = Promise.resolve()

  constructor(parts: StatusParts) {
    this.#parts = parts
  }

  /** For all known objects. */
  generations(): Generations {
    return new Map(
      this.#parts.kinds.flatMap(({ resource, informer }) =>
        informer.objects.map((object) => [this.#place(resource, object), generationOf(object)] as const),
      ),
    )
  }

  /** The objects that were read for this result. */
  remember(result: LoadResult, generations: Generations): void {
    this.#read.set(result, generations)
  }

  settle(result: LoadResult, outcome: LoadOutcome): void {
    this.#last = this.#read.get(result.origin ?? result) ?? new Map()
    if (outcome === 'applied') this.#running = servedOf(this.#last, result)
    const failure = outcome === 'failed' ? notStarted : undefined
    const { issues, found } = result
    this.#outcome = { issues, found, applied: outcome === 'applied', failure }
  }

  /** The same content as in the last result was read from objects that may differ. */
  repeat(result: LoadResult): void {
    this.#last = this.#read.get(result) ?? this.#last
    if (this.#outcome?.applied === true) this.#running = servedOf(this.#last, result)
  }

  /** One pass at a time. Never throws. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#pass())
    return this.#writing
  }

  async #pass(): Promise<void> {
    const outcome = this.#outcome
    if (outcome === undefined || !this.mayWrite()) return
    const all = this.#parts.kinds.flatMap(({ resource, informer }) =>
      informer.objects.map((object) => ({ resource, object })),
    )
    try {
      await inParallel(all, writesAtOnce, ({ resource, object }) => this.#report(resource, object, outcome))
    } catch (err) {
      this.#parts.log.warn('the status of an object could not be written', { err })
    }
  }

  async #report(resource: ConfigResource, object: ClusterObject, outcome: ReadOutcome): Promise<void> {
    const place = this.#place(resource, object)
    const present = generationOf(object)
    const { plural } = resource
    if (!isSame(this.#last.get(place), present) || this.#withoutStatus.has(plural)) return
    const reading: ObjectReading = { place, runs: isSame(this.#running.get(place), present) }
    const { clock, objects, namespace, log } = this.#parts
    const verdict = objectVerdict(reading, outcome)
    const status = statusToWrite(object.content['status'], verdict, present.generation, clock())
    if (status === undefined || !this.mayWrite()) return
    const { group, version } = resource
    try {
      const address = { group, version, plural, namespace }
      await objects.replaceStatus(address, object.metadata.name, { ...object.content, status })
    } catch (error) {
      if (error instanceof KindNotServed) {
        this.#withoutStatus.add(plural)
        log.warn('objects of this kind have no status: apply deploy/crds', { plural })
      } else if (isAway(error)) {
        throw error
      } else if (!isOutdated(error)) {
        this.#refused(place, present, error)
      }
    }
  }

  /** Logged once for each generation, since it is retried every few seconds. */
  #refused(place: string, present: Generation, err: unknown): void {
    if (isSame(this.#reported.get(place), present)) return
    this.#reported.set(place, present)
    this.#parts.log.warn('the status of an object could not be written', { place, err })
  }

  #place({ kind }: ConfigResource, { metadata }: ClusterObject): string {
    return objectPlace(kind.kind, this.#parts.namespace, metadata.name)
  }
}

function servedOf(generations: Generations, { found }: LoadResult): Generations {
  const aside = new Set(found.flatMap(({ file, cause }) => (cause === undefined ? [] : [file])))
  return new Map([...generations].filter(([place]) => !aside.has(place)))
}

function generationOf({ metadata: { uid }, content: { metadata } }: ClusterObject): Generation {
  const generation = isJsonObject(metadata) ? metadata['generation'] : undefined
  return { uid, generation: typeof generation === 'number' ? generation : 0 }
}

const isSame = (known: Generation | undefined, present: Generation): boolean =>
  known?.uid === present.uid && known.generation === present.generation

const isAway = (error: unknown): boolean => error instanceof GatewayError && error.code === 'TARGET_UNREACHABLE'

/** Changed or removed since it was read; the watch reports its current state too. */
const isOutdated = (error: unknown): boolean =>
  error instanceof ObjectMissing || (error instanceof GatewayError && error.code === 'VERSION_MISMATCH')
