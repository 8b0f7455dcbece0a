import type { LoadResult } from '#config/load/load.ts'
import { type Cause, causeText, type FoundObject, objectKey } from '#config/load/set-aside.ts'
import { isStored } from '#config/sources/stored-objects.ts'
import type { LoadOutcome } from '#config/watch/configuration-source.ts'
import type {
  ConfigurationAccess,
  ConfigurationFacts,
  ConfigurationObject,
  DescribedCaller,
  RequestExplanation,
  SetAsideCause,
} from '#features/portal/access/configuration-access.ts'
import type { Clock } from '#kernel/clock.ts'
import { GatewayError } from '#kernel/errors.ts'
import { withoutSecrets } from '#kernel/secret-values.ts'
import type { Runtime } from '#server/composition/runtime.ts'
import { explainedCaller } from '#server/explain/caller.ts'
import { detailLines } from '#server/explain/explanation.ts'
import { explainRequest } from '#server/explain/request.ts'

type Loaded = Pick<LoadResult, 'issues' | 'found' | 'hash'>
type UseRuntime = <T>(work: (runtime: Runtime) => Promise<T>) => Promise<T>

/** What was loaded when, what of it runs, and what is wrong with the rest. */
export class ConfigurationReport implements ConfigurationAccess {
  readonly #clock: Clock
  #running: { readonly loaded: Loaded; readonly since: Date }
  #read: Loaded
  #latest: ConfigurationFacts['latest']
  #use: UseRuntime | undefined

  /** `first` is what the gateway starts with. */
  constructor(first: Loaded, clock: Clock) {
    const time = clock()
    this.#clock = clock
    this.#read = withoutConfiguration(first)
    this.#running = { loaded: this.#read, since: time }
    this.#latest = { outcome: 'applied', time }
  }

  /** The objects of the running configuration. */
  get served(): readonly FoundObject[] {
    return this.#running.loaded.found
  }

  /** The configuration runs once its modules exist. */
  explainWith(use: UseRuntime): void {
    this.#use = use
  }

  settled(result: Loaded, outcome: LoadOutcome): void {
    const time = this.#clock()
    this.#read = withoutConfiguration(result)
    this.#latest = { outcome, time }
    if (outcome === 'applied') this.#running = { loaded: this.#read, since: time }
  }

  /** The source can't be read; what was read before stays known. */
  unread(): void {
    this.#latest = { outcome: 'unread', time: this.#clock() }
  }

  describe(): ConfigurationFacts {
    const { loaded, since } = this.#running
    return {
      running: { hash: loaded.hash, since },
      latest: this.#latest,
      problems: this.#read.issues.map(({ hasLines, line, column, ...issue }) => ({
        ...issue,
        ...(hasLines ? { line, column } : {}),
      })),
      objects: describeObjects(loaded.found, this.#read.found),
    }
  }

  async explain(method: string, url: URL, caller: DescribedCaller): Promise<RequestExplanation> {
    if (this.#use === undefined) throw new GatewayError('NOT_SUPPORTED', 'the gateway is starting')
    const { allowed, details } = await this.#use((runtime) =>
      explainRequest(runtime, method, url, explainedCaller(caller, runtime.configuration.directoryRoot)),
    )
    return { allowed, lines: detailLines(details).map(withoutSecrets) }
  }
}

/** The result without the objects that it prepared, which would stay in memory. */
const withoutConfiguration = ({ issues, found, hash }: Loaded): Loaded => ({ issues, found, hash })

function describeObjects(running: readonly FoundObject[], read: readonly FoundObject[]): ConfigurationObject[] {
  const isServed = ({ cause }: FoundObject): boolean => cause === undefined
  const known = new Map(running.map((object) => [objectKey(object), object]))
  const present = new Set(read.map(objectKey))
  const gone = running.filter((object) => isServed(object) && !present.has(objectKey(object)))
  return [
    ...read.map((object) => describeObject(object, known.get(objectKey(object)))),
    ...gone.map((object) => describeObject({ ...object, errors: 0, warnings: 0 }, object)),
  ]
}

/** `running` is the object in the running configuration. */
const describeObject = (
  { name, line, cause: _, ...object }: FoundObject,
  running: FoundObject | undefined,
): ConfigurationObject => ({
  ...object,
  ...(name === undefined ? {} : { name }),
  ...(line === undefined ? {} : { line }),
  ...(running?.cause === undefined ? {} : { setAside: causeText(running.cause), cause: describeCause(running.cause) }),
  // The place of a stored object names its version.
  loaded:
    running?.cause === undefined && (isStored(object.file) ? running?.file === object.file : running !== undefined),
})

const describeCause = ({ object, at, message }: Cause): SetAsideCause => ({
  object,
  message,
  ...(at === undefined ? {} : { at }),
})
