import { randomUUID } from 'node:crypto'
import { Agent, request } from 'node:https'
import { posix } from 'node:path'

/** The connection to a test's API server. It can be passed to another process. */
export interface KubeConnection {
  readonly url: string
  /** The certificate of its authority, in PEM. */
  readonly ca: string
  /** The token of a member of system:masters. */
  readonly adminToken: string
  /** A kubeconfig file of another member, with a client certificate. */
  readonly kubeconfig: string
}

export interface KubeAnswer<T> {
  readonly status: number
  /** Cast to the type that the caller expects. */
  readonly body: T
}

export interface TokenOptions {
  readonly audiences?: readonly string[]
  /** At least 600, a rule of the server. */
  readonly seconds?: number
  readonly boundPod?: { readonly name: string; readonly uid: string }
}

export interface AccountName {
  readonly namespace: string
  readonly name: string
}

/** An administrator's client of a test's cluster. */
export class KubeClient {
  readonly connection: KubeConnection
  readonly #agent: Agent

  constructor(connection: KubeConnection) {
    this.connection = connection
    this.#agent = new Agent({ ca: connection.ca, keepAlive: true })
  }

  call<T = unknown>(
    method: string,
    path: string,
    body?: object,
    token = this.connection.adminToken,
    type = 'application/json',
  ): Promise<KubeAnswer<T>> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json, */*', 'content-type': type }
    return new Promise((resolve, reject) => {
      const options = { method, agent: this.#agent, headers, signal: AbortSignal.timeout(15_000) }
      const sent = request(`${this.connection.url}${path}`, options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const answer = Buffer.concat(chunks).toString()
          const isJson = response.headers['content-type']?.startsWith('application/json') === true
          resolve({ status: response.statusCode ?? 0, body: (isJson ? JSON.parse(answer) : answer) as T })
        })
      })
      sent.on('error', reject).end(text)
    })
  }

  /** Throws unless the call succeeds. */
  async must<T = unknown>(method: string, path: string, body?: object): Promise<T> {
    const answer = await this.call<T>(method, path, body)
    if (answer.status >= 200 && answer.status <= 299) return answer.body
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 500)}`)
  }

  /** The server's answer to an object at its address, with strict fields. Nothing is stored. */
  dryRun<T = unknown>(path: string, object: object): Promise<KubeAnswer<T>> {
    const query = 'fieldManager=test&force=true&fieldValidation=Strict&dryRun=All'
    return this.call('PATCH', `${path}?${query}`, object, undefined, 'application/apply-patch+yaml')
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.call('GET', '/readyz')).status === 200
    } catch {
      return false
    }
  }

  /** Its own namespace, so that tests do not see one another. */
  async namespace(labels: Readonly<Record<string, string>> = {}): Promise<string> {
    const name = `test-${randomUUID().slice(0, 13)}`
    await this.must('POST', '/api/v1/namespaces', { metadata: { name, labels } })
    return name
  }

  async serviceAccount({ namespace, name }: AccountName): Promise<void> {
    await this.must('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } })
  }

  /** It is stored and never runs. */
  async pod(
    { namespace, name: serviceAccountName }: AccountName,
    name: string,
  ): Promise<{ name: string; uid: string }> {
    const spec = { serviceAccountName, containers: [{ name: 'app', image: 'example.test/app:1' }] }
    const path = `/api/v1/namespaces/${namespace}/pods`
    const { metadata } = await this.must<{ metadata: { uid: string } }>('POST', path, { metadata: { name }, spec })
    return { name, uid: metadata.uid }
  }

  async deletePod(namespace: string, name: string): Promise<void> {
    await this.must('DELETE', `/api/v1/namespaces/${namespace}/pods/${name}?gracePeriodSeconds=0`)
  }

  /** A token of the account, by TokenRequest. */
  async token({ namespace, name }: AccountName, wish: TokenOptions = {}): Promise<string> {
    const { audiences, seconds, boundPod } = wish
    const spec = {
      ...(audiences === undefined ? {} : { audiences }),
      ...(seconds === undefined ? {} : { expirationSeconds: seconds }),
      ...(boundPod === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', ...boundPod } }),
    }
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
    return (await this.must<{ status: { token: string } }>('POST', path, { spec })).status.token
  }

  /** Applies an object at its address. */
  async apply(path: string, object: object): Promise<void> {
    const answer = await this.call('POST', path, object)
    if (answer.status !== 201 && answer.status !== 409) {
      throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 500)}`)
    }
  }

  /** Registers the kind, and waits until its objects are served and the list of its group has it, which may be later. */
  async defineKind(definition: { readonly metadata: { readonly name: string } }, served: string): Promise<void> {
    await this.apply('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    const end = performance.now() + 20_000
    while (!(await this.#isServed(served))) {
      if (performance.now() > end) throw new Error(`${served} is not served`)
      await new Promise((resume) => setTimeout(resume, 100))
    }
  }

  async #isServed(path: string): Promise<boolean> {
    if ((await this.call('GET', path)).status !== 200) return false
    const [group, plural] = [posix.dirname(path), posix.basename(path)]
    const { body } = await this.call<{ resources?: readonly { readonly name: string }[] }>('GET', group)
    return body.resources?.some(({ name }) => name === plural) === true
  }

  close(): void {
    this.#agent.destroy()
  }
}
