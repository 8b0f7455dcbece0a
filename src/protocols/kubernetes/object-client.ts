import { GatewayError } from '#kernel/errors.ts'
import { type ApiServer, openApiServer } from '#protocols/kubernetes/api-credentials.ts'
import { apiFailure, isMissing, noAnswer } from '#protocols/kubernetes/api-failure.ts'
import { type ApiAnswer, callApi } from '#protocols/kubernetes/api-transport.ts'
import type { KubernetesConnection } from '#protocols/kubernetes/connection.ts'
import { type ResourceAddress, resourcePath } from '#protocols/kubernetes/resource-path.ts'

export interface ObjectClientOptions {
  /** How messages name the cluster. */
  readonly who: string
  readonly timeoutMillis: number
}

export interface StoredObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid: string
    readonly resourceVersion: string
    readonly creationTimestamp?: string
  }
  readonly content: Readonly<Record<string, unknown>>
}

type Json = Readonly<Record<string, unknown>>

/** etcd takes a request of at most 1.5 MiB, what the API server adds included. */
const mostObjectBytes = 1024 * 1024
const mostAnswerBytes = 64 * 1024 * 1024
const pageSize = 250
/** How often a list is begun anew because its pages were compacted away while it was read. */
const listAttempts = 3

/** Objects of one cluster, by plain JSON calls. Unknown fields are refused by the server rather than dropped. */
export class ObjectClient {
  readonly #server: ApiServer
  readonly #options: ObjectClientOptions

  private constructor(server: ApiServer, options: ObjectClientOptions) {
    this.#server = server
    this.#options = options
  }

  static async open(connection: KubernetesConnection, options: ObjectClientOptions): Promise<ObjectClient> {
    const emptyConfig =
      connection.kind === 'kubeconfig' ? (await import('@kubernetes/client-node')).KubeConfig : undefined
    const server = await openApiServer(connection, () => {
      if (emptyConfig === undefined) throw new Error('no kubeconfig is used here')
      return new emptyConfig()
    })
    return new ObjectClient(server, options)
  }

  close(): void {
    this.#server.close()
  }

  async get(resource: ResourceAddress, name: string): Promise<StoredObject | undefined> {
    const what = `read ${resource.plural}`
    const answer = await this.#call('GET', resourcePath(resource, name), what)
    if (isMissing(answer)) return undefined
    return this.#object(answer, what)
  }

  async list(resource: ResourceAddress, most: number): Promise<StoredObject[]> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#pages(resource, most)
      } catch (error) {
        if (attempt >= listAttempts || !(error instanceof ExpiredList)) throw error
      }
    }
  }

  async create(resource: ResourceAddress, object: Json): Promise<StoredObject> {
    return this.#write('POST', resourcePath(resource), `create ${resource.plural}`, object)
  }

  async replace(resource: ResourceAddress, name: string, object: Json): Promise<StoredObject> {
    return this.#write('PUT', resourcePath(resource, name), `change ${resource.plural}`, object)
  }

  async remove(resource: ResourceAddress, name: string, preconditions: object): Promise<boolean> {
    const what = `delete ${resource.plural}`
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
    const answer = await this.#call('DELETE', resourcePath(resource, name), what, body)
    if (isMissing(answer)) return false
    this.#requireSuccess(answer, what)
    return true
  }

  async #pages(resource: ResourceAddress, most: number): Promise<StoredObject[]> {
    const what = `list ${resource.plural}`
    const found: StoredObject[] = []
    let position = ''
    do {
      const query = new URLSearchParams({ limit: String(pageSize), ...(position === '' ? {} : { continue: position }) })
      const answer = await this.#call('GET', `${resourcePath(resource)}?${query}`, what)
      if (answer.status === 410) throw new ExpiredList(this.#options.who, what, answer)
      const { items, metadata } = this.#json(this.#requireSuccess(answer, what), what)
      if (!Array.isArray(items)) throw noAnswer(this.#options.who, what, new Error('the answer is no list'))
      for (const item of items) found.push(this.#read(item, what))
      if (found.length > most) {
        throw new GatewayError('TARGET_FAILED', `${this.#options.who}: ${what}: there are more than ${most}`)
      }
      position = textOf(isRecord(metadata) ? metadata['continue'] : undefined)
    } while (position !== '')
    return found
  }

  async #write(method: 'POST' | 'PUT', path: string, what: string, object: Json): Promise<StoredObject> {
    const answer = await this.#call(method, `${path}?fieldValidation=Strict`, what, object)
    return this.#object(answer, what)
  }

  async #call(method: string, path: string, what: string, body?: object): Promise<ApiAnswer> {
    const { who, timeoutMillis } = this.#options
    const text = body === undefined ? '' : JSON.stringify(body)
    if (Buffer.byteLength(text) > mostObjectBytes) {
      throw new GatewayError('BAD_REQUEST', `${who}: ${what}: more than ${mostObjectBytes} bytes`)
    }
    const headers = {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    try {
      const request = { url: `${this.#server.address}${path}`, method, headers, body: text }
      return await callApi(request, await this.#server.credentials(), { millis: timeoutMillis, bytes: mostAnswerBytes })
    } catch (error) {
      throw noAnswer(who, what, error)
    }
  }

  #object(answer: ApiAnswer, what: string): StoredObject {
    return this.#read(this.#json(this.#requireSuccess(answer, what), what), what)
  }

  #requireSuccess(answer: ApiAnswer, what: string): ApiAnswer {
    if (answer.status >= 200 && answer.status <= 299) return answer
    throw apiFailure(this.#options.who, what, answer)
  }

  #json({ body }: ApiAnswer, what: string): Json {
    let value: unknown
    try {
      value = JSON.parse(body.toString())
    } catch (error) {
      throw noAnswer(this.#options.who, what, error)
    }
    if (isRecord(value)) return value
    throw noAnswer(this.#options.who, what, new Error('the answer is no object'))
  }

  #read(value: unknown, what: string): StoredObject {
    const metadata = isRecord(value) ? value['metadata'] : undefined
    const [name, uid, resourceVersion] = isRecord(metadata)
      ? ['name', 'uid', 'resourceVersion'].map((field) => textOf(metadata[field]))
      : []
    if (!isRecord(value) || !isRecord(metadata) || !name || !uid || !resourceVersion) {
      throw noAnswer(this.#options.who, what, new Error('the answer is no stored object'))
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

class ExpiredList extends GatewayError {
  constructor(who: string, what: string, answer: ApiAnswer) {
    const { code, message, retryAfter = 2 } = apiFailure(who, what, answer)
    super(code, message, { retryAfter })
  }
}

const isRecord = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
