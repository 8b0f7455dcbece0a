import { GatewayError } from '#kernel/errors.ts'
import {
  type ApiAnswer,
  type ApiServer,
  callApi,
  type KubernetesConnection,
  openApiServer,
  openLines,
} from '#protocols/kubernetes/api-connection.ts'
import { apiFailure, ExpiredList, isMissing, noAnswer } from '#protocols/kubernetes/api-failure.ts'
import type { ClusterObject, ClusterPatch, ClusterResource, ServedKind } from './cluster.ts'

interface ObjectClientOptions {
  /** The name of the cluster in messages. */
  readonly who: string
  readonly timeoutMillis: number
}

/** Objects at one revision. */
export interface Snapshot {
  readonly objects: readonly ClusterObject[]
  /** The revision, as the API server names it. */
  readonly version: string
}

export interface Selection {
  /** The only object of interest. Permission for this one name is then enough. */
  readonly name?: string
  /** Ends the call. */
  readonly signal?: AbortSignal
  /** A label selector. */
  readonly labels?: string
}

export interface ListSelection extends Selection {
  /** For each attempt to list: what is kept of an object; undefined leaves it out, and it does not count. */
  readonly keep?: () => (object: ClusterObject) => ClusterObject | undefined
}

export interface WatchSelection extends Selection {
  /** When the server should end the watch. */
  readonly seconds: number
  readonly signal: AbortSignal
}

export type ObjectChange =
  | { readonly kind: 'stored' | 'removed'; readonly object: ClusterObject }
  /** Nothing of interest has changed up to this revision. */
  | { readonly kind: 'moment'; readonly version: string }

interface RawCall {
  readonly method: string
  readonly path: string
  readonly body?: string
  readonly contentType?: string
}

type Json = Readonly<Record<string, unknown>>

interface CallParts {
  readonly body?: unknown
  readonly contentType?: string
  readonly signal?: AbortSignal | undefined
}

const patchTypes = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
} as const satisfies Record<ClusterPatch['type'], string>

/** API versions whose kinds are remembered. */
const mostApiVersions = 200

/** etcd accepts a request of at most 1.5 MiB, including what the API server adds. */
const mostObjectBytes = 1024 * 1024
const mostAnswerBytes = 64 * 1024 * 1024
/** For scripts, whose messages are limited to this. */
const mostRawBytes = 8 * 1024 * 1024
const pageSize = 250
/** One change, with its object. */
const mostLineBytes = 4 * 1024 * 1024
/** How much later than requested a watch may end. */
const watchGraceSeconds = 15
/** How many times as many objects may be read as are kept. */
const mostLeftOut = 10
/** How often a list is restarted because its pages were compacted away meanwhile. */
const listAttempts = 3

/** A part of a path that would lead elsewhere, such as one from a parameter of a request. */
const dotSegment = /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i

/** Objects of one cluster, by plain JSON calls. The server rejects unknown fields instead of dropping them. */
export class ObjectClient {
  readonly #server: ApiServer
  readonly #options: ObjectClientOptions
  /** By API version and kind. */
  readonly #kinds = new Map<string, ReadonlyMap<string, ServedKind>>()

  private constructor(server: ApiServer, options: ObjectClientOptions) {
    this.#server = server
    this.#options = options
  }

  static async open(connection: KubernetesConnection, options: ObjectClientOptions): Promise<ObjectClient> {
    return new ObjectClient(await openApiServer(connection), options)
  }

  close(): void {
    this.#server.close()
  }

  get address(): string {
    return this.#server.address
  }

  /** A call to any path; whatever the server answers is returned. */
  async call({ method, path, body = '', contentType }: RawCall): Promise<ApiAnswer> {
    const { who, timeoutMillis } = this.#options
    const what = `${method} ${path}`
    const base = new URL(`${this.#server.address}/`).href
    const isPath = /^\/[^\s#\\]*$/.test(path) && !dotSegment.test(path)
    const url = isPath ? URL.parse(`${this.#server.address}${path}`) : null
    if (url?.href.startsWith(base) !== true) {
      throw new GatewayError('BAD_REQUEST', `${who}: ${JSON.stringify(path.slice(0, 300))} is not a path`)
    }
    if (Buffer.byteLength(body) > mostObjectBytes) {
      throw new GatewayError('BAD_REQUEST', `${who}: ${what}: more than ${mostObjectBytes} bytes`)
    }
    const headers = {
      accept: 'application/json',
      ...(body === '' ? {} : { 'content-type': contentType ?? 'application/json' }),
    }
    try {
      const request = { url: url.href, method, headers, body }
      return await callApi(request, await this.#server.credentials(), { millis: timeoutMillis, bytes: mostRawBytes })
    } catch (error) {
      throw noAnswer(who, what, error)
    }
  }

  async get(resource: ClusterResource, name: string): Promise<ClusterObject | undefined> {
    const what = `read ${resource.plural}`
    const answer = await this.#call('GET', resourcePath(resource, name), what)
    if (isMissing(answer)) return undefined
    return this.#object(answer, what)
  }

  async list(resource: ClusterResource, most: number, selection: Selection = {}): Promise<ClusterObject[]> {
    return [...(await this.snapshot(resource, most, selection)).objects]
  }

  /** A list with its revision. */
  async snapshot(resource: ClusterResource, most: number, wanted: ListSelection = {}): Promise<Snapshot> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pages(resource, most, wanted)
      } catch (error) {
        if (attempt >= listAttempts || !(error instanceof ExpiredList)) throw error
      }
    }
  }

  /** All changes since that revision, until the server or `signal` ends the watch. Throws as `snapshot` does. */
  async *watch(resource: ClusterResource, since: string, wanted: WatchSelection): AsyncGenerator<ObjectChange> {
    const what = `watch ${resource.plural}`
    const { who } = this.#options
    const url = `${this.#server.address}${resourcePath(resource)}?${watchQuery(since, wanted)}`
    const millis = (wanted.seconds + watchGraceSeconds) * 1000
    let lines: AsyncIterable<string>
    try {
      const signal = AbortSignal.any([wanted.signal, AbortSignal.timeout(millis)])
      const answer = await openLines(
        { url, headers: { accept: 'application/json' } },
        await this.#server.credentials(),
        {
          signal,
          lineBytes: mostLineBytes,
        },
      )
      if ('refusal' in answer) throw apiFailure(who, what, answer.refusal)
      lines = answer.lines
    } catch (error) {
      throw error instanceof GatewayError ? error : noAnswer(who, what, error)
    }
    try {
      for await (const line of lines) {
        const change = this.#change(line, what)
        if (change !== undefined) yield change
      }
    } catch (error) {
      throw error instanceof GatewayError ? error : noAnswer(who, what, error)
    }
  }

  async create(resource: ClusterResource, object: Json): Promise<ClusterObject> {
    return this.#write('POST', resourcePath(resource), `create ${resource.plural}`, object)
  }

  async replace(
    resource: ClusterResource,
    name: string,
    object: Json,
    { dryRun = false }: { readonly dryRun?: boolean } = {},
  ): Promise<ClusterObject> {
    const path = resourcePath(resource, name)
    return this.#write('PUT', path, `${dryRun ? 'try to ' : ''}change ${resource.plural}`, object, dryRun)
  }

  async patch(
    resource: ClusterResource,
    name: string,
    { type, content }: ClusterPatch,
    { dryRun = false }: { readonly dryRun?: boolean } = {},
  ): Promise<ClusterObject | undefined> {
    const what = `${dryRun ? 'try to ' : ''}patch ${resource.plural}`
    const path = `${resourcePath(resource, name)}?${writeQuery(dryRun)}`
    const answer = await this.#call('PATCH', path, what, { body: content, contentType: patchTypes[type] })
    return isMissing(answer) ? undefined : this.#object(answer, what)
  }

  /** By the API server's own list of kinds, which is read again for a kind that it did not have. */
  async servedKind(apiVersion: string, kind: string): Promise<ServedKind | undefined> {
    const known = this.#kinds.get(apiVersion)?.get(kind)
    if (known !== undefined) return known
    const what = `read the kinds of ${apiVersion}`
    const [group = '', version] = apiVersion.split('/')
    const parts = version === undefined ? ['api', group] : ['apis', group, version]
    const answer = await this.#call('GET', `/${parts.map(segment).join('/')}`, what)
    if (answer.status === 404) return undefined
    const { resources } = this.#json(this.#requireSuccess(answer, what), what)
    const kinds = new Map((Array.isArray(resources) ? resources : []).flatMap(readKind))
    if (this.#kinds.size >= mostApiVersions) this.#kinds.clear()
    this.#kinds.set(apiVersion, kinds)
    return kinds.get(kind)
  }

  /** Only its `status`, and only while the stored object has the `metadata.resourceVersion` of this one. */
  async replaceStatus(resource: ClusterResource, name: string, object: Json): Promise<ClusterObject> {
    const path = `${resourcePath(resource, name)}/status`
    return this.#object(
      await this.#call('PUT', path, `write the status of ${resource.plural}`, { body: object }),
      'write the status',
    )
  }

  async remove(resource: ClusterResource, name: string, preconditions: object): Promise<boolean> {
    const what = `delete ${resource.plural}`
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
    const answer = await this.#call('DELETE', resourcePath(resource, name), what, { body })
    if (isMissing(answer)) return false
    this.#requireSuccess(answer, what)
    return true
  }

  #change(line: string, what: string): ObjectChange | undefined {
    const { type, object } = this.#json({ status: 200, contentType: '', body: line }, what)
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        return { kind: 'stored', object: this.#read(object, what) }
      case 'DELETED':
        return { kind: 'removed', object: this.#read(object, what) }
      case 'BOOKMARK': {
        const metadata = isRecord(object) ? object['metadata'] : undefined
        const version = textOf(isRecord(metadata) ? metadata['resourceVersion'] : undefined)
        return version === '' ? undefined : { kind: 'moment', version }
      }
      default: {
        const status = isRecord(object) && typeof object['code'] === 'number' ? object['code'] : 500
        const answer = { status, contentType: '', body: JSON.stringify(object ?? {}) }
        throw apiFailure(this.#options.who, what, answer)
      }
    }
  }

  async #pages(resource: ClusterResource, most: number, wanted: ListSelection): Promise<Snapshot> {
    const what = `list ${resource.plural}`
    const found: ClusterObject[] = []
    const keep = wanted.keep?.()
    let seen = 0
    let position = ''
    let version = ''
    do {
      const query = new URLSearchParams({
        limit: String(pageSize),
        ...selectionQuery(wanted),
        ...(position === '' ? {} : { continue: position }),
      })
      const answer = await this.#call('GET', `${resourcePath(resource)}?${query}`, what, { signal: wanted.signal })
      const { items, metadata } = this.#json(this.#requireSuccess(answer, what), what)
      if (!Array.isArray(items)) throw noAnswer(this.#options.who, what, new Error('the answer is not a list'))
      for (const item of items) {
        const object = this.#read(item, what)
        const kept = keep === undefined ? object : keep(object)
        if (kept !== undefined) found.push(kept)
      }
      seen += items.length
      if (found.length > most || seen > most * mostLeftOut) {
        throw new GatewayError('TARGET_FAILED', `${this.#options.who}: ${what}: there are more than ${most}`)
      }
      position = textOf(isRecord(metadata) ? metadata['continue'] : undefined)
      version = textOf(isRecord(metadata) ? metadata['resourceVersion'] : undefined)
    } while (position !== '')
    return { objects: found, version }
  }

  async #write(
    method: 'POST' | 'PUT',
    path: string,
    what: string,
    object: Json,
    dryRun = false,
  ): Promise<ClusterObject> {
    const answer = await this.#call(method, `${path}?${writeQuery(dryRun)}`, what, { body: object })
    return this.#object(answer, what)
  }

  async #call(
    method: string,
    path: string,
    what: string,
    { body, contentType = 'application/json', signal }: CallParts = {},
  ): Promise<ApiAnswer> {
    const { who, timeoutMillis } = this.#options
    const text = body === undefined ? '' : JSON.stringify(body)
    if (Buffer.byteLength(text) > mostObjectBytes) {
      throw new GatewayError('BAD_REQUEST', `${who}: ${what}: more than ${mostObjectBytes} bytes`)
    }
    const headers = {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': contentType }),
    }
    try {
      const request = { url: `${this.#server.address}${path}`, method, headers, body: text }
      const limits = { millis: timeoutMillis, bytes: mostAnswerBytes, signal }
      return await callApi(request, await this.#server.credentials(), limits)
    } catch (error) {
      throw noAnswer(who, what, error)
    }
  }

  #object(answer: ApiAnswer, what: string): ClusterObject {
    return this.#read(this.#json(this.#requireSuccess(answer, what), what), what)
  }

  #requireSuccess(answer: ApiAnswer, what: string): ApiAnswer {
    if (answer.status >= 200 && answer.status <= 299) return answer
    throw apiFailure(this.#options.who, what, answer)
  }

  #json({ body }: ApiAnswer, what: string): Json {
    let value: unknown
    try {
      value = JSON.parse(body)
    } catch (error) {
      throw noAnswer(this.#options.who, what, error)
    }
    if (isRecord(value)) return value
    throw noAnswer(this.#options.who, what, new Error('the answer is not an object'))
  }

  #read(value: unknown, what: string): ClusterObject {
    const metadata = isRecord(value) ? value['metadata'] : undefined
    const [name, uid, resourceVersion] = isRecord(metadata)
      ? ['name', 'uid', 'resourceVersion'].map((field) => textOf(metadata[field]))
      : []
    if (!isRecord(value) || !isRecord(metadata) || !name || !uid || !resourceVersion) {
      throw noAnswer(this.#options.who, what, new Error('the answer is not a stored object'))
    }
    const [namespace, creationTimestamp] = ['namespace', 'creationTimestamp'].map((field) => textOf(metadata[field]))
    return {
      metadata: {
        name,
        uid,
        resourceVersion,
        ...(namespace ? { namespace } : {}),
        ...(creationTimestamp ? { creationTimestamp } : {}),
      },
      content: value,
    }
  }
}

function watchQuery(since: string, { seconds, ...wanted }: WatchSelection): URLSearchParams {
  const times = { timeoutSeconds: String(seconds), resourceVersion: since }
  return new URLSearchParams({ watch: 'true', allowWatchBookmarks: 'true', ...times, ...selectionQuery(wanted) })
}

const selectionQuery = ({ name, labels }: Selection): Readonly<Record<string, string>> => ({
  ...(name === undefined ? {} : { fieldSelector: `metadata.name=${name}` }),
  ...(labels === undefined ? {} : { labelSelector: labels }),
})

const writeQuery = (dryRun: boolean): string => `fieldValidation=Strict${dryRun ? '&dryRun=All' : ''}`

/** A kind of a resource list; subresources such as `pods/log` are none. */
function readKind(resource: unknown): [string, ServedKind][] {
  const { name, kind, namespaced } = isRecord(resource) ? resource : {}
  if (typeof name !== 'string' || typeof kind !== 'string' || name.includes('/')) return []
  return [[kind, { plural: name, namespaced: namespaced === true }]]
}

const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const longestName = 253

/** The path of a collection, or of one object in it. BAD_REQUEST for an invalid name. */
export function resourcePath({ group, version, plural, namespace }: ClusterResource, name?: string): string {
  const api = group === '' ? ['api', version] : ['apis', group, version]
  const place = namespace === undefined ? [] : ['namespaces', namespace]
  const parts = [...api, ...place, plural, ...(name === undefined ? [] : [name])]
  return `/${parts.map(segment).join('/')}`
}

/** The API server's own rule for names in paths; a client would resolve dots before the server sees them. */
function segment(text: string): string {
  const wrong = text === '' || text === '.' || text === '..' || /[/%]/.test(text) || text.length > longestName
  if (wrong || !text.isWellFormed()) {
    throw new GatewayError(
      'BAD_REQUEST',
      `${JSON.stringify(text.slice(0, 300))} is not the name of a Kubernetes object`,
    )
  }
  return encodeURIComponent(text)
}
