import { setTimeout as delay } from 'node:timers/promises'
import {
  configResources,
  namespaceSources,
  objectPlace,
  openUnisonResource,
} from '#config/sources/cluster-documents.ts'
import type { SourceProblem } from '#config/sources/folder-documents.ts'
import type { Logger } from '#kernel/logger.ts'
import type { Scope } from '#kernel/scope.ts'
import { AccessRefused, KindNotServed } from '#protocols/kubernetes/api-failure.ts'
import { Informer } from '#protocols/kubernetes/informer.ts'
import type { ObjectClient } from '#protocols/kubernetes/object-client.ts'
import type { WatchedKind } from './object-status-writer.ts'

export interface HeardOptions {
  readonly namespace: string
  /** The ConfigMap whose YAML is read besides the objects. */
  readonly values: string
  /** The operator named it, so it is an error if it is absent. */
  readonly needsValues?: boolean
  /** How long the API server may take for a call, and for the first list of all objects; 15 and 30 seconds if absent. */
  readonly answerMillis?: number | undefined
  readonly log: Logger
}

const firstListMillis = 30_000
const mostObjects = 5_000

interface HeardKind extends WatchedKind {
  readonly informer: Informer
}

interface Informers {
  readonly kinds: readonly HeardKind[]
  readonly values: Informer
  readonly openUnison: { readonly informer: Informer; readonly apiVersion: string }
}

/** The objects of a namespace that configure the gateway, as the API server last reported them. */
export class HeardObjects {
  readonly kinds: readonly HeardKind[]
  readonly #options: HeardOptions
  readonly #values: Informer
  readonly #openUnison: Informers['openUnison']
  readonly #listener: { onChange(): void }

  private constructor(options: HeardOptions, { kinds, values, openUnison }: Informers, listener: { onChange(): void }) {
    this.#options = options
    this.kinds = kinds
    this.#values = values
    this.#openUnison = openUnison
    this.#listener = listener
  }

  /** Throws an Error if the cluster can't be reached, or does not let the account list the objects. */
  static async open(options: HeardOptions, objects: ObjectClient, scope: Scope): Promise<HeardObjects> {
    const listener = { onChange: (): void => {} }
    const onChange = (): void => listener.onChange()
    const kinds = watchAll(options, objects, scope, onChange)
    const resource = configMaps(options.namespace)
    const values = scope.own(startInformer(options, objects, { resource, name: options.values }, onChange))
    const listMillis = options.answerMillis ?? firstListMillis
    await untilListed([...kinds.map(({ informer }) => informer), values], listMillis)
    const openUnison = await watchOpenUnison(options, objects, onChange)
    scope.own(openUnison.informer)
    if (openUnison.isServed) await untilListed([openUnison.informer], listMillis)
    return new HeardObjects(options, { kinds, values, openUnison }, listener)
  }

  /** Calls this, and nothing else, for every change from now on. */
  listen(onChange: () => void): void {
    this.#listener.onChange = onChange
  }

  read(): ReturnType<typeof namespaceSources> {
    const { namespace, values, needsValues } = this.#options
    const listed = this.kinds.flatMap(({ resource, informer }) =>
      informer.objects.map(({ content }) => {
        const apiVersion = `${resource.group}/${resource.version}`
        return { kind: resource.kind.kind, apiVersion, content }
      }),
    )
    const ofOpenUnison = this.#openUnison.informer.objects.map(({ content }) => {
      return { kind: openUnisonResource.kind, apiVersion: this.#openUnison.apiVersion, content }
    })
    const maps = this.#values.objects.map(({ content }) => ({ kind: 'ConfigMap', apiVersion: 'v1', content }))
    const read = namespaceSources(namespace, [...listed, ...ofOpenUnison], maps)
    if (needsValues !== true || maps.length > 0) return read
    const name = objectPlace('ConfigMap', namespace, values)
    const absent: SourceProblem = { name, message: 'there is no such ConfigMap', whole: true }
    return { ...read, problems: [absent, ...read.problems] }
  }
}

const configMaps = (namespace: string) => ({ group: '', version: 'v1', plural: 'configmaps', namespace })

function watchAll(
  options: HeardOptions,
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
async function watchOpenUnison(options: HeardOptions, objects: ObjectClient, onChange: () => void) {
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
  { log }: HeardOptions,
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
      else log.warn('the watch failed; keeping the last known objects', { plural, err })
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
