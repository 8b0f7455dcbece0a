import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type SecretLookup, SecretSource } from '#config/context/secrets.ts'
import { buildConfiguration, type LoadOptions, type LoadResult } from '#config/load/load.ts'
import {
  configResources,
  namespaceSources,
  objectPlace,
  openUnisonResource,
} from '#config/sources/cluster-documents.ts'
import { readKeys, type SourceProblem, type Sources } from '#config/sources/folder-documents.ts'
import type { Clock } from '#kernel/clock.ts'
import { inParallel } from '#kernel/in-parallel.ts'
import { isJsonObject } from '#kernel/json.ts'
import type { Logger } from '#kernel/logger.ts'
import { buildScoped, type Scope } from '#kernel/scope.ts'
import { hideSecrets, SecretValues } from '#kernel/secret-values.ts'
import type { KubernetesConnection } from '#protocols/kubernetes/api-connection.ts'
import { AccessRefused, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterResource } from '#protocols/kubernetes/cluster.ts'
import { Informer } from '#protocols/kubernetes/informer.ts'
import { Leadership } from '#protocols/kubernetes/leadership.ts'
import { ObjectClient } from '#protocols/kubernetes/object-client.ts'
import type { ConfigurationSource, LoadOutcome, SourceListener } from './configuration-source.ts'
import { ObjectStatusWriter, type WatchedKind } from './object-status-writer.ts'

interface KubernetesSourceOptions
  extends Pick<LoadOptions, 'catalog' | 'environment' | 'strictSecrets' | 'keepObjects' | 'ownPlaces' | 'listenUrl'> {
  readonly connection: KubernetesConnection
  readonly namespace: string
  /** The ConfigMap whose YAML is read besides the objects. */
  readonly values: string
  /** The operator named it, so it is an error if it is absent. */
  readonly needsValues?: boolean
  /** The base of relative file names, and the parent of `keys/` and `secrets/`. */
  readonly folder: string
  readonly secretsFolder?: string | undefined
  /** How long the API server may take for a call, and for the first list of all objects; 15 and 30 seconds if absent. */
  readonly answerMillis?: number | undefined
  /** Identifies this replica. */
  readonly identity: string
  readonly clock: Clock
  readonly log: Logger
}

const callMillis = 15_000
const firstListMillis = 30_000
const mostObjects = 5_000
const secretsEveryMillis = 5_000
/** How long nothing must change before it is read, and the longest wait for that. */
const quietMillis = 200
const mostQuietMillis = 2_000
/**
 * The names of secrets are known only while objects are built, so objects are built again after secrets were
 * fetched.
 */
const mostRounds = 4

/** Throws an Error if the cluster can't be reached, or does not let the account list the objects. */
export async function openKubernetesSource(options: KubernetesSourceOptions): Promise<ConfigurationSource> {
  const { value, scope } = await buildScoped((scope) => open(options, scope))
  return { ...value, close: () => scope.close() }
}

async function open(options: KubernetesSourceOptions, scope: Scope): Promise<Omit<ConfigurationSource, 'close'>> {
  const { namespace, clock, log, environment, identity } = options
  const who = `namespace ${namespace}`
  const objects = scope.own(
    await ObjectClient.open(options.connection, { who, timeoutMillis: options.answerMillis ?? callMillis }),
  )
  let changed = (): void => {}
  const watched = watchAll(options, objects, scope, () => changed())
  const values = startInformer(options, objects, { resource: configMaps(namespace), name: options.values }, () =>
    changed(),
  )
  scope.own(values)
  const listMillis = options.answerMillis ?? firstListMillis
  await untilListed([...watched.map(({ informer }) => informer), values], listMillis)
  const openUnison = await watchOpenUnison(options, objects, () => changed())
  scope.own(openUnison.informer)
  if (openUnison.isServed) await untilListed([openUnison.informer], listMillis)

  const secretObjects = new KubernetesSecrets(objects, namespace, log)
  const folder = resolve(options.folder)
  const secretsFolder = resolve(options.secretsFolder ?? join(folder, 'secrets'))
  const secretValues = new SecretValues()
  scope.defer(hideSecrets(secretValues))
  const loading: LoadOptions = {
    folder,
    secretValues,
    secretsFolder,
    clusterSecrets: secretObjects.lookUp,
    environment,
    catalog: options.catalog,
    strictSecrets: options.strictSecrets ?? true,
    keepObjects: options.keepObjects ?? false,
    ownPlaces: options.ownPlaces,
    listenUrl: options.listenUrl,
  }
  const statuses = new ObjectStatusWriter({ objects, kinds: watched, namespace, clock, log })
  const leadership = scope.own(
    new Leadership({
      objects,
      namespace,
      name: 'gatehouse',
      identity,
      clock,
      onGain: () => void statuses.write(),
      onError: (err) => log.warn('the lease could not be renewed: this replica writes no status', { err }),
    }),
  )
  statuses.mayWrite = () => leadership.isLeader

  const sourcesNow = async (): Promise<Sources> => {
    const problems: SourceProblem[] = []
    const keys = await readKeys(join(folder, 'keys'), problems)
    const listed = watched.flatMap(({ resource, informer }) =>
      informer.objects.map(({ content }) => {
        const apiVersion = `${resource.group}/${resource.version}`
        return { kind: resource.kind.kind, apiVersion, content }
      }),
    )
    const ofOpenUnison = openUnison.informer.objects.map(({ content }) => {
      return { kind: openUnisonResource.kind, apiVersion: openUnison.apiVersion, content }
    })
    const maps = values.objects.map(({ content }) => ({ kind: 'ConfigMap', apiVersion: 'v1', content }))
    if (options.needsValues === true && maps.length === 0) {
      problems.push({
        name: objectPlace('ConfigMap', namespace, options.values),
        message: 'there is no such ConfigMap',
        whole: true,
      })
    }
    const read = namespaceSources(namespace, [...listed, ...ofOpenUnison], maps)
    return { ...read, keys, problems: [...problems, ...read.problems] }
  }

  let isWatching = false
  let lastRead = ''
  const build = async (sources: Sources): Promise<LoadResult> => {
    const generations = statuses.generations()
    let result = buildConfiguration(sources, loading)
    for (let round = 1; round < mostRounds && (await secretObjects.fetchMissing()); round++) {
      result = buildConfiguration(sources, loading)
    }
    lastRead = fingerprint(sources)
    statuses.remember(result, generations)
    return result
  }
  const load = async (): Promise<LoadResult> => {
    await secretObjects.refresh()
    return build(await sourcesNow())
  }

  const watch = ({ hash, onChange, onError }: SourceListener) => {
    let lastHash = hash
    let secretsChanged = false
    const look = async (): Promise<void> => {
      const sources = await sourcesNow()
      if (secretsChanged || fingerprint(sources) !== lastRead) {
        const result = await build(sources)
        secretsChanged = false
        if (result.hash === lastHash) statuses.repeat(result)
        else {
          lastHash = result.hash
          await onChange(result)
        }
      }
      await statuses.write()
    }
    const looking = new QuietCall(look, { quietMillis, mostQuietMillis, onError })
    changed = () => looking.request()
    const timer = setInterval(() => {
      secretObjects.refresh().then((isChanged) => {
        secretsChanged ||= isChanged
        // Even without changes: a status that could not be written is retried.
        looking.request()
      }, onError)
    }, secretsEveryMillis)
    timer.unref()
    isWatching = true
    leadership.start()
    looking.request()
    return {
      async close() {
        clearInterval(timer)
        changed = () => {}
        await looking.close()
      },
    }
  }

  const settled = async (result: LoadResult, outcome: LoadOutcome): Promise<void> => {
    statuses.settle(result, outcome)
    // Nothing is watched yet, so this is the only chance to report why the replica does not start.
    if (!isWatching && outcome !== 'applied') await leadership.succeed()
    await statuses.write()
  }
  const secrets = new SecretSource(secretsFolder, environment, secretValues, secretObjects.lookUp)
  return { folder, secrets, load, watch, settled }
}

const configMaps = (namespace: string) => ({ group: '', version: 'v1', plural: 'configmaps', namespace })

function watchAll(
  options: KubernetesSourceOptions,
  objects: ObjectClient,
  scope: Scope,
  onChange: () => void,
): (WatchedKind & { readonly informer: Informer })[] {
  return configResources.map((resource) => {
    const { group, version, plural } = resource
    const address = { group, version, plural, namespace: options.namespace }
    const informer = startInformer(options, objects, { resource: address }, onChange)
    return { resource, informer: scope.own(informer) }
  })
}

/**
 * In the newest version that the cluster serves. Most clusters have no such kind, and their accounts need no right to it:
 * it is then watched only because OpenUnison may be installed later.
 */
async function watchOpenUnison(options: KubernetesSourceOptions, objects: ObjectClient, onChange: () => void) {
  const { kind, group, plural, versions } = openUnisonResource
  let served: string | undefined
  for (const version of versions.toReversed()) {
    if (served === undefined && (await servesKind(objects, `${group}/${version}`, kind))) served = version
  }
  const isServed = served !== undefined
  const resource = { group, version: served ?? versions.at(-1) ?? '', plural, namespace: options.namespace }
  const isUsual = (err: unknown) => err instanceof KindNotServed || (!isServed && err instanceof AccessRefused)
  const informer = startInformer(options, objects, { resource }, onChange, isUsual)
  return { informer, isServed, apiVersion: `${group}/${resource.version}` }
}

/** False if the account may not see which kinds there are. */
async function servesKind(objects: ObjectClient, apiVersion: string, kind: string): Promise<boolean> {
  try {
    return (await objects.servedKind(apiVersion, kind)) !== undefined
  } catch (error) {
    if (error instanceof AccessRefused) return false
    throw error
  }
}

function startInformer(
  { log }: KubernetesSourceOptions,
  objects: ObjectClient,
  wanted: Pick<ConstructorParameters<typeof Informer>[0], 'resource' | 'name'>,
  onChange: () => void,
  isUsual: (err: unknown) => boolean = () => false,
): Informer {
  let reported = ''
  const informer = new Informer({
    ...wanted,
    objects,
    most: mostObjects,
    onChange: () => {
      reported = ''
      onChange()
    },
    onError: (err) => {
      const message = String(err)
      if (message === reported) return
      reported = message
      const { plural } = wanted.resource
      if (isUsual(err)) return
      if (err instanceof KindNotServed)
        log.warn('the cluster has no such kind of objects: apply deploy/crds', { plural })
      else log.warn('objects of the cluster are not heard of; what is known stays', { plural, err })
    },
  })
  informer.start()
  return informer
}

async function untilListed(informers: readonly Informer[], millis: number): Promise<void> {
  const end = performance.now() + millis
  for (;;) {
    const open = informers.filter(({ isComplete }) => !isComplete)
    if (open.length === 0) return
    const refused = open.find(({ failure }) => failure instanceof AccessRefused)
    if (refused !== undefined) throw refused.failure
    if (performance.now() > end) {
      const cause = open.find(({ failure }) => failure !== undefined)?.failure
      const reason =
        cause instanceof Error ? cause.message : `the API server did not answer within ${millis / 1000} seconds`
      throw new Error(`the objects of the cluster could not be listed: ${reason}`, { cause })
    }
    await delay(20)
  }
}

const fingerprint = ({ files, keys, problems }: Sources): string =>
  createHash('sha256')
    .update(JSON.stringify([files, [...keys], problems]))
    .digest('base64url')

interface QuietCallOptions {
  /** Time without requests before the call. */
  readonly quietMillis: number
  /** Maximum delay of a request. */
  readonly mostQuietMillis: number
  onError(error: unknown): void
}

/** Makes one call for a burst of requests, never two at a time. A request during a call leads to another call after it. */
export class QuietCall {
  readonly #work: () => Promise<void>
  readonly #options: QuietCallOptions
  #firstRequest: number | undefined
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(work: () => Promise<void>, options: QuietCallOptions) {
    this.#work = work
    this.#options = options
  }

  request(): void {
    if (this.#isClosed) return
    this.#firstRequest ??= performance.now()
    if (this.#running === undefined) this.#wait(this.#firstRequest)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #wait(since: number): void {
    const { quietMillis, mostQuietMillis } = this.#options
    const left = Math.max(0, since + mostQuietMillis - performance.now())
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#call(), Math.min(quietMillis, left))
    this.#timer.unref()
  }

  #call(): void {
    this.#firstRequest = undefined
    this.#running = this.#work()
      .catch(this.#options.onError)
      .finally(() => {
        this.#running = undefined
        if (!this.#isClosed && this.#firstRequest !== undefined) this.#wait(this.#firstRequest)
      })
  }
}

/** The part of an ObjectClient that secrets need: the right to read them by name. */
interface SecretObjects {
  get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined>
}

interface Fetched {
  readonly version: string
  readonly values: ReadonlyMap<string, string>
}

const secretName = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/
const mostSecrets = 1_000
const callsAtOnce = 8
const none: Fetched = { version: '', values: new Map() }

/**
 * Secrets of one namespace, fetched one by one on demand, so that permission to read only these is enough. A
 * forbidden one counts as absent. Values are kept in memory only.
 */
export class KubernetesSecrets {
  readonly #objects: SecretObjects
  readonly #resource: ClusterResource
  readonly #log: Logger
  readonly #known = new Map<string, Fetched>()
  readonly #missing = new Set<string>()
  readonly #refused = new Set<string>()
  #refreshing: Promise<boolean> | undefined

  constructor(objects: SecretObjects, namespace: string, log: Logger) {
    this.#objects = objects
    this.#resource = { group: '', version: 'v1', plural: 'secrets', namespace }
    this.#log = log
  }

  /** An unknown one counts as absent, and the next `fetchMissing` fetches it. */
  readonly lookUp: SecretLookup = (name, key) => {
    const known = this.#known.get(name)
    if (known === undefined && secretName.test(name) && this.#known.size + this.#missing.size < mostSecrets) {
      this.#missing.add(name)
    }
    return known?.values.get(key)
  }

  /** False if there was nothing to fetch. Throws if the API server can't be reached. */
  async fetchMissing(): Promise<boolean> {
    const names = [...this.#missing]
    this.#missing.clear()
    await inParallel(names, callsAtOnce, async (name) => this.#known.set(name, await this.#fetch(name)))
    return names.length > 0
  }

  /**
   * Reads all requested Secrets again; true if one has changed. Keeps the known ones if it throws. Concurrent
   * callers share the result.
   */
  refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<boolean> {
    let changed = false
    await inParallel([...this.#known.keys()], callsAtOnce, async (name) => {
      const fetched = await this.#fetch(name)
      if (fetched.version !== this.#known.get(name)?.version) changed = true
      this.#known.set(name, fetched)
    })
    return changed
  }

  async #fetch(name: string): Promise<Fetched> {
    let stored: ClusterObject | undefined
    try {
      stored = await this.#objects.get(this.#resource, name)
    } catch (error) {
      if (!(error instanceof AccessRefused)) throw error
      if (!this.#refused.has(name)) this.#log.info('a Secret may not be read and counts as absent', { name })
      this.#refused.add(name)
      return none
    }
    this.#refused.delete(name)
    if (stored === undefined) return none
    const { data } = stored.content
    const values = new Map<string, string>()
    for (const [key, text] of Object.entries(isJsonObject(data) ? data : {})) {
      if (typeof text === 'string') values.set(key, Buffer.from(text, 'base64').toString('utf8'))
    }
    return { version: `${stored.metadata.uid} ${stored.metadata.resourceVersion}`, values }
  }
}
